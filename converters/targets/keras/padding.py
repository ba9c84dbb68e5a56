"""Padding in one form: `padding="same"` and a ZeroPadding layer before a "valid" one are the same at stride 1.

Instances of one class may need either (a block whose stride is 1 or 2): then all of them spell it out.
"""

from __future__ import annotations

from dataclasses import replace

from porter.converters.codegen.body import Body, Path
from porter.converters.codegen.nodes import Construct, Expr, Invoke, Literal, transform


def explicit_padding(body: Body) -> Body:
    """The body with every "same" convolution as ZeroPadding and a "valid" one."""
    pads: dict[Path, Path] = {}
    definitions: dict[Path, Expr] = {}
    for path, definition in body.definitions.items():
        amounts = _amounts(definition)
        if amounts is None or not isinstance(definition, Construct) or len(path) != 1:
            definitions[path] = definition
            continue
        pads[path] = (f"{path[0]}_pad",)
        definitions[pads[path]] = Construct(f"ZeroPadding{len(amounts)}D", (("padding", Literal(amounts if len(amounts) > 1 else amounts[0])),))
        definitions[path] = replace(definition, kwargs=tuple((n, Literal("valid") if n == "padding" else v) for n, v in definition.kwargs))

    def change(part: Expr) -> Expr | None:
        if isinstance(part, Invoke) and part.path in pads:
            return replace(part, args=(Invoke(pads[part.path], part.args[:1]), *part.args[1:]))
        return None

    lines = [replace(line, expr=transform(line.expr, change)) for line in body.lines]
    return replace(body, definitions=definitions, lines=lines)


def _amounts(definition: Expr) -> tuple[int, ...] | None:
    """How much "same" pads each axis at stride 1; None for layers without it, and for kernels that it leaves alone."""
    if not isinstance(definition, Construct) or not definition.cls.startswith(("Conv", "DepthwiseConv")):
        return None
    given = {name: value.value for name, value in definition.kwargs if isinstance(value, Literal)}
    if given.get("padding") != "same":
        return None
    return tuple((k - 1) * d // 2 for k, d in zip(given["kernel_size"], given["dilation_rate"], strict=True))
