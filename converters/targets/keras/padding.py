"""Padding in one form: `padding="same"` and a ZeroPadding layer before a "valid" one are the same at stride 1.

Instances of one class may need either (a block whose stride is 1 or 2): then all of them spell it out.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from porter.converters.codegen.body import Body, Path
from porter.converters.codegen.nodes import Expr, Items, Literal, transform
from porter.converters.codegen.normal import Construct, Invoke, Repeat


def explicit_padding(body: Body) -> Body:
    """The body with every "same" convolution as ZeroPadding and a "valid" one."""
    return _with_layers(body, _amounts)


def padding_everywhere(body: Body) -> Body:
    """The body with ZeroPadding before every convolution, by zero where there is none."""

    def amounts(definition: Expr) -> tuple[int, ...] | None:
        found = _amounts(definition)
        if found is None and isinstance(definition, Construct) and _CONVOLUTION.match(definition.cls):
            return (0,) * int(definition.cls[-2])
        return found

    return _with_layers(body, amounts)


_CONVOLUTION = re.compile(r"(Depthwise)?Conv[123]D$")


def _with_layers(body: Body, amounts_of: Callable[[Expr], tuple[int, ...] | None]) -> Body:
    pads: dict[Path, Path] = {}
    definitions: dict[Path, Expr] = {}
    for path, definition in body.definitions.items():
        amounts = amounts_of(definition)
        if (
            amounts is None
            or not isinstance(definition, Construct)
            or len(path) != 1
            or (f"{path[0]}_pad",) in body.definitions
        ):
            definitions[path] = definition
            continue
        pads[path] = (f"{path[0]}_pad",)
        definitions[pads[path]] = Construct(
            f"ZeroPadding{len(amounts)}D", (("padding", Literal(amounts if len(amounts) > 1 else amounts[0])),)
        )
        definitions[path] = replace(
            definition, kwargs=tuple((n, Literal("valid") if n == "padding" else v) for n, v in definition.kwargs)
        )

    def change(part: Expr) -> Expr | None:
        if isinstance(part, Invoke) and part.path in pads:
            return replace(part, args=(Invoke(pads[part.path], part.args[:1]), *part.args[1:]))
        return None

    lines = [replace(line, expr=transform(line.expr, change)) for line in body.lines]
    body = replace(body, definitions=definitions, lines=lines)
    return _in_list(body, amounts_of) if () in definitions else body


def _in_list(body: Body, amounts_of: Callable[[Expr], tuple[int, ...] | None]) -> Body:
    """The same for a chain's own list."""
    steps = body.definitions[()]
    if not isinstance(steps, Items) or any(isinstance(item, Repeat) for item in steps.items):
        return body
    items: list[Expr] = []
    for item in steps.items:
        amounts = amounts_of(item)
        padded = bool(items) and isinstance(items[-1], Construct) and items[-1].cls.startswith("ZeroPadding")
        if amounts is not None and isinstance(item, Construct) and not padded:
            items.append(
                Construct(
                    f"ZeroPadding{len(amounts)}D", (("padding", Literal(amounts if len(amounts) > 1 else amounts[0])),)
                )
            )
            item = replace(item, kwargs=tuple((n, Literal("valid") if n == "padding" else v) for n, v in item.kwargs))
        items.append(item)
    return replace(body, definitions={**body.definitions, (): Items(tuple(items), "[]")})


def _amounts(definition: Expr) -> tuple[int, ...] | None:
    """How much "same" pads each axis at stride 1; None for layers without it, and for kernels that it leaves alone."""
    if not isinstance(definition, Construct) or not _CONVOLUTION.match(definition.cls):
        return None
    given = {name: value.value for name, value in definition.kwargs if isinstance(value, Literal)}
    if given.get("padding") != "same":
        return None
    rank = int(definition.cls[-2])
    sizes, dilations = (
        given[name] if isinstance(given.get(name), tuple) else (given.get(name, 1),) * rank
        for name in ("kernel_size", "dilation_rate")
    )
    return tuple((k - 1) * d // 2 for k, d in zip(sizes, dilations, strict=True))
