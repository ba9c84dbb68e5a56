"""The HTML page of a verification: one file, no scripts, nothing fetched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from string import Template
from typing import Any

_PAGE = Template("""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>$title</title>
<style>
  body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; color: #1c1c1c; }
  .banner { padding: .8rem 1rem; border-radius: .4rem; font-size: 1.2rem; color: #fff; }
  .passed { background: #1a7f37; } .failed { background: #c62828; }
  table { border-collapse: collapse; width: 100%; margin: .5rem 0 1.5rem; font-size: .9rem; }
  th, td { text-align: left; padding: .25rem .6rem; border-bottom: 1px solid #ddd; }
  td.number { text-align: right; font-variant-numeric: tabular-nums; }
  tr.bad td { background: #fdecea; }
  code { background: #f3f3f3; padding: 0 .2rem; }
</style>
<h1>$title</h1>
<p class="banner $verdict">$banner</p>
$culprit
$outputs
$dropped
$notes
<h2>How it was judged</h2>
<p>R is the error of the whole output over the floor, Rc that of the worst element over its own. The floor is what
rounding alone does to the source. Semantics: both sides in float64. Precision: the target in float32.</p>
$settings
</html>
""")


def render(report: Mapping[str, Any]) -> str:
    """The page of `Report.to_json()`."""
    passed = report["passed"]
    culprit = report["culprit"]
    return _PAGE.substitute(
        title=escape(f"{report['target']} against {report['source']}"),
        verdict="passed" if passed else "failed",
        banner=f"Equal ({escape(report['level'])})" if passed else f"Not equal ({escape(report['level'])})",
        culprit=_culprit(culprit) if culprit else "",
        outputs=_outputs(report["differences"]),
        dropped=_items("Draws left out", [f"{name}: {reason}" for name, reason in report["dropped"].items()]),
        notes=_items("Notes", report["notes"]),
        settings=_settings(report),
    )


def _culprit(culprit: Mapping[str, Any]) -> str:
    places = [f"{side} <code>{escape(culprit[side])}</code>" for side in ("source", "target") if culprit[side]]
    name = f"<code>{escape(culprit['path'])}</code>" if culprit["path"] else "the model itself"
    where = f"<br>{', '.join(places)}" if places else ""
    what = f"{name} ({escape(culprit['class_name'])}){where}<br>{escape(culprit['detail'])}"
    return f"<h2>First difference</h2><p>{what}</p>"


def _outputs(differences: Sequence[Mapping[str, Any]]) -> str:
    tables: list[str] = []
    for output in dict.fromkeys(d["output"] for d in differences):
        rows = "".join(_row(d) for d in differences if d["output"] == output)
        head = "<tr><th>draw<th>leg<th>R<th>Rc<th>error (rms)<th>floor (rms)<th>worst at<th>"
        tables.append(f"<h2>{escape(output)}</h2><table>{head}{rows}</table>")
    return "".join(tables)


def _row(d: Mapping[str, Any]) -> str:
    numbers = "".join(f'<td class="number">{_number(d[key])}' for key in ("R", "Rc", "err", "floor"))
    remark = "; ".join(filter(None, [d["reason"], "degenerate draw, widened floor" if d["lenient"] else None]))
    cells = f"<td>{escape(d['draw'])}<td>{escape(d['leg'])}{numbers}<td>{escape(str(d['worst']))}<td>{escape(remark)}"
    return f'<tr class="{"good" if d["passed"] else "bad"}">{cells}'


def _number(value: float | str) -> str:
    return escape(value) if isinstance(value, str) else f"{value:.3g}"


def _items(title: str, items: Sequence[str]) -> str:
    if not items:
        return ""
    return f"<h2>{title}</h2><ul>{''.join(f'<li>{escape(item)}' for item in items)}</ul>"


def _settings(report: Mapping[str, Any]) -> str:
    settings = {
        **{f"limit, {key.replace('_', ' ')}": value for key, value in report["thresholds"].items()},
        "seeds": report["seeds"],
        "perturbed runs": report["perturbations"],
        **report["versions"],
    }
    rows = "".join(f"<tr><th>{escape(key)}<td>{escape(str(value))}" for key, value in settings.items())
    return f"<table>{rows}</table>"
