"""Models that other packages build by name: timm, torchvision, transformers and keras.applications.

A name alone gives the architecture with fresh weights; `@pretrained` (for transformers: `@CHECKPOINT`) asks the package
for its trained weights, which it may have to download.
"""

import importlib
from types import ModuleType
from typing import Any

from porter.errors import ReferenceError_
from porter.factories import call, suggestion

HUBS = ("timm", "torchvision", "transformers", "keras.applications")
_FRAMEWORKS = {"timm": "torch", "torchvision": "torch", "transformers": "torch", "keras.applications": "keras"}
# Height and width of an example (pixels) for models that take any.
_SIDE = 224
_SEED = 0


def load(hub: str, name: str, reference: str) -> tuple[Any, Any, str]:
    """(model in eval mode, example inputs, framework).

    Raises ReferenceError_ when the package is missing, or has no model of that name.
    """
    name, _, variant = name.partition("@")
    package = _package(hub, reference)
    build = {
        "timm": _timm,
        "torchvision": _torchvision,
        "transformers": _transformers,
        "keras.applications": _applications,
    }[hub]
    model, inputs = build(package, name, variant, reference)
    return model, inputs, _FRAMEWORKS[hub]


def _package(hub: str, reference: str) -> ModuleType:
    try:
        return importlib.import_module(hub)
    except ModuleNotFoundError as error:
        missing = error.name or hub
        raise ReferenceError_(f"{reference}: {missing} is not installed; pip install {missing}") from error


def _timm(timm: Any, name: str, variant: str, reference: str) -> tuple[Any, Any]:
    _known(name, timm.list_models(), "timm", reference)
    _variant(variant, ("", "pretrained"), reference)
    model = call(lambda: timm.create_model(name, pretrained=bool(variant)), reference).eval()
    channels, height, width = model.default_cfg.get("input_size", (3, 224, 224))
    return model, (_image((2, channels, height, width)),)


def _torchvision(torchvision: Any, name: str, variant: str, reference: str) -> tuple[Any, Any]:
    models = torchvision.models
    _known(name, models.list_models(), "torchvision", reference)
    _variant(variant, ("", "pretrained"), reference)
    weights = "DEFAULT" if variant else None
    model = call(lambda: models.get_model(name, weights=weights), reference).eval()
    side = 299 if name == "inception_v3" else 224
    return model, (_image((2, 3, side, side)),)


def _transformers(transformers: Any, name: str, variant: str, reference: str) -> tuple[Any, Any]:
    _known(name, [entry for entry in dir(transformers) if entry[:1].isupper()], "transformers", reference)
    model_class = getattr(transformers, name)
    if not hasattr(model_class, "from_pretrained"):
        raise ReferenceError_(f"{reference}: transformers.{name} is not a model class")
    if variant:
        model = call(lambda: model_class.from_pretrained(variant), reference)
    elif getattr(model_class, "config_class", None) is None:
        raise ReferenceError_(f"{reference}: {name} needs a checkpoint: write transformers:{name}@CHECKPOINT")
    else:
        model = call(lambda: model_class(model_class.config_class()), reference)
    return model.eval(), {key: value for key, value in model.dummy_inputs.items() if value is not None}


def _applications(applications: Any, name: str, variant: str, reference: str) -> tuple[Any, Any]:
    _known(name, [entry for entry in dir(applications) if entry[:1].isupper()], "keras.applications", reference)
    _variant(variant, ("", "pretrained"), reference)
    weights = "imagenet" if variant else None
    model = call(lambda: getattr(applications, name)(weights=weights), reference)
    return model, (_image((2, *(size or _SIDE for size in model.input_shape[1:]))),)


def _known(name: str, names: list[str], hub: str, reference: str) -> None:
    if name not in names:
        raise ReferenceError_(f"{reference}: {hub} has no model {name!r}{suggestion(name, names)}")


def _variant(variant: str, allowed: tuple[str, ...], reference: str) -> None:
    if variant not in allowed:
        raise ReferenceError_(f"{reference}: {variant!r} is no variant; leave it out or write @pretrained")


def _image(shape: tuple[int, ...]) -> Any:
    import numpy as np

    return np.random.default_rng(_SEED).standard_normal(shape, dtype=np.float32)
