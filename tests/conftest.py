"""Large families of like cases: a part of each is run every day, all of it by `make sweep`."""

from __future__ import annotations

from pathlib import Path

import pytest

# Every how many-th case of a file is run every day.
THINNED = {
    "converters/targets/keras/test_resize_axes.py": 4,
    "converters/targets/keras/test_resize.py": 2,
    "converters/targets/keras/test_recurrent_steps.py": 3,
    "converters/frontends/torch/test_kernels.py": 2,
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    root = Path(__file__).parent
    seen: dict[str, int] = {}
    for item in items:
        file = item.path.relative_to(root).as_posix() if item.path.is_relative_to(root) else ""
        if file in THINNED and getattr(item, "callspec", None) is not None:
            test = f"{file}::{item.originalname}"  # type: ignore[attr-defined]
            seen[test] = seen.get(test, -1) + 1
            if seen[test] % THINNED[file]:
                item.add_marker("sweep")
