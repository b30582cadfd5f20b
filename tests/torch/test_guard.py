"""Never wrong, never slower, never down: what a tuned pair has to show before and while it serves."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_npu")

import ascendopt_tune as aot  # noqa: E402
from ascendopt_tune.build.toolkit import find  # noqa: E402
from ascendopt_tune.device.acl import Acl  # noqa: E402
from ascendopt_tune.errors import DeviceError  # noqa: E402
from ascendopt_tune.store.cache import Cache, Entry  # noqa: E402
from ascendopt_tune.torch_ops.device import fallback  # noqa: E402
from ascendopt_tune.torch_ops.device.runtime import is_virtual  # noqa: E402
from ascendopt_tune.torch_ops.serving import dispatch, guard  # noqa: E402
from ascendopt_tune.torch_ops.serving.launcher import Launcher  # noqa: E402
from ascendopt_tune.torch_ops.serving.registered import registered  # noqa: E402

pytestmark = [
    pytest.mark.skipif(not is_virtual(), reason="a real CANN serves"),
    pytest.mark.filterwarnings("ignore:Cannot create tensor with internal format:UserWarning"),
]

SHAPE = (64, 512)  # the tuned case of conftest.tuned_add


@pytest.fixture(scope="module", autouse=True)
def aten() -> None:
    fallback.take_over()


@pytest.fixture(autouse=True)
def no_leftovers(monkeypatch: pytest.MonkeyPatch) -> None:
    registered.clear()
    monkeypatch.setattr(dispatch, "LOOK_AGAIN_S", 0.0)


def ones(*shape: int) -> Any:
    return torch.ones(shape or SHAPE, dtype=torch.float16).npu()


def the_entry(root: Path) -> Entry:
    cache = Cache(root, layers=())
    (summary,) = cache.items("add")
    entry = cache.get(summary.key)
    assert entry is not None
    return entry


class Counted:
    def __init__(self, function: Callable[..., Any] = lambda x, y: x + y) -> None:
        self.calls = 0
        self.function = function

    def __call__(self, x: Any, y: Any) -> Any:
        self.calls += 1
        return self.function(x, y)


def the_reason() -> str:
    (reason,) = aot.stats()["add"]["fallbacks"]
    return str(reason)


# -- values -----


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda x, y: x * y, "differ: 32768 of 32768 elements"),
        (lambda x, y: (x + y).t().contiguous().t(), "strides"),
    ],
)
def test_other_values_or_strides(layer: Path, function: Any, reason: str) -> None:
    original = Counted(function)
    add = aot.tune("add")(original)
    for _ in range(2):
        assert torch.equal(add(ones(), ones()), function(ones(), ones()))
    assert original.calls == 2
    assert reason in the_reason()


def test_a_kernel_that_writes_nothing_is_not_helped_by_stale_memory(
    layer: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The outputs are poisoned before the launch: what lay in reused memory from before is no result."""
    x = ones()
    for _ in range(8):
        x + x  # leaves the right result in blocks that are used again
    monkeypatch.setattr(Acl, "raw", lambda self, name: lambda *words: 0)
    add = aot.tune("add")(Counted())
    assert (add(x, x).cpu() == 2).all()
    assert "differ" in the_reason()
    assert "nothing was written there" in the_reason()


