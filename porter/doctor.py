"""Examines the installation: versions, devices, threads, the switches that change numbers, and what is missing."""

import importlib
import os
import platform
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from importlib import metadata
from typing import Any

_NEEDED = ("torch", "tensorflow", "keras", "onnx", "onnx-ir", "onnxscript", "numpy", "safetensors", "ruff")
_OPTIONAL = {
    "timm": "references timm:NAME",
    "torchvision": "references torchvision:NAME",
    "transformers": "references transformers:CLASS",
}
_RUNTIMES = ("onnxruntime-gpu", "onnxruntime")
_VARIABLES = (
    "KERAS_BACKEND",
    "OMP_NUM_THREADS",
    "CUDA_VISIBLE_DEVICES",
    "TF_ENABLE_ONEDNN_OPTS",
    "TF_DETERMINISTIC_OPS",
    "NVIDIA_TF32_OVERRIDE",
    "CUBLAS_WORKSPACE_CONFIG",
    "XLA_FLAGS",
)


@dataclass(frozen=True)
class Missing:
    """A package that is not there or does not load, and how to get it."""

    name: str
    purpose: str
    remedy: str
    required: bool


@dataclass(frozen=True)
class Diagnosis:
    """What `porter doctor` prints."""

    python: dict[str, str]
    versions: dict[str, str]
    torch: dict[str, str]
    tensorflow: dict[str, str]
    environment: dict[str, str]
    missing: tuple[Missing, ...]

    @property
    def healthy(self) -> bool:
        """Whether all that porter needs is there."""
        return not any(missing.required for missing in self.missing)

    def sections(self) -> Iterable[tuple[str, dict[str, str]]]:
        """(title, values) in reading order, without empty sections."""
        titles = ("python", "versions", "torch", "tensorflow", "environment")
        return [(title, getattr(self, title)) for title in titles if getattr(self, title)]

    def to_json(self) -> dict[str, Any]:
        """All sections as plain values, with `healthy`."""
        return {**asdict(self), "healthy": self.healthy}


def examine() -> Diagnosis:
    """Look at this process's installation; loads the frameworks and changes no setting."""
    versions = {name: version for name in (*_NEEDED, *_RUNTIMES, *_OPTIONAL) if (version := _version(name))}
    missing = [
        *(Missing(name, "porter needs it", f"pip install {name}", True) for name in _NEEDED if name not in versions),
        *(Missing(name, why, f"pip install {name}", False) for name, why in _OPTIONAL.items() if name not in versions),
    ]
    if not any(name in versions for name in _RUNTIMES):
        missing.append(Missing("onnxruntime", "porter needs it", "pip install onnxruntime", True))
    torch, broken_torch = _settings("torch", _torch)
    tensorflow, broken_tensorflow = _settings("tensorflow", _tensorflow)
    missing += [broken for broken in (broken_torch, broken_tensorflow) if broken and broken.name in versions]
    return Diagnosis(
        python={"version": platform.python_version(), "executable": sys.executable, "platform": platform.platform()},
        versions={"porter": _version("porter-ml") or "not installed", **versions},
        torch=torch,
        tensorflow=tensorflow,
        environment={name: os.environ[name] for name in _VARIABLES if name in os.environ},
        missing=tuple(missing),
    )


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _settings(name: str, read: Any) -> tuple[dict[str, str], Missing | None]:
    """A framework that is installed but does not load is as good as missing: its own error says why."""
    try:
        framework = importlib.import_module(name)
    except Exception as error:
        remedy = f"it does not load ({type(error).__name__}: {error}); pip install --force-reinstall {name}"
        return {}, Missing(name, "porter needs it", remedy, True)
    return {key: str(value) for key, value in read(framework).items()}, None


def _torch(torch: Any) -> dict[str, Any]:
    cuda = torch.backends.cuda
    devices = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    return {
        "devices": ", ".join(["cpu", *devices]),
        "CUDA build": torch.version.cuda or "none (CPU only)",
        "threads": f"{torch.get_num_threads()} in an operator, {torch.get_num_interop_threads()} between operators",
        "TF32 in matmul": _on(cuda.matmul.allow_tf32),
        "TF32 in convolutions": _on(torch.backends.cudnn.allow_tf32),
        "matmul precision": torch.get_float32_matmul_precision(),
        "reduced fp16 sums": _on(cuda.matmul.allow_fp16_reduced_precision_reduction),
        "cuDNN autotuning": _on(torch.backends.cudnn.benchmark),
        "deterministic algorithms": _on(torch.are_deterministic_algorithms_enabled()),
        "default dtype": torch.get_default_dtype(),
    }


def _tensorflow(tf: Any) -> dict[str, Any]:
    import keras

    threading = tf.config.threading
    within, between = threading.get_intra_op_parallelism_threads(), threading.get_inter_op_parallelism_threads()
    gpus = [device.name.removeprefix("/physical_device:") for device in tf.config.list_physical_devices("GPU")]
    build = tf.sysconfig.get_build_info()
    return {
        "devices": ", ".join(["CPU", *gpus]),
        "CUDA build": build.get("cuda_version", "none (CPU only)"),
        "threads": f"{within or 'automatic'} in an operator, {between or 'automatic'} between operators",
        "TF32": _on(tf.config.experimental.tensor_float_32_execution_enabled()),
        "XLA by default": _on(bool(tf.config.optimizer.get_jit())),
        "Keras backend": keras.backend.backend(),
        "image data format": keras.config.image_data_format(),
        "default dtype": keras.config.floatx(),
    }


def _on(value: bool) -> str:
    return "on" if value else "off"
