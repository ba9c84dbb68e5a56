"""What a verification found, for a person, a program and a browser."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from porter.equivalence import junit, page
from porter.equivalence.compare import Difference, Thresholds
from porter.equivalence.modules import Culprit
from porter.errors import NotEqualError


@dataclass
class Report:
    """The verdict and everything it rests on."""

    source: str
    target: str
    level: str
    differences: list[Difference]
    """One per output, draw and leg."""
    thresholds: Thresholds
    seeds: list[int]
    perturbations: int
    versions: dict[str, str]
    dropped: dict[str, str] = field(default_factory=dict)
    """Draws that were left out, and why."""
    notes: list[str] = field(default_factory=list)
    floors: list[dict[str, Any]] = field(default_factory=list)
    culprit: Culprit | None = None

    @property
    def passed(self) -> bool:
        return all(d.passed for d in self.differences)

    def worst(self) -> list[Difference]:
        """Per output the difference nearest to (or furthest over) its limit."""
        by_output: dict[str, Difference] = {}
        for d in self.differences:
            known = by_output.get(d.output)
            if known is None or (not d.passed, d.score) > (not known.passed, known.score):
                by_output[d.output] = d
        return list(by_output.values())

    def lines(self) -> list[str]:
        """One line per output, its worst draw; then the culprit, if there is one."""
        lines = [d.line() for d in self.worst()]
        return lines if self.culprit is None else [*lines, self.culprit.line()]

    def raise_if_failed(self) -> None:
        """Raise NotEqualError with the outputs that differ and the first module that does."""
        if not self.passed:
            failed = [d.line() for d in self.worst() if not d.passed]
            if self.culprit is not None:
                failed.append(self.culprit.line())
            raise NotEqualError("\n  ".join([f"{self.target} is not equal to {self.source}:", *failed]))

    def to_json(self) -> dict[str, Any]:
        """A plain dictionary that `json.dumps` takes."""
        return {
            "passed": self.passed,
            "level": self.level,
            "source": self.source,
            "target": self.target,
            "differences": [d.to_json() for d in self.differences],
            "culprit": self.culprit.to_json() if self.culprit else None,
            "dropped": self.dropped,
            "notes": self.notes,
            "floors": self.floors,
            "thresholds": asdict(self.thresholds),
            "seeds": self.seeds,
            "perturbations": self.perturbations,
            "versions": self.versions,
        }

    def to_html(self, path: str | Path) -> Path:
        """Write one self-contained page."""
        path = Path(path)
        path.write_text(page.render(self.to_json()), encoding="utf-8")
        return path

    def to_junit(self, path: str | Path) -> Path:
        """Write JUnit XML: one test case per output and leg."""
        path = Path(path)
        details = [*([self.culprit.line()] if self.culprit else []), *self.notes]
        path.write_text(
            junit.render(f"{self.target} against {self.source}", self.differences, details), encoding="utf-8"
        )
        return path
