"""These tests need torch and torch_npu; without them they are skipped, counted."""

from __future__ import annotations

import importlib.util

import pytest

from ascendopt_tune.torch_ops import activate

HAVE_TORCH_NPU = all(importlib.util.find_spec(name) is not None for name in ("torch", "torch_npu"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not HAVE_TORCH_NPU:
        for item in items:
            if "tests/torch" in item.path.as_posix():
                item.add_marker(pytest.mark.skip(reason="torch or torch_npu is not installed"))


if HAVE_TORCH_NPU:
    activate.activate()