def test_shadow_compares_the_first_calls(layer: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASCENDOPT_SHADOW", "3")
    original = Counted()
    add = aot.tune("add")(original)
    for _ in range(5):
        add(ones(), ones())
    assert original.calls == 3
    row = aot.status().operators["add"]
    assert (row.hits, row.compared) == (5, 3)


def test_a_difference_that_shows_late_is_found_in_shadow(layer: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASCENDOPT_SHADOW", "3")
    original = Counted()
    add = aot.tune("add")(original)
    add(ones(), ones())
    original.function = lambda x, y: x - y
    for _ in range(2):
        assert (add(ones(), ones()).cpu() == 0).all()
    assert "differ" in the_reason()


# -- time -----


class AscendC:
    """An original with a modelled time: it launches a pair of the cache itself."""

    def __init__(self, entry: Entry) -> None:
        from ascendopt_tune.torch_ops.serving.launcher import device_of, upload

        self.acl = device_of(find("virtual"), 0)
        self.entry = entry
        self.function = self.acl.load(entry.binary).function(entry.kernel_name)
        self.tiling = upload(entry.tiling.data, torch.device("npu:0"))
        self.calls = 0
        self.launches = 1

    def __call__(self, x: Any, y: Any) -> Any:
        self.calls += 1
        z = torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device=x.device)
        workspace = torch.empty(1 << 25, dtype=torch.uint8, device=x.device)
        words = [x.data_ptr(), y.data_ptr(), z.data_ptr(), workspace.data_ptr() + (1 << 24), self.tiling.data_ptr()]
        for _ in range(self.launches):
            self.acl.launch(self.function, self.entry.tiling.block_dim, words, torch.npu.current_stream().npu_stream)
        return z


def test_a_pair_that_is_slower_than_the_original_is_taken_out(
    layer: Path, tuned_add: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the device's clock, which is modelled here; three pairs of calls decide, and it is remembered."""
    original = AscendC(the_entry(tuned_add))
    original.launches = 2
    add = aot.tune("add")(original)
    add(ones(), ones())
    add(ones(), ones())
    assert original.calls == 1  # the pair takes half the original's time: it serves

    monkeypatch.setattr(guard, "MARGIN", -0.9)
    add.tuned.forget()
    for _ in range(guard.PAIRS + 1):
        assert (add(ones(), ones()).cpu() == 2).all()
    assert original.calls == 1 + guard.PAIRS + 1
    assert "times the original's device time" in the_reason()
    (remark,) = own_cache.glob("remarks/*.json")
    assert "device time" in json.loads(remark.read_text())["reason"]
    monkeypatch.setattr(guard, "MARGIN", 0.05)
    add.tuned.forget()  # as a new process
    add(ones(), ones())
    assert original.calls == guard.PAIRS + 3
    Cache().put(dataclasses.replace(the_entry(tuned_add), binary=the_entry(tuned_add).binary + b"\0"))
    add.tuned.forget()  # another binary starts without the remark
    add(ones(), ones())
    add(ones(), ones())
    assert original.calls == guard.PAIRS + 4


def test_an_original_without_a_modelled_time_is_not_compared(
    layer: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "MARGIN", -0.9)
    original = Counted()
    add = aot.tune("add")(original)
    add(ones(), ones())
    add(ones(), ones())
    assert original.calls == 1


# -- failures -----


def test_failures_of_tensors_are_not_held_against_the_pair(layer: Path) -> None:
    original = Counted()
    add = aot.tune("add")(original)
    add(ones(), ones())
    whole = torch.ones(SHAPE[0] * SHAPE[1] + 1, dtype=torch.float16).npu()
    crooked = whole[1:].view(SHAPE)
    for _ in range(dispatch.MAX_FAILURES + 2):
        assert (add(crooked, ones()).cpu() == 2).all()
    add(ones(), ones())
    assert original.calls == 1 + dispatch.MAX_FAILURES + 2
    row = aot.status().operators["add"]
    assert (row.hits, list(row.fallbacks.values())) == (2, [dispatch.MAX_FAILURES + 2])


def test_a_launch_that_fails_now_and_then(layer: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Served by the original on that very call; below the limit the pair stays."""
    original = Counted()
    add = aot.tune("add")(original)
    add(ones(), ones())
    (launcher,) = add.tuned.table.choices.values()
    whole = launcher.launch
    for code in (507011, 0, 507011, 0):
        launcher.launch = (lambda *words: 507011) if code else whole
        launcher.prepare()
        assert (add(ones(), ones()).cpu() == 2).all()
    row = aot.status().operators["add"]
    assert (row.hits, original.calls) == (3, 3)
    assert sum(row.fallbacks.values()) == 2
    assert isinstance(next(iter(add.tuned.table.choices.values())), Launcher)


def test_the_time_saved_is_modelled(layer: Path, tuned_add: Path) -> None:
    add = aot.tune("add")(Counted())
    for _ in range(4):
        add(ones(), ones())
    entry = the_entry(tuned_add)
    saved = 3 * (entry.baseline.task_duration_us - entry.best.task_duration_us)
    assert aot.status().operators["add"].saved_us == pytest.approx(saved)
    assert f"  modelled time saved: {saved:.1f} us" in str(aot.status()).splitlines()


# -- policies -----


def test_what_decides(layer: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kill switch, with block, argument, environment, in this order."""
    original = Counted()
    add, off = aot.tune("add")(original), aot.tune("add", policy="off")(original)

    def tuned(function: Any) -> bool:
        before = original.calls
        function(ones(), ones())
        return original.calls == before

    add(ones(), ones())
    assert tuned(add)
    assert not tuned(off)
    with aot.policy("off"):
        assert not tuned(add)
        with aot.policy("lookup"):
            assert tuned(add)
            off(ones(), ones())
            assert tuned(off)
        with aot.policy("lookup"):
            assert tuned(off)
        assert not tuned(add)
    monkeypatch.setenv("ASCENDOPT_POLICY", "off")
    assert tuned(add)  # the environment decides when a case is first met
    add.tuned.forget()
    assert not tuned(add)
    monkeypatch.setenv("ASCENDOPT_POLICY", "lookup")
    monkeypatch.setenv("ASCENDOPT_DISABLE", "1")
    with aot.policy("blocking"):
        assert not tuned(add)
    with pytest.raises(aot.AscendOptError, match="off, lookup, lazy, blocking"), aot.policy("always"):
        pass


def test_a_block_of_another_thread_is_its_own(layer: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    original = Counted()
    add = aot.tune("add")(original)
    add(ones(), ones())
    with aot.policy("off"), ThreadPoolExecutor(1) as pool:
        pool.submit(add, ones(), ones()).result()
    assert original.calls == 1


# -- graph capture -----


@pytest.fixture
def capturing(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """What torch_npu says during capture. The virtual NPU has no graphs, so nothing is recorded."""
    state = [False]
    monkeypatch.setattr(torch.npu, "is_current_stream_capturing", lambda: state[0])
    return lambda on: state.__setitem__(0, on)


def test_capture(layer: Path, capturing: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tuned case is served; one that isn't warm is the original's, with no look-up, load or copy, and reported."""
    original = Counted()
    add = aot.tune("add", policy="lazy")(original)
    add(ones(), ones())
    x, small = ones(), ones(8, 8)

    def never(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("work on the host during graph capture")

    capturing(True)
    with monkeypatch.context() as patch:
        for owner, name in ((Cache, "find"), (Cache, "items"), (Acl, "load"), (torch.npu, "synchronize")):
            patch.setattr(owner, name, never)
        add(x, x)
        assert original.calls == 1
        for _ in range(2):
            assert (add(small, small).cpu() == 2).all()
    capturing(False)
    row = aot.status().operators["add"]
    assert row.captured == {"float16[8,8] float16[8,8]": 2}
    assert "captured untuned: float16[8,8] float16[8,8] (2 calls)" in str(aot.status())
    assert row.hits == 2
    assert aot.status().queue == ()


def test_a_case_on_probation_is_not_compared_during_capture(layer: Path, capturing: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("ASCENDOPT_SHADOW", "2")
    original = Counted()
    add = aot.tune("add")(original)
    add(ones(), ones())
    capturing(True)
    add(ones(), ones())
    capturing(False)
    add(ones(), ones())
    add(ones(), ones())
    assert original.calls == 3
    assert aot.status().operators["add"].compared == 2


# -- ahead of time -----


def test_resolve_ahead(layer: Path) -> None:
    """The seam for a warm-up: afterwards the first real call is served at once, in whatever state the process is."""
    original = Counted()
    add = aot.tune("add")(original)
    assert add.tuned.resolve_ahead((ones(), ones()), {}) == "tuned"
    calls = original.calls
    add(ones(), ones())
    assert original.calls == calls
    assert add.tuned.resolve_ahead((ones(3, 5), ones(3, 5)), {}) == "missing"


def test_errors_are_of_the_device(layer: Path) -> None:
    with pytest.raises(DeviceError, match="aclrtLaunchKernelWithArgsArray failed with error 5"):
        Acl(find("virtual")).fail("aclrtLaunchKernelWithArgsArray", 5)
