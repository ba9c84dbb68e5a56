"""How long porting takes, stage by stage, and how much memory: `python -m benchmarks.port_speed [MODEL…]`.

Each model is ported in a process of its own, after a tiny one that loads whatever is loaded on first use. Memory is
that above the process with its frameworks, in multiples of the model's weights: the source's own weights are 1.0 of it.
With --peers, the other converters that can be installed are run on the same models; see `benchmarks/peers.py`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.memory import Peak, resident
from benchmarks.models import CASES

QUICK = ("resnet50",)
# Stages of the exporter, not of porter: torch's own tracing.
EXPORTER = ("trace",)


class Stages:
    """Wall and CPU seconds between one call of `begin` and the next."""

    def __init__(self) -> None:
        self.found: dict[str, dict[str, float]] = {}
        self._open: tuple[str, float, float] | None = None

    def begin(self, name: str | None) -> None:
        wall, cpu = time.perf_counter(), sum(os.times()[:4])  # with child processes: the formatter is one
        if self._open is not None:
            stage, since, cpu_since = self._open
            self.found[stage] = {"wall": wall - since, "cpu": cpu - cpu_since}
        self._open = None if name is None else (name, wall, cpu)


def measure(name: str) -> dict[str, Any]:
    """Port one model in this process."""
    import torch

    import porter
    from porter.zoo import catalog

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        lenet = catalog.find("lenet")
        porter.port(lenet.make(small=True), lenet.inputs(small=True), out=Path(folder) / "first", dynamic=lenet.dynamic)
        before = resident()
        model, inputs, dynamic = CASES[name].make()
        tensors = {id(tensor): tensor for tensor in model.state_dict(keep_vars=True).values()}
        weights = sum(tensor.nbytes for tensor in tensors.values())
        stages = Stages()
        with Peak() as peak:
            port = porter.port(model, inputs, out=Path(folder) / "port", dynamic=dynamic, progress=stages.begin)
        stages.begin(None)
        return {
            "model": name,
            "parameters": sum(p.numel() for p in model.parameters()),
            "weights_bytes": weights,
            "stages": stages.found,
            "own_cpu": sum(times["cpu"] for stage, times in stages.found.items() if stage not in EXPORTER),
            "peak_bytes": peak.bytes - before,
            "peak_over_weights": (peak.bytes - before) / weights,
            "lines": port.source.count("\n"),
        }


def measured_apart(name: str) -> dict[str, Any]:
    """`measure` in a fresh process."""
    environment = {"TF_CPP_MIN_LOG_LEVEL": "3", "OMP_NUM_THREADS": "1", **os.environ}
    command = [sys.executable, "-m", "benchmarks.port_speed", "--here", name]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        return {"model": name, "failure": (done.stderr.strip().splitlines() or ["no message"])[-1]}
    return json.loads(done.stdout.splitlines()[-1])


def table(rows: list[dict[str, Any]]) -> list[str]:
    """Markdown."""
    stages = list(dict.fromkeys(stage for row in rows for stage in row.get("stages", {})))
    heads = ["model", "parameters", *[f"{stage} (s)" for stage in stages], "porter's own CPU (s)", "peak / weights"]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for row in rows:
        if "failure" in row:
            lines.append(f"| {row['model']} | failed: {row['failure']} |" + " |" * (len(heads) - 2))
            continue
        times = [f"{row['stages'][stage]['cpu']:.1f}" if stage in row["stages"] else "" for stage in stages]
        size = f"{row['parameters'] / 1e6:.1f} M"
        ends = [f"{row['own_cpu']:.1f}", f"{row['peak_over_weights']:.2f}"]
        lines.append("| " + " | ".join([row["model"], size, *times, *ends]) + " |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.port_speed", description=__doc__)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"{', '.join(CASES)} (default: all)")
    parser.add_argument("--quick", action="store_true", help=f"only {', '.join(QUICK)}")
    parser.add_argument("--peers", action="store_true", help="run the other converters as well")
    parser.add_argument("-o", "--out", type=Path, help="write the numbers as JSON")
    parser.add_argument("--here", metavar="MODEL", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.here:
        print(json.dumps(measure(chosen.here)))
        return
    unknown = sorted(set(chosen.models) - set(CASES))
    if unknown:
        parser.error(f"no model is called {', '.join(unknown)}: choose from {', '.join(CASES)}")
    names = chosen.models or (QUICK if chosen.quick else list(CASES))
    rows = [measured_apart(name) for name in names]
    print("\n".join(table(rows)))
    answer: dict[str, Any] = {"machine": f"{platform.system()}, {os.cpu_count()} cores", "port": rows}
    if chosen.peers:
        from benchmarks import peers

        answer["peers"] = peers.run()
        print("\n".join(peers.table(answer["peers"])))
    if chosen.out is not None:
        chosen.out.write_text(json.dumps(answer, indent=2) + "\n", "utf-8")
    if any("failure" in row for row in rows):
        sys.exit(1)


if __name__ == "__main__":
    main()
