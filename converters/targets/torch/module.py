"""The text around the classes of a PyTorch port: imports, helpers, `build`."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from porter.converters.codegen.module import Module, docstring, key
from porter.converters.codegen.printer import literal
from porter.converters.targets.torch.fresh import fresh

_BUILD = '''
def build(weights=True, device=None, dtype=None):
    """The model in eval mode, with the weights that lie beside this file or with fresh ones."""
    model = {root}()
{load}
    return model.to(device=device, dtype=dtype).eval()
'''

_LOAD = """
    if weights:
        model.load_state_dict(load_file(Path(__file__).with_name("weights.safetensors")))
"""

_LOAD_FIXED = """
    state = load_file(Path(__file__).with_name("weights.safetensors"))
    if not weights:
        state = {name: state[name] for name in FIXED}
    model.load_state_dict(state, strict=weights)
"""


def module_text(module: Module, statistics: Collection[str]) -> str:
    """The whole module, not yet formatted."""
    fixed = [key(v) for v in module.variables if not v.weight.trainable and v.slot not in statistics]
    drawn = fresh(module)
    build = _BUILD.format(root=module.root, load=_weights(module, drawn.statements, fixed=bool(fixed)))
    says = "# What is never trained, and has its value in a model with fresh weights too."
    table = [f"{says}\nFIXED = {literal(tuple(fixed))}"]
    parts = [*(table if fixed else []), *module.helpers, *module.classes, build.strip(), *drawn.functions]
    text = "\n\n\n".join(part.rstrip() for part in parts) + "\n"
    lines = []
    if re.search(r"\bmath\.", text):
        lines.append("import math")
    if module.variables:
        lines.append("from pathlib import Path")
    lines += ["", *(["import torch"] if re.search(r"\btorch\.", text) else [])]
    if re.search(r"\bF\.", text):
        lines.append("import torch.nn.functional as F")
    if module.variables:
        lines.append("from safetensors.torch import load_file")
    lines.append("from torch import nn")
    head = "\n".join(lines)
    return f"{docstring(module.doc)}\n\n{head}\n\n\n{text}"


def _weights(module: Module, drawn: Sequence[str], *, fixed: bool) -> str:
    """The part of `build` that gives the model its weights."""
    if not module.variables:
        return ""
    lines = [f"        {line}" for line in drawn]
    if fixed:
        return "\n".join([*(["    if not weights:", *lines] if drawn else []), _LOAD_FIXED.strip("\n")])
    return "\n".join([_LOAD.strip("\n"), *(["    else:", *lines] if drawn else [])])
