"""A Keras model as the one that is right by definition."""

from __future__ import annotations

import keras
import numpy as np
import pytest

import porter
from porter.errors import UnsupportedError

IMAGES = (np.random.default_rng(0).normal(size=(2, 6, 6, 3)).astype(np.float32),)


@pytest.fixture(scope="module")
def model() -> keras.Model:
    keras.utils.set_random_seed(0)
    steps = [
        keras.layers.Conv2D(4, 3, padding="same"),
        keras.layers.BatchNormalization(),
        keras.layers.ReLU(),
        keras.layers.Flatten(),
        keras.layers.Dense(3),
    ]
    return keras.Sequential([keras.Input((6, 6, 3)), *steps])


def copy_of(model: keras.Model, factor: float) -> keras.Model:
    """The same model, its first kernel times a factor."""
    copy = keras.models.clone_model(model)
    first, *rest = model.get_weights()
    copy.set_weights([first * np.float32(factor), *rest])
    return copy


def test_a_copy_is_equal(model: keras.Model) -> None:
    report = porter.verify(model, copy_of(model, 1), IMAGES, draws=1)
    assert report.passed and {d.leg for d in report.differences} == {"semantics", "precision"}


def test_a_changed_kernel_is_found(model: keras.Model) -> None:
    report = porter.verify(model, copy_of(model, 1.001), IMAGES, draws=1)
    assert not report.passed and report.culprit.class_name == "Conv2D"


def test_what_is_no_model_is_refused(model: keras.Model) -> None:
    with pytest.raises(UnsupportedError, match="dict"):
        porter.verify({}, model, IMAGES)
