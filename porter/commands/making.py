"""One port from the command line: made, verified when asked, and described."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from porter.errors import InputError
from porter.references import Loaded


@dataclass(frozen=True)
class Made:
    """A port, what to say of it, and whether it is equal as far as that was asked."""

    port: Any
    answer: dict[str, Any]
    lines: list[str]
    passed: bool


def make(
    loaded: Loaded,
    to: str,
    folder: Path,
    level: str | None,
    progress: Callable[[str], None],
    *,
    static: bool = False,
    force: bool = False,
    **settings: Any,
) -> Made:
    """Port `loaded` into `folder` and, with a `level`, verify it and write its report beside it.

    `settings` are the other keyword arguments of porter.port. Raises every PorterError that it raises.
    """
    import porter

    refuse_existing(folder, force)
    port = porter.port(
        loaded.model,
        loaded.inputs,
        to=to,
        out=folder,
        dynamic="none" if static else (loaded.dynamic or "auto"),
        name=loaded.name,
        reference=loaded.reference,
        force=force,
        progress=progress,
        **settings,
    )
    source = folder / ("model.onnx" if to == "onnx" else "model.py")
    answer = {
        "reference": loaded.reference,
        "from": loaded.framework,
        "to": to,
        "port": str(folder),
        "source": str(source),
    }
    lines = [f"ported  {loaded.reference} from {loaded.framework} to {to}", f"source  {source}"]
    if level is None:
        return Made(port, answer, lines, passed=True)
    report = porter.verify(loaded.model, port, loaded.inputs, level=level, draws=1)
    page = folder / "report.html"
    report.to_html(page)
    answer |= {"html": str(page), "report": report.to_json()}
    return Made(port, answer, [*lines, *report.lines(), f"report  {page}"], report.passed)


def refuse_existing(path: Path | None, force: bool) -> None:
    """Raise InputError before the work when its result could not be written."""
    if path is not None and path.exists() and not force:
        raise InputError(f"-o {path} exists; add --force to replace it, or name another place")
