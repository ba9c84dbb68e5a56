"""The one opset that every graph is brought to, and the metadata keys that structured ONNX adds."""

OPSET = 23

# On nodes: JSON list of [instance path, call number, class] from the outermost module to the innermost.
SCOPE = "porter.scope"
# On nodes: JSON list of [file, line, code], the statement in each enclosing forward, outermost first.
SOURCE = "porter.source"
# On initializers: "parameter", "buffer" or "constant".
KIND = "porter.kind"
# On initializers: "1" when the optimizer updates it.
TRAINABLE = "porter.trainable"
# On initializers: what it is drawn from when nothing is trained yet, as JSON [distribution, numbers…].
INITIAL = "porter.initial"
# On graphs: JSON object {instance path: facts of the module}.
MODULES = "porter.modules"
# On nodes: JSON object of facts for training that ONNX has no attribute for.
TRAINING = "porter.training"
# On subgraphs: JSON object with the author's name of the function ("name") and those of what it takes ("parameters").
FUNCTION = "porter.function"
# On values: the symbolic size that a scalar holds, as a Python expression.
SIZE = "porter.size"
# On nodes: the name of the source graph's node that they are made for.
ORIGIN = "porter.origin"
# On values: the source graph's values that they stand for, "name" or "name#index" for one of several, by spaces.
HOLDS = "porter.holds"
# On constants: the author's number before it was rounded to the constant's type.
EXACT = "porter.exact"

# The training facts of an Identity that lets no gradient through.
STOP_GRADIENT = '{"stop_gradient": true}'
