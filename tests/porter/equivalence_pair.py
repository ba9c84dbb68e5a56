"""A small model written by hand in both frameworks, and the mistakes that people make when they port one."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import tensorflow as tf
import torch
from torch import nn

# Arrays this small gain nothing from threads, and on a busy machine waiting for them takes most of the time.
torch.set_num_threads(1)

INPUT_PERMUTATIONS = [(0, 2, 3, 1)]
SHAPES = [("batch", 3, "height", "width")]


class TorchNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.bn = nn.BatchNorm2d(8)
        self.act = nn.GELU()
        self.ln = nn.LayerNorm(8)
        self.fc = nn.Linear(8, 5)
        self.softmax = nn.Softmax(dim=-1)

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        x = self.act(self.bn(self.conv(x)))
        x = self.ln(x.mean(dim=(2, 3)))
        logits = self.fc(x)
        return {"logits": logits, "probs": self.softmax(logits)}


def torch_net(seed: int = 0) -> TorchNet:
    torch.manual_seed(seed)
    net = TorchNet()
    with torch.no_grad():
        net.bn.running_mean.normal_()
        net.bn.running_var.uniform_(0.05, 2.0)
        net.ln.weight.normal_(1.0, 0.2)
        net.ln.bias.normal_()
    return net.eval()


class KerasNet(keras.Model):
    """The port; `bug` plants one mistake."""

    def __init__(self, bug: str | None = None) -> None:
        super().__init__()
        self.bug = bug
        self.conv = keras.layers.Conv2D(8, 3, padding="same")
        self.bn = keras.layers.BatchNormalization(epsilon=1e-3 if bug == "bn eps" else 1e-5)
        self.act = keras.layers.Activation(lambda x: keras.activations.gelu(x, approximate=bug == "gelu tanh"))
        self.ln = keras.layers.LayerNormalization(epsilon=1e-6 if bug == "ln eps" else 1e-5)
        self.fc = keras.layers.Dense(5)
        self.softmax = keras.layers.Softmax(axis=0 if bug == "softmax axis" else -1)

    def call(self, x: Any) -> Any:
        x = self.act(self.bn(self.conv(x)))
        x = self.ln(keras.ops.mean(x, axis=(1, 2)))
        if self.bug == "own code":
            x = x * (1 + 1e-4)
        if self.bug == "half kernel" and keras.config.floatx() == "float32":
            x = tf.cast(tf.cast(x, "float16"), "float32")
        logits = self.fc(x)
        probs = self.softmax(logits)
        if self.bug == "nan":
            logits = tf.where(logits == keras.ops.max(logits), np.nan, logits)
        if self.bug == "dtype":
            logits = tf.cast(logits, "float16")
        if self.bug == "shape":
            probs = probs[:, None]
        if self.bug == "one output":
            return {"logits": logits}
        if self.bug == "raises":
            raise ValueError("no kernel for this")
        return {"logits": probs, "probs": logits} if self.bug == "swapped" else {"logits": logits, "probs": probs}


def keras_net(source: TorchNet, bug: str | None = None) -> KerasNet:
    """The port with the source's weights, in whatever precision Keras is set to."""
    state = {name: value.numpy() for name, value in source.state_dict().items()}
    net = KerasNet(bug)
    net(np.zeros((2, 8, 8, 3), dtype=keras.config.floatx())) if bug != "raises" else net.conv.build((2, 8, 8, 3))
    kernel, fc_bias = state["conv.weight"].transpose(2, 3, 1, 0), state["fc.bias"]
    if bug == "fp16 weights":
        kernel = kernel.astype(np.float16).astype(np.float32)
    if bug == "one bias":
        fc_bias = fc_bias + np.eye(5, dtype=np.float32)[2] * 1e-3
    net.conv.set_weights([kernel, state["conv.bias"]])
    if bug == "raises":
        return net
    net.bn.set_weights([state[f"bn.{name}"] for name in ("weight", "bias", "running_mean", "running_var")])
    net.ln.set_weights([state["ln.weight"], state["ln.bias"]])
    net.fc.set_weights([state["fc.weight"].T, fc_bias])
    return net


def example() -> np.ndarray:
    return np.random.default_rng(7).standard_normal((4, 3, 8, 8)).astype(np.float32)
