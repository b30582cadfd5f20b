"""These tests need torch and torch_npu; without them they are skipped, counted."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ascendopt_tune.nouns.case import Case, TensorSpec
from ascendopt_tune.settings import override
from ascendopt_tune.sources.registry import load_operator
from ascendopt_tune.torch_ops.device import activate
from ascendopt_tune.tuner import tune_case

HAVE_TORCH_NPU = all(importlib.util.find_spec(name) is not None for name in ("torch", "torch_npu"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not HAVE_TORCH_NPU:
        for item in items:
            if "tests/torch" in item.path.as_posix():
                item.add_marker(pytest.mark.skip(reason="torch or torch_npu is not installed"))


if HAVE_TORCH_NPU:
    activate.activate()

#: The case that :func:`tuned_add` has a result for.
ADD_SHAPE = (64, 512)


@pytest.fixture(scope="session")
def tuned_add(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache folder with one tuned case of ``add``, float16: made once, used as a read-only layer."""
    root = tmp_path_factory.mktemp("tuned")
    spec = TensorSpec("float16", ADD_SHAPE)
    with override(cache_dir=root):
        record = tune_case(load_operator("add"), Case((spec, spec), (spec,)), budget=8, target="virtual", workers=2)
    assert record.entry.improved
    return root


@pytest.fixture(scope="session")
def fast_library() -> Any:
    """The fast path's library: compiled once, into the toolkit folder that all tests and their processes share."""
    from ascendopt_tune.torch_ops.serving import fast_path

    library = fast_path.library(wait=True)
    assert library is not None, fast_path.remark()
    return library


@pytest.fixture(autouse=True)
def _own_background() -> Iterator[None]:
    """What a test asked of the background process is forgotten after it."""
    yield
    if "ascendopt_tune.service.lazy" in sys.modules:
        background = sys.modules["ascendopt_tune.service.lazy"].background
        background.close()
        background.jobs.clear()


@pytest.fixture
def layer(tuned_add: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """:func:`tuned_add`, looked up by every tuned operator of the test."""
    monkeypatch.setenv("ASCENDOPT_CACHE_LAYERS", str(tuned_add))
    return tuned_add
