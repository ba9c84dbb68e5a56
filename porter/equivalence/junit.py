"""A verification as JUnit XML, which every CI server reads: one test case per output and leg."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

from porter.equivalence.compare import Difference


def render(name: str, differences: Sequence[Difference], details: Sequence[str]) -> str:
    """The XML text; `details` (the culprit, notes) go into the suite's output."""
    groups: dict[tuple[str, str], list[Difference]] = {}
    for d in differences:
        groups.setdefault((d.output, d.leg), []).append(d)
    failures = sum(not all(d.passed for d in group) for group in groups.values())
    suite = ElementTree.Element("testsuite", name=name, tests=str(len(groups)), failures=str(failures), errors="0")
    for (output, leg), group in groups.items():
        case = ElementTree.SubElement(suite, "testcase", classname=name, name=f"{output} {leg}")
        failed = [d for d in group if not d.passed]
        if failed:
            worst = max(failed, key=lambda d: d.score)
            element = ElementTree.SubElement(case, "failure", message=_printable(worst.line()))
            element.text = _printable("\n".join(d.line() for d in failed))
        ElementTree.SubElement(case, "system-out").text = _printable("\n".join(d.line() for d in group))
    ElementTree.SubElement(suite, "system-out").text = _printable("\n".join(details))
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True)


def _printable(text: str) -> str:
    """XML 1.0 has no control characters, and a model's message may hold any."""
    return "".join(c for c in text if c.isprintable() or c in "\n\t")
