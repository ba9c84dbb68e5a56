"""What the zoo holds, readable without loading a framework.

Every row names one module `porter.zoo.<framework>.<name>`. Each of those defines

    make(*, small=False)                      the model with seeded weights, in eval mode
    inputs(*, small=False, batch=2, seed=0)   example inputs as numpy arrays, by argument name
    DYNAMIC                                   {argument: {axis: symbol}}: the axes that may vary

A Keras module is the hand-written twin of the torch module of the same name and also defines
`copy_weights(torch_model, keras_model)`.
"""

import difflib
import importlib
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

FRAMEWORKS = ("torch", "keras")


@dataclass(frozen=True)
class Entry:
    """One model of the zoo; its framework is imported by the first method that needs it."""

    name: str
    framework: str
    kind: str
    summary: str

    @property
    def module(self) -> str:
        """The import path of the module that defines the model."""
        return f"porter.zoo.{self.framework}.{self.name}"

    @property
    def dynamic(self) -> dict[str, dict[int, str]]:
        """The axes that may vary: {argument: {axis: symbol}}."""
        return self._load().DYNAMIC

    def make(self, *, small: bool = False) -> Any:
        """The model (`nn.Module` or `keras.Model`) with seeded weights, in eval mode."""
        return self._load().make(small=small)

    def inputs(self, *, small: bool = False, batch: int = 2, seed: int = 0) -> "dict[str, np.ndarray]":
        """Example inputs for `make(small=small)`, by argument name."""
        return self._load().inputs(small=small, batch=batch, seed=seed)

    def _load(self) -> ModuleType:
        return importlib.import_module(self.module)


_TORCH = {
    "cnn": {
        "lenet": "LeNet-5: two convolutions, average pooling, three linear layers",
        "vgg16": "VGG-16 with BatchNorm; flattens a feature map into a linear layer",
        "resnet18": "ResNet-18 of basic blocks",
        "resnet50": "ResNet-50 of bottleneck blocks",
        "wrn16_4": "WRN-16-4: wide pre-activation ResNet with Dropout",
        "densenet40_12": "DenseNet, 40 layers, growth 12, no bottlenecks: concatenation",
        "mobilenet_v2": "MobileNetV2: depthwise convolutions, ReLU6, inverted residuals",
        "efficientnet_b0": "EfficientNet-B0: squeeze-and-excitation, SiLU",
        "convnext_tiny": "ConvNeXt-V2 Tiny: channels-last LayerNorm and global response normalisation",
        "unet": "U-Net whose decoder has transposed convolutions and bilinear upsampling",
        "cnn3d": "3-D convolutional classifier of video clips",
        "tcn": "1-D temporal network: causal dilated convolutions with residuals",
        "dcgan": "DCGAN generator: transposed convolutions from a latent vector",
        "vae": "Convolutional variational autoencoder; samples in training, takes the mean in eval",
        "superres": "Sub-pixel super-resolution: PixelShuffle",
        "stn": "Spatial transformer: affine_grid and grid_sample before a classifier",
    },
    "sequence": {
        "lstm_classifier": "Text classifier: stacked bidirectional LSTM, mean pooling",
        "gru_lm": "GRU language model whose head shares its matrix with the embedding",
        "seq2seq": "GRU translation model with additive attention: one step of decoding",
        "transformer": "Encoder-decoder Transformer built on nn.Transformer",
        "bert_tiny": "BERT encoder with a padding mask and a pooler",
        "gpt_tiny": "Decoder-only language model in the manner of GPT-2",
        "vit_tiny": "Vision Transformer: patch embedding, class token",
        "t5_bias": "T5 encoder: relative position bias, RMS norms, gated feed-forward",
        "mixer": "MLP-Mixer: linear layers over patches and over channels",
        "mamba": "Selective state-space language model in the manner of Mamba-2",
    },
    "other": {
        "mlp": "Deep GELU network, ill-conditioned on purpose",
        "dlrm": "Recommendation model: embedding bags and dense features, compared pair by pair",
        "gcn": "Graph convolutional network over an edge list",
        "fourier": "Fourier neural operator in one dimension",
    },
}
_KERAS = (
    "resnet50",
    "vgg16",
    "densenet40_12",
    "wrn16_4",
    "mobilenet_v2",
    "unet",
    "bert_tiny",
    "vit_tiny",
    "lstm_classifier",
)


def _rows() -> tuple[Entry, ...]:
    torch = [Entry(name, "torch", kind, text) for kind, models in _TORCH.items() for name, text in models.items()]
    twin = {entry.name: entry for entry in torch}
    keras = [Entry(name, "keras", twin[name].kind, f"{twin[name].summary} (Keras twin)") for name in _KERAS]
    return (*torch, *keras)


_ENTRIES = _rows()


def entries(framework: str | None = None) -> tuple[Entry, ...]:
    """All entries, or those of one framework ("torch" or "keras").

    Raises ValueError for another framework.
    """
    if framework is None:
        return _ENTRIES
    if framework not in FRAMEWORKS:
        raise ValueError(f"framework {framework!r} is not in the zoo: choose one of {', '.join(FRAMEWORKS)}")
    return tuple(entry for entry in _ENTRIES if entry.framework == framework)


def find(name: str, framework: str = "torch") -> Entry:
    """The entry called `name`: "resnet50", "torch/resnet50" or "keras/resnet50"; a prefix wins over `framework`.

    Raises ValueError, naming close matches, when the zoo has no such model.
    """
    prefix, slash, rest = name.rpartition("/")
    wanted, framework = (rest, prefix) if slash else (name, framework)
    for entry in entries(framework):
        if entry.name == wanted:
            return entry
    close = difflib.get_close_matches(wanted, [entry.name for entry in entries(framework)], n=3, cutoff=0.5)
    elsewhere = [f"{entry.framework}/{entry.name}" for entry in _ENTRIES if entry.name == wanted]
    matches = elsewhere + [f"{framework}/{match}" for match in close]
    hint = f"did you mean {' or '.join(matches)}?" if matches else "`porter zoo list` names them all"
    raise ValueError(f"the zoo has no {framework} model {wanted!r}: {hint}")
