"""Ports against the Keras models that people wrote: `python -m benchmarks.ported_vs_twin [MODEL…]`.

For every model that the zoo has in both frameworks: the lines of the two files, and the time of a forward pass of the
port over that of the twin, both as a tf.function on the same numbers.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import tempfile
from pathlib import Path
from typing import Any

from porter.zoo import catalog

QUICK = ("resnet50", "bert_tiny")
TWINS = [entry.name for entry in catalog.twins("keras")]


def compare(name: str, *, small: bool, rounds: int) -> dict[str, Any]:
    """Lines and times of one pair."""
    import porter
    from porter.timing.frameworks import equal_threads, keras_side
    from porter.timing.measure import benchmark

    entry, twin = catalog.find(name), catalog.find(f"keras/{name}")
    source, inputs = entry.make(small=small), entry.inputs(small=small)
    with tempfile.TemporaryDirectory() as folder:
        port = porter.port(source, inputs, out=Path(folder) / name, dynamic=entry.dynamic, name=name)
        threads = equal_threads()
        model = twin.make(small=small)
        importlib.import_module(twin.module).copy_weights(source, model)
        by_hand = list(twin.inputs(small=small).values())
        found = benchmark(
            keras_side(model, by_hand, call=lambda m, x: m(*x), name=f"{name} by hand"),
            keras_side(port.load(), list(port.to_target(inputs)), call=lambda m, x: m(*x), name=f"port of {name}"),
            rounds=rounds,
            settings=threads,
        )
        written = inspect.getsourcefile(type(model))
        return {
            "model": name,
            "lines_port": len(port.source.splitlines()),
            "lines_twin": len(Path(written).read_text("utf-8").splitlines()) if written else None,
            "bench": found.to_json(),
            "ratio": str(found.wall),
            "verdict": found.verdict,
        }


def table(rows: list[dict[str, Any]]) -> list[str]:
    """Markdown."""
    lines = ["| model | lines of the port | lines by hand | port / by hand, wall time | |", "|---|---|---|---|---|"]
    for row in rows:
        cells = (row["model"], row["lines_port"], row["lines_twin"], row["ratio"], row["verdict"])
        lines.append("| " + " | ".join(str(cell) for cell in cells) + " |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ported_vs_twin", description=__doc__)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"{', '.join(TWINS)} (default: all)")
    parser.add_argument("--quick", action="store_true", help=f"only {', '.join(QUICK)}, at small width")
    parser.add_argument("--small", action="store_true", help="at small width")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("-o", "--out", type=Path, help="write the numbers as JSON")
    chosen = parser.parse_args()
    unknown = sorted(set(chosen.models) - set(TWINS))
    if unknown:
        parser.error(f"no twin is called {', '.join(unknown)}: choose from {', '.join(TWINS)}")
    names = chosen.models or (QUICK if chosen.quick else TWINS)
    rows = [compare(name, small=chosen.small or chosen.quick, rounds=chosen.rounds) for name in names]
    print("\n".join(table(rows)))
    if chosen.out is not None:
        chosen.out.write_text(json.dumps(rows, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
