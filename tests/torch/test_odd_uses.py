"""Uses that are odd but plausible: forks that compute, mappings and wrong things as example inputs, methods."""

from __future__ import annotations

import os
import time
from collections import UserDict
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_npu")

import ascendopt_tune as aot  # noqa: E402
from ascendopt_tune.errors import CaseError  # noqa: E402
from ascendopt_tune.torch_ops.device import fallback  # noqa: E402
from ascendopt_tune.torch_ops.device.runtime import is_virtual  # noqa: E402
from ascendopt_tune.torch_ops.serving.registered import registered  # noqa: E402

pytestmark = [
    pytest.mark.skipif(not is_virtual(), reason="a real CANN serves"),
    pytest.mark.filterwarnings("ignore:Cannot create tensor with internal format:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning"),
]


@pytest.fixture(scope="module", autouse=True)
def aten() -> None:
    fallback.take_over()


@pytest.fixture(autouse=True)
def no_leftovers() -> None:
    registered.clear()


def test_a_fork_computes_although_its_parent_s_threads_are_gone() -> None:
    x = torch.ones((1024, 1024), dtype=torch.float32).npu()
    assert float((x + x).sum()) == 2 << 20  # large enough for torch's pool of threads
    child = os.fork()
    if child == 0:
        right = float((x + x).sum()) == 2 << 20 and torch.get_num_threads() == 1
        os._exit(0 if right else 3)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            assert os.waitstatus_to_exitcode(status) == 0
            return
        time.sleep(0.05)
    os.kill(child, 9)
    os.waitpid(child, 0)
    pytest.fail("the fork waits for threads that it doesn't have")


def _model(seen: list[Any]) -> Any:
    @aot.tune("registry/add", policy="off")
    def add(x: Any, y: Any) -> Any:
        return x + y

    def model(x: Any, y: Any = None) -> Any:
        seen.append((x, y))
        return add(x, x if y is None else y)

    return model


def _shown(value: Any) -> str:
    """A name that is the same in every process."""
    return "an iterator" if hasattr(value, "__next__") else repr(value)


@pytest.mark.parametrize("wrong", [None, 3, "x", b"x", [], [[1, 2]], ["x"], [None], iter(())], ids=_shown)
def test_what_can_t_be_example_inputs_is_told_before_the_model_runs(own_cache: Path, wrong: Any) -> None:
    seen: list[Any] = []
    with pytest.raises(CaseError, match="example inputs"):
        aot.warmup(_model(seen), wrong, progress=lambda _: None)
    with pytest.raises(CaseError, match="example inputs"):
        aot.record(_model(seen), wrong, own_cache / "calls.json")
    assert not seen


def test_a_mapping_that_is_no_dict_names_arguments(own_cache: Path) -> None:
    """Tokenizers return one."""
    seen: list[Any] = []
    x = torch.ones((4, 64), dtype=torch.float16).npu()
    assert aot.record(_model(seen), UserDict(x=x), own_cache / "one.json") == 1
    assert aot.record(_model(seen), [UserDict(x=x, y=x)], own_cache / "several.json") == 1
    assert all(x is first for first, _ in seen)
    assert {second is None for _, second in seen} == {True, False}


def test_a_decorated_method_says_what_to_decorate(own_cache: Path) -> None:
    class Norm(torch.nn.Module):  # type: ignore[misc, name-defined]
        @aot.tune("registry/add", policy="lookup")
        def add(self, x: Any, y: Any) -> Any:
            return x + y

        def forward(self, x: Any) -> Any:
            return self.add(x, x)

    x = torch.ones((4, 64), dtype=torch.float16).npu()
    assert torch.equal(Norm()(x).cpu(), (x + x).cpu())
    method: Any = Norm.add
    (reason,) = method.tuned.served.fallbacks
    assert "not the method" in reason
