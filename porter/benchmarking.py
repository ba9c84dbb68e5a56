"""`porter.benchmark`: the two sides of a pair, timed on the same arrays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from porter.converters.signature import as_array, leaves
from porter.errors import InputError, UnsupportedError
from porter.ports import Port
from porter.verification import source_call


def benchmark(source: Any, target_or_port: Any, inputs: Any = None, **settings: Any) -> Any:
    """Time a PyTorch source (eager) against its port (a compiled `tf.function`), interleaved and synchronised.

    `settings` are those of `porter.timing.measure.benchmark` (rounds, seed, …).

    Raises:
        InputError, ReferenceError_: an argument does not fit.
    """
    from porter.timing.frameworks import equal_threads, keras_side, torch_side
    from porter.timing.measure import benchmark as measured

    if isinstance(source, str | Path):
        from porter import references

        loaded = references.load(str(source))
        source, inputs = loaded.model, loaded.inputs if inputs is None else inputs
    if inputs is None:
        raise InputError("no example inputs: give a tuple of positional arguments or a dict of keyword arguments")
    pair = Port(target_or_port) if isinstance(target_or_port, str | Path) else target_or_port
    threads = equal_threads()
    arrays = [as_array(leaf) for leaf in leaves(inputs)]
    a = torch_side(source, arrays, call=source_call(inputs))
    if isinstance(pair, Port):
        b = keras_side(
            pair.load(),
            list(pair.to_target(inputs)),
            call=lambda model, tensors: model(*tensors),
            name=f"port {pair.path}",
        )
    elif any(cls.__module__.partition(".")[0] == "keras" for cls in type(pair).__mro__):
        b = keras_side(pair, arrays, call=lambda model, tensors: model(*tensors))
    else:
        raise UnsupportedError(f"a target of type {type(pair).__name__}: this version times a port or a Keras model")
    return measured(a, b, settings=threads, **settings)
