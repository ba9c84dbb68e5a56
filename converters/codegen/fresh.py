"""Which fresh weights of a model are drawn in another way than its layers would draw them by themselves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from porter.converters.codegen.body import Variable
from porter.converters.codegen.module import Module, key
from porter.converters.initial import Draw, Scaled, common, is_close

# What a variable is drawn from in the source framework when the author says nothing, from the shapes of all variables
# of its layer; None where nothing is known.
Usual = Callable[[str, str, Mapping[str, tuple[int, ...]]], Draw | None]

# The class of the layer that holds a variable, "" where it has none that could be asked for, and its attribute there.
Place = Callable[[Variable], tuple[str, str]]


@dataclass(frozen=True)
class Rule:
    """One variable of every layer of a class: how most of them are drawn, `usual` where that is by themselves.

    `partly` says that some layers of the class have no such variable.
    """

    slot: str
    how: Draw | Scaled
    usual: bool
    partly: bool


@dataclass
class Plan:
    """By class of layer, and the attribute paths of variables that are drawn otherwise than most of their class."""

    rules: dict[str, list[Rule]] = field(default_factory=dict)
    exceptions: dict[Draw, list[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class _Held:
    path: str
    shape: tuple[int, ...]
    draw: Draw
    usual: bool


@dataclass
class Fresh:
    """Functions to be written, and the statements that draw the weights of `model`."""

    functions: list[str] = field(default_factory=list)
    statements: list[str] = field(default_factory=list)


def plan(module: Module, usual: Usual, place_of: Place, *, channels_first: bool) -> Plan:
    """What the author draws. Classes all of whose variables are drawn as usual are left out."""
    result = Plan()
    for cls, layers in _layers(module.variables, place_of).items():
        slots = dict.fromkeys(slot for layer in layers for slot in layer)
        held = {
            slot: [one for layer in layers for one in _held(cls, slot, layer, usual, module.draws)] for slot in slots
        }
        if all(one.usual for members in held.values() for one in members):
            continue
        rules = []
        for slot, members in held.items():
            if not members:
                continue
            how, others = _most(members, channels_first=channels_first)
            partly = sum(slot in layer for layer in layers) < len(layers)
            rules.append(Rule(slot, how, all(one.usual for one in members if one not in others), partly))
            for one in others:
                same = next((draw for draw in result.exceptions if is_close(draw, one.draw)), one.draw)
                result.exceptions.setdefault(same, []).append(one.path)
        if not all(rule.usual for rule in rules):
            result.rules[cls] = rules
    return result


def _layers(variables: Sequence[Variable], place_of: Place) -> dict[str, list[dict[str, Variable]]]:
    """{class: the variables of each of its layers}."""
    found: dict[tuple[str, str], dict[str, Variable]] = defaultdict(dict)
    for variable in variables:
        cls, slot = place_of(variable)
        found[cls, key(variable).removesuffix(slot)][slot] = variable
    classes: dict[str, list[dict[str, Variable]]] = defaultdict(list)
    for (cls, _), layer in found.items():
        if cls:
            classes[cls].append(layer)
    return classes


def _held(cls: str, slot: str, layer: Mapping[str, Variable], usual: Usual, draws: Mapping[str, Draw]) -> list[_Held]:
    """The variable of a layer, if it has one and it is known what it is drawn from."""
    if slot not in layer or layer[slot].weight.kind != "parameter":
        return []
    weight = layer[slot].weight
    expected = usual(cls, slot, {name: one.weight.shape for name, one in layer.items()})
    known = {draws.get(name) for name in weight.expr.sources()}
    draw = (known.pop() if len(known) == 1 else None) or expected
    if draw is None:
        return []
    return [_Held(key(layer[slot]), weight.shape, draw, expected is not None and is_close(draw, expected))]


def _most(members: Sequence[_Held], *, channels_first: bool) -> tuple[Draw | Scaled, list[_Held]]:
    """How most are drawn, and those that are drawn otherwise."""
    if all(one.usual for one in members):
        return members[0].draw, []
    whole = common([(one.draw, one.shape) for one in members], channels_first=channels_first)
    if whole is not None:
        return whole, []
    groups: list[list[_Held]] = [[one for one in members if one.usual]]
    for one in members:
        if not one.usual:
            group = next((each for each in groups[1:] if is_close(each[0].draw, one.draw)), None)
            if group is None:
                groups.append([one])
            else:
                group.append(one)
    largest = max(groups, key=len)
    how = common([(one.draw, one.shape) for one in largest], channels_first=channels_first) or largest[0].draw
    return how, [one for one in members if one not in largest]
