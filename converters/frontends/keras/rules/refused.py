"""Layers without a translation, and why."""

from __future__ import annotations

from porter.converters.frontends.keras.table import refuse

_CHANGES = (
    *("Brightness", "ColorDegeneration", "ColorJitter", "Contrast", "Crop", "ElasticTransform", "Erasing", "Flip"),
    *("GaussianBlur", "Grayscale", "Hue", "Invert", "Perspective", "Posterization", "Rotation", "Saturation"),
    *("Sharpness", "Shear", "Translation", "Zoom"),
)
refuse(
    "looks values up or hashes them, which is no arithmetic on tensors; do it before the model",
    "Hashing",
    "HashedCrossing",
    "IntegerLookup",
    "StringLookup",
    "IndexLookup",
    "FeatureSpace",
)
refuse("works on text, which ports have no tensors for; do it before the model", "TextVectorization")
refuse(
    "changes pictures at random in training; do it in the input pipeline",
    "Pipeline",
    *("AugMix", "CutMix", "MixUp", "RandAugment", "MaxNumBoundingBoxes"),
    *("AutoContrast", "Equalization", "Solarization", "ContrastLimitedAdaptiveHistogramEqualization"),
    *(f"Random{what}" for what in _CHANGES),
)
refuse(
    "runs a model of another framework or a SavedModel; port that by itself",
    "TFSMLayer",
    "TorchModuleWrapper",
    "JaxLayer",
    "FlaxLayer",
)
refuse("keeps Fourier transforms inside that have no rule yet", "MelSpectrogram", "STFTSpectrogram")
