"""Shapes of what ONNX nodes make, with sizes as numbers or expressions; None is a size that is not known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import onnx_ir as ir

from porter.converters.frontends.tensorflow.dims import Dim, add, divide, multiply, product, round_up, subtract

Shape = list[Dim | None]
Contents = Mapping[ir.Value, tuple[Dim, ...]]
_rules: dict[str, Callable[..., list[Shape | None]]] = {}


class Unknown(Exception):
    """Something that the shape depends on is not known."""


def sizes_of(value: ir.Value | None) -> Shape:
    """The sizes of a value.

    Raises:
        Unknown: not even its rank is known.
    """
    if value is None or value.shape is None:
        raise Unknown
    return [size if isinstance(size, int) else size.value for size in value.shape]


def infer(node: ir.Node, contents: Contents) -> None:
    """Give the outputs of a node their shapes, where they can be told and are not known."""
    rule = _rules.get(node.op_type)
    if rule is None or node.domain:
        return
    try:
        found = rule(node, contents)
    except Unknown:
        return
    for output, shape in zip(node.outputs, found, strict=False):
        if shape is not None and output.shape is None:
            output.shape = ir.Shape(shape)


def _rule(*names: str) -> Callable:
    def register(function: Callable) -> Callable:
        _rules.update(dict.fromkeys(names, function))
        return function

    return register


def _content(node: ir.Node, position: int, contents: Contents) -> list[Dim]:
    value = node.inputs[position] if position < len(node.inputs) else None
    if value is None or value not in contents:
        raise Unknown
    return list(contents[value])


def _numbers(node: ir.Node, position: int, contents: Contents) -> list[int]:
    found = _content(node, position, contents)
    if not all(isinstance(item, int) for item in found):
        raise Unknown
    return [item for item in found if isinstance(item, int)]


def _times(sizes: Shape) -> Dim:
    if any(size is None for size in sizes):
        raise Unknown
    return product(size for size in sizes if size is not None)


@_rule(
    *"Abs Acos Acosh Asin Asinh Atan Atanh BatchNormalization BitwiseNot Cast Ceil Celu Clip Cos Cosh CumSum".split(),
    *"Dropout Elu Erf Exp Floor Gelu GroupNormalization HardSigmoid HardSwish Hardmax Identity".split(),
    *"InstanceNormalization IsInf IsNaN LRN LayerNormalization LeakyRelu Log LogSoftmax Mish Neg Not Reciprocal".split(),
    *"RMSNormalization Relu ReverseSequence Round ScatterElements ScatterND Selu Sigmoid Sign Sin Sinh Softmax".split(),
    *"Softplus Softsign Sqrt Swish Tan Tanh ThresholdedRelu Trilu".split(),
)
def _same(node: ir.Node, contents: Contents) -> list[Shape | None]:
    return [sizes_of(node.inputs[0])] * len(node.outputs)


@_rule(
    *"Add And BitShift BitwiseAnd BitwiseOr BitwiseXor Div Equal Greater GreaterOrEqual Less LessOrEqual Max".split(),
    *"Mean Min Mod Mul Or PRelu Pow Sub Sum Where Xor".split(),
)
def _broadcast(node: ir.Node, contents: Contents) -> list[Shape | None]:
    return [broadcast(*(sizes_of(value) for value in node.inputs))]


def broadcast(*shapes: Shape) -> Shape:
    """The shape that shapes give together."""
    rank = max(len(shape) for shape in shapes)
    columns = zip(*([1] * (rank - len(shape)) + shape for shape in shapes), strict=True)
    return [_together(set(column) - {1}) for column in columns]


def _together(sizes: set[Dim | None]) -> Dim | None:
    numbers = [size for size in sizes if isinstance(size, int)]
    if numbers:
        return numbers[0]
    return 1 if not sizes else next(iter(sizes)) if len(sizes) == 1 else None


@_rule("Transpose")
def _transpose(node: ir.Node, contents: Contents) -> list[Shape | None]:
    shape = sizes_of(node.inputs[0])
    order = node.attributes.get_ints("perm", list(reversed(range(len(shape)))))
    return [[shape[axis] for axis in order]]


@_rule("Unsqueeze")
def _unsqueeze(node: ir.Node, contents: Contents) -> list[Shape | None]:
    shape, axes = sizes_of(node.inputs[0]), _numbers(node, 1, contents)
    rank = len(shape) + len(axes)
    rest = iter(shape)
    new = {axis % rank for axis in axes}
    return [[1 if axis in new else next(rest) for axis in range(rank)]]


@_rule("Squeeze")
def _squeeze(node: ir.Node, contents: Contents) -> list[Shape | None]:
    shape = sizes_of(node.inputs[0])
    dropped = {axis % len(shape) for axis in _numbers(node, 1, contents)}
    return [[size for axis, size in enumerate(shape) if axis not in dropped]]


@_rule("Reshape")
def _reshape(node: ir.Node, contents: Contents) -> list[Shape | None]:
    wanted = _content_or_blank(node, 1, contents)
    if 0 in wanted and not node.attributes.get_int("allowzero", 0):
        source = sizes_of(node.inputs[0])
        wanted = [source[i] if size == 0 else size for i, size in enumerate(wanted)]
    if -1 in wanted:
        known = [size for size in wanted if size != -1]
        rest: Dim | None = None
        try:
            source = sizes_of(node.inputs[0])
            for size in [each for each in known if each is None or each != 1]:
                if size in source:  # the same size on both sides, known or not by more than its name
                    if size is None:
                        raise Unknown
                    source.remove(size)
                    known.remove(size)
            rest = divide(_times(source), _times(known))
        except Unknown:
            pass
        wanted = [rest if size == -1 else size for size in wanted]
    return [wanted]


def _content_or_blank(node: ir.Node, position: int, contents: Contents) -> Shape:
    """The sizes that a vector holds; of one that is computed only their number is known."""
    value = node.inputs[position]
    if value in contents:
        return list(contents[value])
    length = sizes_of(value)[0]
    if not isinstance(length, int):
        raise Unknown
    producer = value.producer()
    if producer is not None and producer.op_type == "Concat" and all(v.shape is not None for v in producer.inputs):
        parts: Shape = []
        for part in producer.inputs:
            count = sizes_of(part)[0]
            parts += list(contents[part]) if part in contents else [None] * (count if isinstance(count, int) else 0)
        if len(parts) == length:
            return parts
    return [None] * length


@_rule("Expand")
def _expand(node: ir.Node, contents: Contents) -> list[Shape | None]:
    return [broadcast(sizes_of(node.inputs[0]), _content_or_blank(node, 1, contents))]


@_rule("ConstantOfShape")
def _constant_of_shape(node: ir.Node, contents: Contents) -> list[Shape | None]:
    return [_content_or_blank(node, 0, contents)]


@_rule("Shape")
def _shape(node: ir.Node, contents: Contents) -> list[Shape | None]:
    rank = len(sizes_of(node.inputs[0]))
    return [[len(range(rank)[node.attributes.get_int("start", 0) : node.attributes.get_int("end", rank)])]]


@_rule("Size", "NonZeroCount")
def _scalar(node: ir.Node, contents: Contents) -> list[Shape | None]:
    return [[]]


@_rule("Concat")
def _concat(node: ir.Node, contents: Contents) -> list[Shape | None]:
    shapes = [sizes_of(value) for value in node.inputs]
    axis = node.attributes["axis"].as_int() % len(shapes[0])
    total: Dim | None = 0
    for shape in shapes:
        total = None if total is None or shape[axis] is None else add(total, shape[axis])
    rest = [
        next((size for size in column if isinstance(size, int)), next((s for s in column if s is not None), None))
        for column in zip(*shapes, strict=True)
    ]
    return [[total if i == axis else size for i, size in enumerate(rest)]]


@_rule("Split")
def _split(node: ir.Node, contents: Contents) -> list[Shape | None]:
    shape = sizes_of(node.inputs[0])
    axis = node.attributes.get_int("axis", 0) % len(shape)
    if len(node.inputs) > 1 and node.inputs[1] is not None:
        parts: Shape = list(_content_or_blank(node, 1, contents))
    else:
        size = shape[axis]
        parts = [None if size is None else divide(size, len(node.outputs))] * len(node.outputs)
    return [[part if i == axis else size for i, size in enumerate(shape)] for part in parts]


@_rule("Slice")
def _slice(node: ir.Node, contents: Contents) -> list[Shape | None]:
    shape = sizes_of(node.inputs[0])
    axes = _numbers(node, 3, contents) if len(node.inputs) > 3 else list(range(len(shape)))
    count = len(axes)

    def part(position: int, default: list[Dim]) -> list[Dim | None]:
        if position >= len(node.inputs) or node.inputs[position] is None:
            return list(default)
        return _content_or_blank(node, position, contents)

    starts, ends, steps = part(1, []), part(2, []), part(4, [1] * count)
    result = list(shape)
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        result[axis % len(shape)] = _sliced(shape[axis % len(shape)], start, end, step)
    return [result]


def _sliced(size: Dim | None, start: Dim | None, end: Dim | None, step: Dim | None) -> Dim | None:
    if size is None or start is None or end is None or not isinstance(step, int):
        return None
    if isinstance(size, int) and isinstance(start, int) and isinstance(end, int):
        return len(range(size)[slice(start, None if step < 0 and end < -size else end, step)])
    if step < 0:
        whole = start == -1 and isinstance(end, int) and end < -(1 << 30)
        return size if step == -1 and whole else None
    first = add(size, start) if isinstance(start, int) and start < 0 else start
    last = size if isinstance(end, int) and end > 1 << 30 else end
    last = add(size, last) if isinstance(last, int) and last < 0 else last
    if isinstance(last, int) and not isinstance(size, int) and last != 0:
        return f"Min({size}, {last})" if first == 0 and step == 1 else None
    return round_up(subtract(last, first), step)


@_rule("Gather")
def _gather(node: ir.Node, contents: Contents) -> list[Shape | None]:
    shape, picked = sizes_of(node.inputs[0]), sizes_of(node.inputs[1])
    axis = node.attributes.get_int("axis", 0) % len(shape)
    return [[*shape[:axis], *picked, *shape[axis + 1 :]]]


@_rule("GatherElements")
def _gather_elements(node: ir.Node, contents: Contents) -> list[Shape | None]:
    return [sizes_of(node.inputs[1])]


@_rule("GatherND")
def _gather_nd(node: ir.Node, contents: Contents) -> list[Shape | None]:
    shape, index = sizes_of(node.inputs[0]), sizes_of(node.inputs[1])
    batch = node.attributes.get_int("batch_dims", 0)
    if not isinstance(index[-1], int):
        raise Unknown
    return [[*index[:-1], *shape[batch + index[-1] :]]]


@_rule("Pad")
def _pad(node: ir.Node, contents: Contents) -> list[Shape | None]:
    shape = sizes_of(node.inputs[0])
    pads = _content(node, 1, contents)
    return [[None if size is None else add(size, add(a, b)) for size, a, b in _ends(shape, pads)]]


def _ends(shape: Shape, pads: list[Dim]) -> list[tuple[Dim | None, Dim, Dim]]:
    rank = len(shape)
    return list(zip(shape, pads[:rank], pads[rank:], strict=True))


@_rule("Tile")
def _tile(node: ir.Node, contents: Contents) -> list[Shape | None]:
    repeats = _content_or_blank(node, 1, contents)
    pairs = zip(sizes_of(node.inputs[0]), repeats, strict=True)
    return [[None if a is None or b is None else multiply(a, b) for a, b in pairs]]


@_rule(
    "ReduceMax", "ReduceMin", "ReduceSum", "ReduceMean", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSumExp",
    "ReduceSumSquare",
)
def _reduce(node: ir.Node, contents: Contents) -> list[Shape | None]:
    shape = sizes_of(node.inputs[0])
    if len(node.inputs) > 1 and node.inputs[1] is not None:
        axes = {axis % len(shape) for axis in _numbers(node, 1, contents)} if shape else set()
        if not axes and node.attributes.get_int("noop_with_empty_axes", 0):
            return [shape]
        axes = axes or set(range(len(shape)))
    else:
        axes = set(range(len(shape)))
    return [_reduced(shape, axes, bool(node.attributes.get_int("keepdims", 1)))]


def _reduced(shape: Shape, axes: set[int], keep: bool) -> Shape:
    if keep:
        return [1 if axis in axes else size for axis, size in enumerate(shape)]
    return [size for axis, size in enumerate(shape) if axis not in axes]


@_rule("ArgMax", "ArgMin")
def _arg(node: ir.Node, contents: Contents) -> list[Shape | None]:
    shape = sizes_of(node.inputs[0])
    axis = node.attributes.get_int("axis", 0) % len(shape)
    return [_reduced(shape, {axis}, bool(node.attributes.get_int("keepdims", 1)))]


@_rule("TopK")
def _top_k(node: ir.Node, contents: Contents) -> list[Shape | None]:
    shape = sizes_of(node.inputs[0])
    axis = node.attributes.get_int("axis", -1) % len(shape)
    wanted = _content_or_blank(node, 1, contents)[0]
    shape[axis] = wanted
    return [shape, list(shape)]


@_rule("MatMul")
def _matmul(node: ir.Node, contents: Contents) -> list[Shape | None]:
    a, b = sizes_of(node.inputs[0]), sizes_of(node.inputs[1])
    if len(a) < 2 or len(b) < 2:
        raise Unknown
    return [[*broadcast(a[:-2], b[:-2]), a[-2], b[-1]] if len(a) > 2 or len(b) > 2 else [a[-2], b[-1]]]


@_rule("Gemm")
def _gemm(node: ir.Node, contents: Contents) -> list[Shape | None]:
    a, b = sizes_of(node.inputs[0]), sizes_of(node.inputs[1])
    flipped_a, flipped_b = node.attributes.get_int("transA", 0), node.attributes.get_int("transB", 0)
    return [[a[1] if flipped_a else a[0], b[0] if flipped_b else b[1]]]


@_rule("Einsum")
def _einsum(node: ir.Node, contents: Contents) -> list[Shape | None]:
    terms, _, result = node.attributes["equation"].as_string().replace(" ", "").partition("->")
    sizes: dict[str, Dim | None] = {}
    for term, value in zip(terms.split(","), node.inputs, strict=True):
        if "." in term:
            raise Unknown
        for letter, size in zip(term, sizes_of(value), strict=True):
            if sizes.get(letter) in (None, 1) or isinstance(size, int):
                sizes[letter] = size
    return [[sizes[letter] for letter in result]]


@_rule("Conv")
def _conv(node: ir.Node, contents: Contents) -> list[Shape | None]:
    x, w = sizes_of(node.inputs[0]), sizes_of(node.inputs[1])
    return [[x[0], w[0], *_windows(node, x[2:], [size for size in w[2:]])]]


@_rule("MaxPool", "AveragePool", "LpPool")
def _pool(node: ir.Node, contents: Contents) -> list[Shape | None]:
    x = sizes_of(node.inputs[0])
    shape = [*x[:2], *_windows(node, x[2:], list(node.attributes["kernel_shape"].as_ints()))]
    return [shape] * len(node.outputs)


def _windows(node: ir.Node, sizes: Shape, kernel: list[Any]) -> Shape:
    rank = len(sizes)
    strides = node.attributes.get_ints("strides", [1] * rank)
    dilations = node.attributes.get_ints("dilations", [1] * rank)
    pads = node.attributes.get_ints("pads", [0] * 2 * rank)
    auto = node.attributes.get_string("auto_pad", "NOTSET")
    if node.attributes.get_int("ceil_mode", 0):
        raise Unknown
    found: Shape = []
    for axis, size in enumerate(sizes):
        if size is None or not isinstance(kernel[axis], int):
            found.append(None)
        elif auto.startswith("SAME"):
            found.append(round_up(size, strides[axis]))
        else:
            reach = dilations[axis] * (kernel[axis] - 1) + 1
            found.append(add(divide(add(size, pads[axis] + pads[axis + rank] - reach), strides[axis]), 1))
    return found


@_rule("ConvTranspose")
def _conv_transpose(node: ir.Node, contents: Contents) -> list[Shape | None]:
    x, w = sizes_of(node.inputs[0]), sizes_of(node.inputs[1])
    rank = len(x) - 2
    strides = node.attributes.get_ints("strides", [1] * rank)
    dilations = node.attributes.get_ints("dilations", [1] * rank)
    pads = node.attributes.get_ints("pads", [0] * 2 * rank)
    extra = node.attributes.get_ints("output_padding", [0] * rank)
    channels = w[1] if not isinstance(w[1], int) else w[1] * node.attributes.get_int("group", 1)
    found: Shape = [x[0], channels]
    for axis in range(rank):
        size, kernel = x[axis + 2], w[axis + 2]
        if size is None or not isinstance(kernel, int):
            found.append(None)
            continue
        reach = dilations[axis] * (kernel - 1) + 1 + extra[axis] - pads[axis] - pads[axis + rank]
        found.append(add(multiply(add(size, -1), strides[axis]), reach))
    return [found]


@_rule("GlobalAveragePool", "GlobalMaxPool")
def _global_pool(node: ir.Node, contents: Contents) -> list[Shape | None]:
    x = sizes_of(node.inputs[0])
    return [[*x[:2], *[1] * (len(x) - 2)]]


@_rule("Resize")
def _resize(node: ir.Node, contents: Contents) -> list[Shape | None]:
    shape = sizes_of(node.inputs[0])
    if len(node.inputs) > 3 and node.inputs[3] is not None:
        return [_content_or_blank(node, 3, contents)]
    scales = node.inputs[2].const_value
    if scales is None or not all(float(s).is_integer() for s in scales.numpy()):
        raise Unknown
    return [[None if a is None else multiply(a, int(s)) for a, s in zip(shape, scales.numpy(), strict=True)]]


@_rule("Range")
def _range(node: ir.Node, contents: Contents) -> list[Shape | None]:
    try:
        (start,), (stop,), (step,) = (_content(node, position, contents) for position in range(3))
    except Unknown:
        return [[None]]
    if not isinstance(step, int):
        return [[None]]
    if step < 0:
        return [[divide(add(subtract(start, stop), -step - 1), -step)]]
    return [[round_up(subtract(stop, start), step)]]


@_rule("OneHot")
def _one_hot(node: ir.Node, contents: Contents) -> list[Shape | None]:
    shape = sizes_of(node.inputs[0])
    depth = _content_or_blank(node, 1, contents) if node.inputs[1].shape else contents.get(node.inputs[1], [None])
    axis = node.attributes.get_int("axis", -1) % (len(shape) + 1)
    return [[*shape[:axis], next(iter(depth)), *shape[axis:]]]


@_rule("DepthToSpace")
def _depth_to_space(node: ir.Node, contents: Contents) -> list[Shape | None]:
    n, c, h, w = sizes_of(node.inputs[0])
    block = node.attributes["blocksize"].as_int()
    times = [None if size is None else multiply(size, block) for size in (h, w)]
    return [[n, None if c is None else divide(c, block * block), *times]]


@_rule("SpaceToDepth")
def _space_to_depth(node: ir.Node, contents: Contents) -> list[Shape | None]:
    n, c, h, w = sizes_of(node.inputs[0])
    block = node.attributes["blocksize"].as_int()
    parts = [None if size is None else divide(size, block) for size in (h, w)]
    return [[n, None if c is None else multiply(c, block * block), *parts]]


@_rule("NonZero")
def _non_zero(node: ir.Node, contents: Contents) -> list[Shape | None]:
    return [[len(sizes_of(node.inputs[0])), None]]


@_rule("EyeLike")
def _eye(node: ir.Node, contents: Contents) -> list[Shape | None]:
    return [sizes_of(node.inputs[0])]


@_rule("Det")
def _det(node: ir.Node, contents: Contents) -> list[Shape | None]:
    return [sizes_of(node.inputs[0])[:-2]]


@_rule("NonMaxSuppression")
def _suppression(node: ir.Node, contents: Contents) -> list[Shape | None]:
    return [[None, 3]]


@_rule("LSTM", "GRU", "RNN")
def _recurrent(node: ir.Node, contents: Contents) -> list[Shape | None]:
    """Every step, the last state, and the last cell of an LSTM."""
    steps, batch, _ = sizes_of(node.inputs[0])
    directions, _, hidden = sizes_of(node.inputs[2])
    last = [directions, batch, hidden]
    return [[steps, directions, batch, hidden], last, last][: len(node.outputs)]
