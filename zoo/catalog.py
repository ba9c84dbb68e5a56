"""What the zoo holds, readable without loading a framework.

Every row names one module `porter.zoo.<framework>.<name>`. Each of those defines

    make(*, small=False)                      the model with seeded weights, in eval mode
    inputs(*, small=False, batch=2, seed=0)   example inputs as numpy arrays, by argument name
    DYNAMIC                                   {argument: {axis: symbol}}: the axes that may vary

A name that two frameworks share is one model: in one of them the original, in the other its twin, written by hand as a
yardstick for ports. A twin also defines `copy_weights(original_model, twin_model)`.

Inputs of a Keras original are named as its `keras.Input`s are, or as the arguments of its `call`.
"""

import difflib
import importlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

FRAMEWORKS = ("torch", "keras", "tensorflow")


@dataclass(frozen=True)
class Entry:
    """One model of the zoo; its framework is imported by the first method that needs it."""

    name: str
    framework: str
    kind: str
    summary: str
    twin: bool = False

    @property
    def module(self) -> str:
        """The import path of the module that defines the model."""
        return f"porter.zoo.{self.framework}.{self.name}"

    @property
    def dynamic(self) -> dict[str, dict[int, str]]:
        """The axes that may vary: {argument: {axis: symbol}}."""
        return self._load().DYNAMIC

    def make(self, *, small: bool = False) -> Any:
        """The model (`nn.Module`, `keras.Model`, `tf.Module` or a function) with seeded weights, in eval mode."""
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
_KERAS = {
    "cnn": {
        "resnet50_functional": "ResNet-50 with the functional API: stride on the first 1 x 1 convolution",
        "mobilenet_v2_functional": "MobileNetV2 with the functional API: padding below and to the right",
        "efficientnet_b0_functional": "EfficientNet-B0 with the functional API: scales its pixels, SAME padding",
        "densenet40_12_functional": "DenseNet, 40 layers, growth 12, with the functional API: names that Keras counts",
        "vgg16_sequential": "VGG-16 as a Sequential model: flattens a feature map into a dense layer",
        "separable_unet": "Segmentation: separable convolutions down, transposed ones up",
        "photo_classifier": "Bytes of any size: Resizing, CenterCrop, Rescaling and Normalization in the model",
        "siamese": "Two inputs, two outputs, one encoder and one head for both",
        "vae_subclassed": "Variational autoencoder of layers of its own; answers with a dict",
    },
    "sequence": {
        "lstm_sequential": "Text classifier as a Sequential model: LSTM, bidirectional LSTM",
        "masked_lstm": "Tagger and classifier of padded sentences: Embedding(mask_zero), implicit masks",
        "seq2seq_attention": "GRU translation model with dot-product attention, subclassed",
        "translation_transformer": "Encoder-decoder Transformer on MultiHeadAttention, subclassed",
        "wavenet": "Causal dilated 1-D convolutions with gates and skip connections",
    },
}
_TENSORFLOW = {
    "cnn": {"tf1_convnet": "TensorFlow 1 graph with variable scopes; written as frozen graph, SavedModel, checkpoint"},
    "other": {"cellular_automaton": "tf.Module with a tf.while_loop: one rule for every cell, as often as asked"},
}
_TWINS = {
    "torch": (
        "resnet50_functional",
        "mobilenet_v2_functional",
        "efficientnet_b0_functional",
        "densenet40_12_functional",
        "vgg16_sequential",
    ),
    "keras": (
        "resnet50",
        "vgg16",
        "densenet40_12",
        "wrn16_4",
        "mobilenet_v2",
        "unet",
        "bert_tiny",
        "vit_tiny",
        "lstm_classifier",
    ),
}


def _rows() -> Iterator[Entry]:
    rows = {
        name: Entry(name, framework, kind, text)
        for framework, kinds in (("torch", _TORCH), ("keras", _KERAS), ("tensorflow", _TENSORFLOW))
        for kind, models in kinds.items()
        for name, text in models.items()
    }
    yield from rows.values()
    for framework, names in _TWINS.items():
        for original in (rows[name] for name in names):
            yield replace(original, framework=framework, summary=f"{original.summary} (twin)", twin=True)


_ENTRIES = tuple(_rows())


def entries(framework: str | None = None) -> tuple[Entry, ...]:
    """All entries, or those of one framework ("torch", "keras" or "tensorflow").

    Raises ValueError for another framework.
    """
    if framework is None:
        return _ENTRIES
    if framework not in FRAMEWORKS:
        raise ValueError(f"framework {framework!r} is not in the zoo: choose one of {', '.join(FRAMEWORKS)}")
    return tuple(entry for entry in _ENTRIES if entry.framework == framework)


def originals(framework: str) -> tuple[Entry, ...]:
    """The entries of one framework that are no twins."""
    return tuple(entry for entry in entries(framework) if not entry.twin)


def twins(framework: str) -> tuple[Entry, ...]:
    """The entries of one framework that are twins of an original in another."""
    return tuple(entry for entry in entries(framework) if entry.twin)


def sources(target: str) -> tuple[Entry, ...]:
    """The entries that may be ported to `target` ("keras" or "torch"): all that are not written in it."""
    return entries("torch") if target != "torch" else (*entries("keras"), *entries("tensorflow"))


def find(name: str, *, to: str | None = None) -> Entry:
    """The entry called `name`: "torch/resnet50", "keras/resnet50", or "resnet50" alone.

    A name alone is the entry that may be ported `to` a framework; without one it is the original.

    Raises ValueError, naming close matches, when the zoo has no such model.
    """
    prefix, slash, rest = name.rpartition("/")
    if slash:
        candidates, where = entries(prefix), f"{prefix} model"
    elif to is None:
        candidates, where = tuple(entry for entry in _ENTRIES if not entry.twin), "model"
    else:
        candidates, where = sources(to), f"model to port to {to}"
    for entry in candidates:
        if entry.name == rest:
            return entry
    elsewhere = [entry for entry in _ENTRIES if entry.name == rest]
    close = difflib.get_close_matches(rest, [entry.name for entry in candidates], n=3, cutoff=0.5)
    near = [*elsewhere, *(entry for entry in candidates if entry.name in close)]
    matches = [f"{entry.framework}/{entry.name}" for entry in near]
    hint = f"did you mean {' or '.join(matches)}?" if matches else "`porter zoo list` names them all"
    raise ValueError(f"the zoo has no {where} {rest!r}: {hint}")
