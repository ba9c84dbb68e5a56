"""Every constructor of `keras.applications`, small enough to try and with weights that mean something.

Nothing is downloaded: `weights=None`, then seeded values everywhere, and BatchNormalization statistics as measured on a
batch of pictures.
"""

from dataclasses import dataclass

import keras
import numpy as np

from porter.zoo.keras.seeding import seed_weights, settle_statistics

DYNAMIC = {"images": {0: "batch", 1: "height", 2: "width"}}
"""The axes that may vary in a model made with `dynamic=True`; otherwise only the first."""
MEAN, VARIANCE = (0.485, 0.456, 0.406), (0.229**2, 0.224**2, 0.225**2)
BRANCH = 0.3
# Pixels in one channel. The last feature maps are so small that fewer images give statistics that hold for them alone.
MEASURED = 64 * 64**2


@dataclass(frozen=True)
class Application:
    """One constructor.

    `side` is a height and width (pixels) at which the last feature map of the network is still larger than one pixel
    wherever that is legal and affordable. `scales` says that it takes bytes of 0 to 255 and scales them itself. `gain`
    is that of `seed_weights`.
    """

    name: str
    family: str
    side: int = 64
    scales: bool = False
    gain: float = 1.0


_FAMILIES = {
    "ConvNeXt": ("ConvNeXtTiny", "ConvNeXtSmall", "ConvNeXtBase", "ConvNeXtLarge", "ConvNeXtXLarge"),
    "DenseNet": ("DenseNet121", "DenseNet169", "DenseNet201"),
    "EfficientNet": tuple(f"EfficientNetB{size}" for size in range(8)),
    "EfficientNetV2": tuple(f"EfficientNetV2{size}" for size in ("B0", "B1", "B2", "B3", "S", "M", "L")),
    "InceptionResNetV2": ("InceptionResNetV2",),
    "InceptionV3": ("InceptionV3",),
    "MobileNet": ("MobileNet",),
    "MobileNetV2": ("MobileNetV2",),
    "MobileNetV3": ("MobileNetV3Small", "MobileNetV3Large"),
    "NASNet": ("NASNetMobile", "NASNetLarge"),
    "ResNet": ("ResNet50", "ResNet101", "ResNet152"),
    "ResNetV2": ("ResNet50V2", "ResNet101V2", "ResNet152V2"),
    "VGG": ("VGG16", "VGG19"),
    "Xception": ("Xception",),
}
_SIDES = {"InceptionResNetV2": 139, "InceptionV3": 139, "Xception": 96}
_SCALING = ("ConvNeXt", "EfficientNet", "EfficientNetV2", "MobileNetV3")

APPLICATIONS = {
    name: Application(name, family, _SIDES.get(family, 64), family in _SCALING, 1.6 if family == "VGG" else 1.0)
    for family, names in _FAMILIES.items()
    for name in names
}
EVERYDAY = tuple(names[0] for names in _FAMILIES.values())
"""The smallest of each family."""


def make(name: str, size: int | None = None, *, dynamic: bool = False) -> keras.Model:
    """The model called `name` for images of `size` x `size` pixels (default: its `side`), built and seeded.

    With `dynamic` its images may have any height and width; the constructors allow that only without their head, so it
    ends with the mean over the last feature map.

    Raises KeyError for a name that `keras.applications` does not have, ValueError for a size that is too small.
    """
    application = APPLICATIONS[name]
    side = None if dynamic else size or application.side
    head = {"include_top": False, "pooling": "avg"} if dynamic else {}
    model = getattr(keras.applications, name)(
        weights=None,
        input_shape=(side, side, 3),
        input_tensor=keras.Input((side, side, 3), name="images"),
        **head,
    )
    seed_weights(model, gain=application.gain)
    for layer in model.layers:
        if layer.name.endswith("project_bn"):
            # Ends a branch that is added; with a hundred of full strength the network is chaotic.
            layer.gamma.assign(layer.gamma * BRANCH)
        if isinstance(layer, keras.layers.Normalization) and layer.input_mean is None:
            layer.adapt_mean.assign(MEAN)
            layer.adapt_variance.assign(VARIANCE)
            layer.finalize_state()
    batch = min(64, max(16, MEASURED // (size or application.side) ** 2))
    return settle_statistics(model, inputs(name, size, batch=batch, seed=1)["images"])


def inputs(name: str, size: int | None = None, *, batch: int = 2, seed: int = 0) -> dict[str, np.ndarray]:
    """Images (batch, size, size, 3): N(0, 1), or whole numbers of 0 to 255 where the model scales them itself."""
    application = APPLICATIONS[name]
    shape = (batch, size or application.side, size or application.side, 3)
    rng = np.random.default_rng(seed)
    if application.scales:
        return {"images": rng.integers(0, 256, shape).astype(np.float32)}
    return {"images": rng.standard_normal(shape, dtype=np.float32)}
