"""``torch.profiler`` as torch has it: the kernels that ran are in its trace, with their modelled times."""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_npu")

from ascendopt_tune.build.toolkit import virtual  # noqa: E402
from ascendopt_tune.device.acl import Acl, Binary  # noqa: E402
from ascendopt_tune.torch_ops.device.runtime import is_virtual  # noqa: E402

pytestmark = pytest.mark.skipif(not is_virtual(), reason="a real CANN serves")

SOURCE = """
#include "kernel_operator.h"
extern "C" __global__ __aicore__ void wait_a_while(GM_ADDR y, int64_t n) {
  AscendC::GlobalTensor<float> to;
  to.SetGlobalBuffer((__gm__ float*)y, n);
  for (int64_t i = AscendC::GetBlockIdx(); i < n; i += AscendC::GetBlockNum()) to.SetValue(i, 1.0f);
}
"""
CUSTOM0 = 2  # msptiExternalCorrelationKind
KERNEL, EXTERNAL_CORRELATION = 2, 8  # msptiActivityKind


@pytest.fixture(scope="module")
def acl() -> Acl:
    return Acl(virtual())


@pytest.fixture(scope="module")
def kernels(acl: Acl) -> Iterator[Binary]:
    with acl.load(acl.compile(SOURCE, "wait_a_while.cpp", ["--npu-arch=dav-2201"])) as module:
        yield module


def launch(acl: Acl, kernels: Binary, y: Any, stream: Any = None) -> float:
    """Fills ``y`` (float32, any shape) with ones; the task's modelled duration in us."""
    where = (stream or torch.npu.current_stream()).npu_stream
    acl.launch(kernels.function("wait_a_while"), 2, [y.data_ptr(), ctypes.c_int64(y.numel())], where)
    return float(acl.report()["profile"]["task_duration_us"])


def test_default_activities_have_kernels_with_modelled_times(acl: Acl, kernels: Binary, tmp_path: Path) -> None:
    y = torch.zeros(64).npu()
    launch(acl, kernels, y)  # before anybody asks: in no trace
    with torch.profiler.profile() as found:
        durations = [launch(acl, kernels, y[: 8 * n]) for n in (1, 4)]
        (y + 1).cpu()
    assert "aten::add" in {event.key for event in found.key_averages()}
    found.export_chrome_trace(str(tmp_path / "trace.json"))
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    of_kernels = [event for event in events if event.get("cat") == "kernel"]
    assert [event["name"] for event in of_kernels] == ["wait_a_while"] * 2
    # kineto writes times in us with three digits.
    assert [event["dur"] for event in of_kernels] == pytest.approx(durations, abs=2e-3)
    assert durations[0] < durations[1]
    assert {event["args"]["type"] for event in of_kernels} == {"KERNEL_AIVEC"}
    first, second = of_kernels
    assert first["ts"] + first["dur"] <= second["ts"] + 2e-3, "one after the other on a stream"


def test_a_kernel_is_linked_to_the_operation_that_launched_it(acl: Acl, kernels: Binary, tmp_path: Path) -> None:
    y = torch.zeros(8).npu()
    with torch.profiler.profile() as found, torch.profiler.record_function("mine"):
        launch(acl, kernels, y)
    found.export_chrome_trace(str(tmp_path / "trace.json"))
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    (kernel,) = [event for event in events if event.get("cat") == "kernel"]
    ends = [event for event in events if event.get("cat") == "ac2g" and event["ph"] == "f"]
    assert [end["ts"] for end in ends] == [kernel["ts"]]


def test_nothing_is_recorded_where_only_the_processor_is_asked_for(acl: Acl, kernels: Binary, tmp_path: Path) -> None:
    y = torch.zeros(8).npu()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as found:
        launch(acl, kernels, y)
    found.export_chrome_trace(str(tmp_path / "trace.json"))
    assert '"cat": "kernel"' not in (tmp_path / "trace.json").read_text()


class Records:
    """What a profiler of its own reads through MSPTI, in buffers of ``size`` bytes."""

    REQUEST = ctypes.CFUNCTYPE(
        None, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_size_t), ctypes.POINTER(ctypes.c_size_t)
    )
    COMPLETE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)

    def __init__(self, size: int, most: int = 0) -> None:
        self.library = ctypes.CDLL("libmspti.so")
        self.kinds: list[int] = []
        self.buffers = 0
        self._room = ctypes.create_string_buffer(size)

        def request(buffer: Any, bytes_: Any, count: Any) -> None:
            buffer[0], bytes_[0], count[0] = ctypes.addressof(self._room), size, most

        def complete(buffer: int, _size: int, valid: int) -> None:
            self.buffers += 1
            record = ctypes.c_void_p()
            of = (ctypes.c_void_p(buffer), ctypes.c_size_t(valid), ctypes.byref(record))
            while self.library.msptiActivityGetNextRecord(*of) == 0:
                assert record.value is not None
                self.kinds.append(ctypes.c_int.from_address(record.value).value)

        self._callbacks = (self.REQUEST(request), self.COMPLETE(complete))  # kept: they are called later
        assert self.library.msptiActivityRegisterCallbacks(*self._callbacks) == 0

    def flush(self) -> None:
        assert self.library.msptiActivityFlushAll(0) == 0


