"""`keras.applications`, small and seeded: the table is complete, and every model answers with something to compare."""

import keras
import numpy as np
import pytest

from porter.zoo.keras.applications import APPLICATIONS, DYNAMIC, EVERYDAY, inputs, make

ALL = [
    pytest.param(name, marks=() if name in EVERYDAY else pytest.mark.sweep)  # 40 models, 1.6 billion weights
    for name in APPLICATIONS
]


def test_the_table_is_complete() -> None:
    assert set(APPLICATIONS) == {name for name in dir(keras.applications) if name[0].isupper()}


@pytest.mark.parametrize("name", ALL)
def test_answers_are_worth_comparing(name: str) -> None:
    model = make(name)
    answer = np.asarray(model(inputs(name), training=False))
    assert answer.shape == (2, 1000)
    np.testing.assert_allclose(answer.sum(axis=1), 1, rtol=1e-4)
    # A softmax that answers 0 and 1, or a thousandth everywhere, hides what is in front of it.
    assert 1.5e-3 < answer.max() < 0.6
    assert np.abs(answer[0] - answer[1]).max() > 0.05 * answer.max()
    for variable in model.weights:
        if "seed_generator" not in variable.path and not variable.path.endswith("/count"):
            value = variable.numpy()
            assert (value != 0).all() and len(np.unique(value)) > 1, variable.path
    keras.backend.clear_session()


@pytest.mark.parametrize("name", ["MobileNetV3Small", "ResNet50V2"])
def test_dynamic_models_take_other_sizes(name: str) -> None:
    model = make(name, dynamic=True)
    assert {axis for axis, size in enumerate(model.inputs[0].shape) if size is None} == set(DYNAMIC["images"])
    images = inputs(name, batch=3)["images"]
    for picture in (images, images[:, :49, :58]):
        assert np.isfinite(np.asarray(model(picture, training=False))).all()


def test_the_same_seed_gives_the_same_model() -> None:
    first, second = make("MobileNetV3Small", 32), make("MobileNetV3Small", 32)
    for a, b in zip(first.weights, second.weights, strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())
