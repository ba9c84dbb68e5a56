"""`--input` and `--inputs`."""

from pathlib import Path

import numpy as np
import pytest

from porter import inputspec
from porter.errors import InputError


def test_named_inputs_with_symbols() -> None:
    example = inputspec.examples(["x:float32[batch,3,side=96,side]", "mask:bool[batch,length]", "ids:int64[batch]"])
    assert {name: array.shape for name, array in example.inputs.items()} == {
        "x": (2, 3, 96, 96),
        "mask": (2, 32),
        "ids": (2,),
    }
    assert example.dynamic == {
        "x": {0: "batch", 2: "side", 3: "side"},
        "mask": {0: "batch", 1: "length"},
        "ids": {0: "batch"},
    }
    assert example.inputs["ids"].dtype == np.int64 and example.inputs["mask"].dtype == bool


def test_different_symbols_get_different_sizes() -> None:
    inputs = inputspec.examples(["x:float32[batch,n,a,b_,c]"]).inputs
    assert len(set(inputs["x"].shape)) == 5


def test_positional_inputs_and_the_same_numbers_every_time() -> None:
    first, second = (inputspec.examples([":float16[2,3]", ":float64[]"]) for _ in range(2))
    assert first.dynamic is None and first.inputs[1].shape == ()
    assert all(np.array_equal(a, b) for a, b in zip(first.inputs, second.inputs, strict=True))


def test_bfloat16() -> None:
    assert inputspec.examples(["x:bfloat16[2]"]).inputs["x"].dtype.name == "bfloat16"


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["x"], "NAME:DTYPE"),
        (["x:float32"], "NAME:DTYPE"),
        (["x:float33[2]"], "float33"),
        (["x:object[2]"], "object"),
        (["x:float32[2,-1]"], "-1"),
        (["x:float32[a=2,a=3]"], "a=3"),
        (["x:float32[a=2]", "y:float32[a=3]"], "two sizes"),
        ([":float32[batch,2]"], "argument's name"),
        (["x:float32[2]", ":float32[2]"], "every input a name"),
        (["x:float32[2]", "x:float32[2]"], "same name"),
    ],
)
def test_what_is_said_of_a_wrong_one(texts: list[str], said: str) -> None:
    with pytest.raises(InputError, match="--input") as caught:
        inputspec.examples(texts)
    assert said in str(caught.value)


def test_npz(tmp_path: Path) -> None:
    named, positional, pickled = (tmp_path / f"{name}.npz" for name in ("named", "positional", "pickled"))
    np.savez(named, x=np.zeros(3), y=np.ones(2))
    np.savez(positional, np.zeros(3), np.ones(2))
    np.savez(pickled, x=np.array([{}], dtype=object))
    assert set(inputspec.from_npz(named).inputs) == {"x", "y"}
    assert [array.shape for array in inputspec.from_npz(positional).inputs] == [(3,), (2,)]
    for wrong in (pickled, tmp_path / "missing.npz"):
        with pytest.raises(InputError, match="--inputs"):
            inputspec.from_npz(wrong)