@pytest.mark.parametrize(("size", "most", "buffers"), [(4096, 0, 1), (56, 0, 3), (4096, 2, 2), (8, 0, 1)])
def test_records_go_into_the_profiler_s_buffers(acl: Acl, kernels: Binary, size: int, most: int, buffers: int) -> None:
    y = torch.zeros(8).npu()
    records = Records(size, most)
    library = records.library
    assert library.msptiActivityEnable(KERNEL) == 0
    try:
        for _ in range(3):
            launch(acl, kernels, y)
    finally:
        assert library.msptiActivityDisable(KERNEL) == 0
    launch(acl, kernels, y)
    records.flush()
    assert records.kinds == ([KERNEL] * 3 if size >= 56 else [])
    assert records.buffers == buffers
    records.flush()
    assert records.buffers == buffers, "delivered once"


def test_ids_that_were_pushed_come_before_the_kernel_s_record(acl: Acl, kernels: Binary) -> None:
    y = torch.zeros(8).npu()
    records = Records(4096)
    library = records.library
    while library.msptiActivityPopExternalCorrelationId(CUSTOM0, None) == 0:
        pass  # what a session of torch_npu's has left
    for kind in (KERNEL, EXTERNAL_CORRELATION):
        assert library.msptiActivityEnable(kind) == 0
        assert library.msptiActivityIsEnabled(kind)
    assert library.msptiActivityPushExternalCorrelationId(CUSTOM0, ctypes.c_uint64(7)) == 0
    launch(acl, kernels, y)
    last = ctypes.c_uint64()
    assert library.msptiActivityPopExternalCorrelationId(CUSTOM0, ctypes.byref(last)) == 0
    assert last.value == 7
    queue_empty = 5
    assert library.msptiActivityPopExternalCorrelationId(CUSTOM0, None) == queue_empty
    launch(acl, kernels, y)
    for kind in (KERNEL, EXTERNAL_CORRELATION):
        assert library.msptiActivityDisable(kind) == 0
    records.flush()
    assert records.kinds == [EXTERNAL_CORRELATION, KERNEL, KERNEL]


def test_what_mspti_refuses() -> None:
    library = ctypes.CDLL("libmspti.so")
    invalid, several = 1, 2
    assert library.msptiActivityEnable(0) == invalid
    assert library.msptiActivityEnable(99) == invalid
    assert library.msptiActivityRegisterCallbacks(None, None) == invalid
    assert library.msptiActivityPushExternalCorrelationId(0, ctypes.c_uint64(1)) == invalid
    handle, other = ctypes.c_void_p(), ctypes.c_void_p()
    assert library.msptiSubscribe(ctypes.byref(handle), None, None) == 0
    assert library.msptiSubscribe(ctypes.byref(other), None, None) == several
    assert library.msptiUnsubscribe(handle) == 0
    assert library.msptiUnsubscribe(handle) == invalid


FIRST_SESSION = """
import ascendopt_tune, torch
from torch.utils.data import DataLoader, TensorDataset
from test_torch_profiler import SOURCE, launch
from ascendopt_tune.build.toolkit import virtual
from ascendopt_tune.device.acl import Acl

for _ in DataLoader(TensorDataset(torch.zeros(2, 3))):  # torch_npu marks a range around each batch
    pass
acl = Acl(virtual())
with acl.load(acl.compile(SOURCE, "wait_a_while.cpp", ["--npu-arch=dav-2201"])) as kernels:
    y = torch.zeros(8).npu()
    with torch.profiler.profile() as found:
        launch(acl, kernels, y)
print([event.key for event in found.key_averages() if event.key == "wait_a_while"])
"""


def test_behind_a_data_loader_the_first_session_has_kernels() -> None:
    """torch_npu looks for the records' library once, in the first marked range or session."""
    done = subprocess.run(
        [sys.executable, "-c", FIRST_SESSION], cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines()[-1:] == ["['wait_a_while']"], done.stdout + done.stderr
