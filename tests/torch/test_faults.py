"""A kernel that failed: everyone who reads what it was given is told, and a tuned pair's call is the original's."""

from __future__ import annotations

import copy
import dataclasses
import io
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_npu")

import ascendopt_tune as aot  # noqa: E402
from ascendopt_tune.build.toolkit import find  # noqa: E402
from ascendopt_tune.store.cache import Cache, Entry  # noqa: E402
from ascendopt_tune.torch_ops.device import fallback, faults  # noqa: E402
from ascendopt_tune.torch_ops.device.runtime import is_virtual  # noqa: E402
from ascendopt_tune.torch_ops.serving.launcher import device_of  # noqa: E402
from ascendopt_tune.torch_ops.serving.registered import registered  # noqa: E402
from ascendopt_tune.torch_ops.serving.sampling import FIRST, next_due, sampler  # noqa: E402

pytestmark = [
    pytest.mark.skipif(not is_virtual(), reason="a real CANN serves"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]

SHAPE = (64, 512)  # the tuned case of conftest.tuned_add
#: Kernels with the parameters of a tuned ``add``: one stores outside of everything, one is right 20 times.
OUTSIDE = """#include "kernel_operator.h"
using namespace AscendC;
extern "C" __global__ __aicore__ void NAME(GM_ADDR x, GM_ADDR y, GM_ADDR z, GM_ADDR workspace, GM_ADDR tiling) {
  GlobalTensor<half> global;
  global.SetGlobalBuffer((__gm__ half*)z);
  global.SetValue(1 << 30, half(1));
}
"""


@pytest.fixture(scope="module", autouse=True)
def aten() -> None:
    fallback.take_over()


@pytest.fixture(autouse=True)
def no_leftovers() -> Iterator[None]:
    registered.clear()
    yield
    faults.lost.clear()


def outside(name: str) -> bytes:
    return device_of(find("virtual"), 0).compile(OUTSIDE.replace("NAME", name), "outside.cpp", ["--npu-arch=dav-2201"])


@pytest.fixture(scope="module")
def fault() -> Callable[[], Any]:
    """Launches a kernel that fails, and returns the tensor it was to write."""
    acl = device_of(find("virtual"), 0)
    function = acl.load(outside("outside")).function("outside")

    def launch() -> Any:
        z = torch.zeros(8, 8, dtype=torch.float16).npu()
        words = [0, 0, z.data_ptr(), 0, 0]
        acl.launch(function, 1, words, torch.npu.current_stream().npu_stream)
        return z

    return launch


READS: dict[str, Callable[[Any], Any]] = {
    "cpu": lambda y: y.cpu(),
    "to": lambda y: y.to("cpu", non_blocking=True),
    "item": lambda y: y[0, 0].item(),
    "float": lambda y: float(y[0, 0]),
    "bool": lambda y: bool(y[0, 0]),
    "tolist": lambda y: y.tolist(),
    "print": repr,
    "equal": lambda y: torch.equal(y, torch.zeros_like(y)),
    "save": lambda y: torch.save(y, io.BytesIO()),
    "pickle": pickle.dumps,
    "copy": lambda y: torch.zeros(8, 8, dtype=torch.float16).copy_(y),
    "clone": lambda y: y.clone(),
    "deepcopy": copy.deepcopy,
    "view": lambda y: y.view(-1)[3:].cpu(),
    "storage": lambda y: y.untyped_storage().cpu(),
    "dlpack": lambda y: torch.from_dlpack(y).cpu(),
    "operator": lambda y: y + 1,
    "out": lambda y: torch.add(torch.ones_like(y), 1, out=y),
    "registry operator": lambda y: torch.ops.ascendopt.softmax(y),
}


@pytest.mark.parametrize("way", READS)
def test_every_read_raises_what_torch_npu_raises(way: str, fault: Callable[[], Any]) -> None:
    aot.registry_ops()
    other = torch.ones(3).npu()
    y = fault()
    for told in (True, False, False):  # the first who asks is told by torch_npu itself
        with pytest.raises(
            RuntimeError, match=r"(?s)NPU function error.*kernel outside: GlobalTensor::SetValue"
        ) as error:
            READS[way](y)
        assert ("error code is 507035" in str(error.value)) == told
    assert (other + 1).tolist() == [2.0, 2.0, 2.0], "other tensors are as they were"


def test_a_synchronization_tells_once_and_reads_go_on_telling(fault: Callable[[], Any]) -> None:
    y = fault()
    with pytest.raises(RuntimeError, match="507035"):
        torch.npu.synchronize()
    torch.npu.synchronize()
    with pytest.raises(RuntimeError, match="kernel outside"):
        y.cpu()


def test_memory_that_is_used_again_is_as_good_as_new(fault: Callable[[], Any]) -> None:
    y = fault()
    with pytest.raises(RuntimeError):
        y.cpu()
    address = y.data_ptr()
    del y
    again = [torch.ones(8, 8, dtype=torch.float16).npu() for _ in range(4)]
    assert address in [t.data_ptr() for t in again]
    assert all((t.cpu() == 1).all() for t in again)


# -- tuned pairs -----


def with_binary(layer: Path, binary: Callable[[Entry], bytes], root: Path) -> None:
    """A cache at ``root`` with the one tuned case, whose kernel is another."""
    cache = Cache(layer, layers=())
    (summary,) = cache.items("add")
    entry = cache.get(summary.key)
    assert entry is not None
    Cache(root, layers=()).put(dataclasses.replace(entry, binary=binary(entry)))


def npu_ones() -> Any:
    return torch.ones(SHAPE, dtype=torch.float16).npu()


def test_a_pair_that_faults_is_quarantined_and_the_original_serves(
    tuned_add: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with_binary(tuned_add, lambda entry: outside(entry.kernel_name), tmp_path)
    monkeypatch.setenv("ASCENDOPT_CACHE_LAYERS", str(tmp_path))
    add = aot.tune("add")(lambda x, y: x + y)
    for _ in range(3):
        assert (add(npu_ones(), npu_ones()).cpu() == 2).all()
    ((reason, calls),) = aot.stats()["add"]["fallbacks"].items()
    assert calls == 3
    assert "add float16[64,512]" in reason, "the operator and its shapes"
    assert "GlobalTensor::SetValue" in reason
    assert "outside.cpp:6" in reason, "and the kernel's line"
    again = aot.tune("add")(lambda x, y: x + y)
    assert (again(npu_ones(), npu_ones()).cpu() == 2).all()
    assert "outside.cpp:6" in next(iter(again.tuned.served.fallbacks)), "remembered"


def test_a_fault_in_service(layer: Path, tuned_add: Path) -> None:
    add = aot.tune("add")(lambda x, y: x + y)
    add(npu_ones(), npu_ones())
    (launcher,) = add.tuned.table.choices.values()
    broken = launcher._acl.load(outside(launcher.entry.kernel_name))
    launcher.function = broken.function(launcher.entry.kernel_name)
    launcher.prepare()
    for _ in range(2):
        assert (add(npu_ones(), npu_ones()).cpu() == 2).all()
    assert sum(aot.stats()["add"]["fallbacks"].values()) == 2
    assert launcher not in add.tuned.table.choices.values()


def test_a_tuned_operator_reads_no_lost_tensor(layer: Path, fault: Callable[[], Any]) -> None:
    add = aot.tune("add")(lambda x, y: x + y)
    x = npu_ones()
    for _ in range(2):
        add(x, x)
    faults.lose([x.untyped_storage()], "a kernel failed")
    with pytest.raises(faults.LostError):
        add(x, x)
    assert (add(npu_ones(), npu_ones()).cpu() == 2).all()
    assert not aot.stats()["add"]["fallbacks"], "the pair is not to blame"


# -- in service, one call in so many is compared -----


def test_which_calls_are_sampled() -> None:
    due, seen = 0, []
    while due < 4000:
        due = next_due(due, every=1000)
        seen.append(due)
    assert seen == [16, 32, 64, 128, 256, 512, 1024, 2024, 3024, 4024]
    assert next_due(0, every=0) > 1 << 60


def test_a_pair_that_goes_wrong_in_service_is_caught(layer: Path, caplog: pytest.LogCaptureFixture) -> None:
    add = aot.tune("add")(lambda x, y: x + y)
    add(npu_ones(), npu_ones())
    (launcher,) = add.tuned.table.choices.values()
    launcher.launch = lambda *words: 0  # it writes nothing from now on
    launcher.prepare()
    x = npu_ones()
    for _ in range(FIRST + 4):
        torch.full(SHAPE, 5.0, dtype=torch.float16).npu()  # what the outputs' memory holds
        add(x, x)
    sampler.wait()
    assert (add(x, x).cpu() == 2).all()
    (reason,) = aot.stats()["add"]["fallbacks"]
    assert "quarantined: in service, the tuned pair and the original differ" in reason
    assert "taken out of service" in caplog.text


@pytest.mark.parametrize("every", ["0", "1000"])
def test_a_right_pair_stays(layer: Path, monkeypatch: pytest.MonkeyPatch, every: str) -> None:
    monkeypatch.setenv("ASCENDOPT_CHECK_EVERY", every)
    add = aot.tune("add")(lambda x, y: x + y)
    before, x = sampler.judged, npu_ones()
    for _ in range(40):
        add(x, x)
        sampler.wait()
    assert sampler.judged - before == (0 if every == "0" else 2)
    row = aot.status().operators["add"]
    assert (row.hits, row.fallbacks) == (40, {})
