"""A program as the text of a module."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count

from porter.converters.codegen.arguments import Argument
from porter.converters.codegen.body import Path
from porter.converters.codegen.dialect import Dialect
from porter.converters.codegen.locals import LocalNames
from porter.converters.codegen.nodes import Expr, Items, Nested, walk
from porter.converters.codegen.normal import (
    MISSING,
    Block,
    Choice,
    Construct,
    IfPresent,
    Line,
    Local,
    Loop,
    Parameter,
    SizeOf,
)
from porter.converters.codegen.printer import Printer, literal
from porter.converters.codegen.series import Series, in_series
from porter.converters.codegen.subgraphs import blocks_in, defined, definitions
from porter.converters.codegen.unify import Template

# A definition that is longer than this is no part of a conditional expression.
_LONG = 100


class ClassWriter:
    """Writes one class."""

    def __init__(
        self,
        dialect: Dialect,
        template: Template,
        classes: Mapping[str, Sequence[Argument]],
        *,
        root: bool,
        frozen: Sequence[str] = (),
    ) -> None:
        self.frozen = frozen
        self.classes = classes
        self.dialect = dialect
        self.template = template
        self.root = root

    def text(self) -> str:
        """The class definition."""
        dialect, template = self.dialect, self.template
        lines = [*dialect.class_header(template, root=self.root)]
        if template.arguments or template.body.definitions:
            lines += [f"    {line}" if line else "" for line in self._constructor()]
            lines.append("")
        if () not in template.body.definitions:
            lines += [f"    {line}" if line else "" for line in self._method()]
        extra = dialect.class_footer(template)
        if extra:
            lines += ["", *(f"    {line}" if line else "" for line in extra)]
        return "\n".join(lines).rstrip()

    def chain(self, target: str, first: Sequence[Expr]) -> list[str]:
        """The statements that make a model that is nothing but a chain of layers, after what stands `first` in it."""
        steps = self.template.body.definitions[()]
        assert isinstance(steps, Items)
        layers = replace(steps, items=(*first, *steps.items))
        whole = Construct(self.dialect.sequential, (("layers", layers),))
        printer = self._printer()
        return self._in_loops(printer, target, whole) or [f"{target} = {printer.text(whole)}"]

    # ---- __init__ ----

    def _printer(self) -> Printer:
        return Printer(self.dialect, lambda number: f"value{number}", classes=self.classes)

    def _constructor(self) -> list[str]:
        arguments = [
            argument.name if argument.default is MISSING else f"{argument.name}={literal(argument.default)}"
            for argument in self.template.arguments
        ]
        printer = self._printer()
        steps = self.template.body.definitions.get(())
        lines = self.dialect.constructor_header(arguments, printer.steps(steps) if steps is not None else None)
        read = self._read_by_method()
        lines += [
            f"    self.{argument.name} = {argument.name}"
            for argument in self.template.arguments
            if argument.stored and argument.name in read
        ]
        if steps is None:
            for path, definition in self.template.body.definitions.items():
                lines += [f"    {line}" for line in self._made(printer, f"self.{path[0]}", path, definition)]
        return lines + [f"    {line}" for line in self.dialect.freezing(self.frozen)]

    def _made(self, printer: Printer, target: str, path: Path, definition: Expr) -> list[str]:
        """The statements that make one attribute."""
        flag = self.template.optional.get(path)
        if flag is None:
            return self._in_loops(printer, target, definition) or [
                self.dialect.assigned(target, definition, self._held(printer, definition))
            ]
        text = self._held(printer, definition)
        wrapped = f"({text})" if isinstance(definition, Choice) else text
        whole = f"{target} = {wrapped} if {flag} else None"
        made = self.dialect.assigned(target, definition, text)
        if len(whole) < _LONG and made == f"{target} = {text}":
            return [whole]
        return [f"{target} = None", f"if {flag}:", f"    {made}"]

    def _held(self, printer: Printer, definition: Expr) -> str:
        """What an attribute holds."""
        text = printer.text(definition)
        listed = isinstance(definition, Items) and definition.brackets == "[]"
        return self.dialect.listed(text) if listed else text

    def _in_loops(self, printer: Printer, target: str, definition: Expr) -> list[str]:
        """A list of layers whose groups repeat, made group by group; empty when it is written as one list."""
        sequential = isinstance(definition, Construct) and definition.cls == self.dialect.sequential
        steps = dict(definition.kwargs)["layers"] if isinstance(definition, Construct) and sequential else definition
        if not isinstance(steps, Items) or steps.brackets != "[]":
            return []
        parts = in_series(steps.items, [argument.name for argument in self.template.arguments])
        if parts is None:
            return []
        first = next(index for index, part in enumerate(parts) if isinstance(part, Series))
        lead = Items(tuple(parts[:first]), "[]")
        made = self.dialect.chain(printer.steps(lead)) if sequential else self._held(printer, lead)
        adds = self.dialect.appends if sequential else "append"
        return [f"{target} = {made}", *self._added(printer, f"{target}.{adds}", parts[first:])]

    def _added(self, printer: Printer, add: str, parts: Sequence[Expr]) -> list[str]:
        lines = []
        for part in parts:
            if not isinstance(part, Series):
                lines.append(f"{add}({printer.text(part)})")
                continue
            rows = printer.text(part.rows)
            over = f"{', '.join(part.names)} in {rows}" if part.names else f"_ in range({rows})"
            lines += [f"for {over}:", *(f"    {line}" for line in self._added(printer, add, part.items))]
        return lines

    def _read_by_method(self) -> set[str]:
        """The constructor arguments that the statements need."""
        parts = [part for line in self.template.body.lines for part in walk(line.expr)]
        own = {part.name.removeprefix("self.") for part in parts if isinstance(part, Parameter)}
        return own | {str(part.path[0]) for part in parts if isinstance(part, IfPresent)}

    # ---- call ----

    def _method(self) -> list[str]:
        body = self.template.body
        arguments = list(zip(body.inputs, body.arguments, strict=True))
        lines = _with_sizes(body.lines, count(1_000_000))
        reserved = self.dialect.reserved_locals
        names = LocalNames(arguments, lines, body.outputs, reserved)
        printer = Printer(self.dialect, names, classes=self.classes)
        printer.functions = names.functions
        text = self.dialect.method_header(body.arguments, training=body.trains, root=self.root)
        written = self._lines(printer, names, lines)
        returned = [names(number) for number in body.outputs]
        last = lines[-1] if lines else None
        if body.keys:
            pairs = zip(body.keys, returned, strict=True)
            written.append(f"return {{{', '.join(f'{literal(key)}: {name}' for key, name in pairs)}}}")
        elif (
            last is not None
            and list(last.outputs) == body.outputs
            and not isinstance(last.expr, Loop)
            and len(last.outputs) == 1
        ):
            written[-1] = f"return {written[-1][len(f'{returned[0]} = ') :]}"
        else:
            written.append(f"return {', '.join(returned)}")
        return text + [f"    {line}" for line in written]

    def _lines(self, printer: Printer, names: LocalNames, lines: Iterable[Line]) -> list[str]:
        written: list[str] = []
        for line in lines:
            if isinstance(line.expr, Loop):
                written += self._loop(printer, names, line, line.expr)
                continue
            written += definitions(printer, line, lambda inner: self._lines(printer, names, inner))
            used = [names(number) for number in line.outputs]
            target = line.expr.targets(used) if isinstance(line.expr, Nested) else ", ".join(used)
            written.append(f"{target} = {printer.text(line.expr)}")
            known = line.expr
            if isinstance(known, SizeOf):
                printer.sizes = {**printer.sizes, (known.base, known.axis): names(line.outputs[0])}
        return written

    def _loop(self, printer: Printer, names: LocalNames, line: Line, loop: Loop) -> list[str]:
        written = []
        for (inside, _), initial in zip(loop.carried, loop.initial, strict=True):
            before = printer.text(initial)
            if before != names(inside):
                written.append(f"{names(inside)} = {before}")
        items = [printer.path((f"@{head}",)) for head in loop.heads]
        lists = [f"self.{head}" for head in loop.heads]
        over = lists[0] if len(lists) == 1 else f"zip({', '.join(lists)}, strict=True)"
        written.append(f"for {', '.join(items)} in {over}:")
        inner = self._lines(printer, names, loop.lines)
        for inside, after in loop.carried:
            if names(inside) != names(after):
                inner.append(f"{names(inside)} = {names(after)}")
        return written + [f"    {text}" for text in inner]


def _with_sizes(lines: Sequence[Line], fresh: Iterator[int], block: Block | None = None) -> list[Line]:
    """A size that is read more than once gets a line of its own before its first use, in the function that it is of.

    `block` is the function that the lines are of, None for the method; `fresh` gives numbers for the sizes.
    """
    inside = {number for line in lines for each in blocks_in(line.expr) for number in defined(each)}
    inside |= {
        number for line in lines if isinstance(line.expr, Loop) for step in line.expr.lines for number in step.outputs
    }
    own = set(defined(block)) - inside if block is not None else None
    read: Counter[SizeOf] = Counter()
    for line in lines:
        for part in walk(line.expr):
            if isinstance(part, SizeOf) and isinstance(part.base, Local) and part.base.number >= 0:
                read[part] += part.base.number not in inside if own is None else part.base.number in own
    wanted = {part: part.hint or "size" for part, times in read.items() if times > 1}
    result: list[Line] = []
    for line in lines:
        for part in walk(line.expr):
            if isinstance(part, SizeOf) and part in wanted:
                result.append(Line((next(fresh),), part, (wanted.pop(part),), line.where))
        result.append(replace(line, expr=_sized(line.expr, fresh)))
    return result


def _sized(expr: Expr, fresh: Iterator[int]) -> Expr:
    """The expression with the sizes in its functions named there."""
    if isinstance(expr, Block):
        *lines, last = _with_sizes([*expr.lines, Line((), expr.result)], fresh, expr)
        return replace(expr, lines=tuple(lines), result=last.expr)
    children = expr.children()
    new = tuple(_sized(child, fresh) for child in children)
    return expr.rebuilt(new) if any(a is not b for a, b in zip(children, new, strict=True)) else expr
