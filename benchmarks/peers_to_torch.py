"""The chains of converters to PyTorch, on the Keras models of the zoo: tf2onnx, then onnx2torch or onnx2pytorch.

As in `benchmarks.peers`: an environment for each below `build/peers`, and a tool that cannot be installed, fails or
takes too long is a row that says so. Everything is measured in the process that converts, one thread on each side.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.peers import convert, environment, zoo_alone

# tf2onnx runs TensorFlow, and both of the others import torchvision.
_CHAIN = ("tf2onnx", "tensorflow", "torch", "torchvision")
PEERS = {"onnx2torch": (*_CHAIN, "onnx2torch"), "onnx2pytorch": (*_CHAIN, "onnx2pytorch")}
MODELS = (
    "resnet50_functional",
    "mobilenet_v2_functional",
    "efficientnet_b0_functional",
    "vgg16_sequential",
    "lstm_sequential",
    "seq2seq_attention",
    "translation_transformer",
)
SCRIPT = Path(__file__).with_name("peer_to_torch_run.py")


def run(tools: tuple[str, ...], models: tuple[str, ...], *, small: bool) -> list[dict[str, Any]]:
    """One row for each tool and model."""
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        home = zoo_alone(Path(folder) / "home")
        for tool in tools:
            python, problem = environment(tool, PEERS)
            for model in models:
                place = Path(folder) / tool / model
                place.mkdir(parents=True)
                reference = f"{model}@small" if small else model
                found = {"failure": problem} if problem else convert(python, SCRIPT, tool, reference, place, home)
                rows.append({"tool": tool, "model": model, **found})
                print("\n".join(table(rows[-1:])[2:]), file=sys.stderr, flush=True)
    return rows


def table(rows: list[dict[str, Any]]) -> list[str]:
    """Markdown."""
    heads = ("tool", "model", "CPU (s)", "memory (MB)", "BatchNorms", "layer names", "time / Keras", "largest error")
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for row in rows:
        if "failure" in row:
            cells = [f"failed: {row['failure']}", *[""] * 5]
        else:
            cells = [
                f"{row['cpu']:.1f}",
                f"{row['memory']:.0f}",
                f"{row['norms']} of {row['norms_source']}",
                f"{row['names']} of {row['names_source']}",
                f"{row['ratio']:.2f}",
                f"{row['error']:.1e}",
            ]
        lines.append("| " + " | ".join([row["tool"], row["model"], *cells]) + " |")
    return lines


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tools", nargs="*", default=["porter", *PEERS], metavar="TOOL")
    parser.add_argument("--models", nargs="+", default=MODELS, metavar="NAME")
    parser.add_argument("--small", action="store_true", help="models of small width")
    given = parser.parse_args()
    print("\n".join(table(run(tuple(given.tools), tuple(given.models), small=given.small))))
