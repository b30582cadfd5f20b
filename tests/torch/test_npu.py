"""The unmodified torch_npu on the virtual NPU: tensors, streams, events, memory, a custom operator, errors."""

from __future__ import annotations

import copy
import ctypes
import io
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_npu")

from ascendopt_tune.build.toolkit import virtual  # noqa: E402
from ascendopt_tune.device.acl import Acl, Binary  # noqa: E402
from ascendopt_tune.torch_ops.device.runtime import is_virtual  # noqa: E402

pytestmark = [
    pytest.mark.skipif(not is_virtual(), reason="a real CANN serves"),
    # torch_npu says so once for a clone, whatever the format.
    pytest.mark.filterwarnings("ignore:Cannot create tensor with internal format:UserWarning"),
]

SOURCE = """
#include "kernel_operator.h"
extern "C" __global__ __aicore__ void scale(GM_ADDR x, GM_ADDR y, int64_t n, float a) {
  AscendC::GlobalTensor<float> from, to;
  from.SetGlobalBuffer((__gm__ float*)x, n);
  to.SetGlobalBuffer((__gm__ float*)y, n);
  for (int64_t i = AscendC::GetBlockIdx(); i < n; i += AscendC::GetBlockNum()) {
    to.SetValue(i, from.GetValue(i) * a);
  }
}
extern "C" __global__ __aicore__ void out_of_bounds(GM_ADDR y) {
  AscendC::GlobalTensor<float> to;
  to.SetGlobalBuffer((__gm__ float*)y);
  to.SetValue(1 << 30, 1.0f);
}
"""


@pytest.fixture(scope="module")
def acl() -> Acl:
    return Acl(virtual())


@pytest.fixture(scope="module")
def kernels(acl: Acl) -> Iterator[Binary]:
    with acl.load(acl.compile(SOURCE, "scale.cpp", ["--npu-arch=dav-2201"])) as module:
        yield module


def launch_scale(acl: Acl, kernels: Binary, x: Any, factor: float, out: Any = None) -> Any:
    """x * factor on the current stream of torch_npu, into `out` or a new tensor."""
    y = torch.empty_like(x) if out is None else out
    args = [x.data_ptr(), y.data_ptr(), ctypes.c_int64(x.numel()), ctypes.c_float(factor)]
    acl.launch(kernels.function("scale"), 4, args, torch.npu.current_stream().npu_stream)
    return y


def test_the_library_of_torch_npu_is_shared(acl: Acl) -> None:
    maps = Path("/proc/self/maps").read_text()
    assert len({line.split()[-1] for line in maps.splitlines() if "libascendcl.so" in line}) == 1


def test_device() -> None:
    assert torch.npu.is_available()
    assert torch.npu.device_count() == 1
    assert torch.npu.get_device_name(0).startswith("Ascend910")
    properties = torch.npu.get_device_properties(0)
    assert properties.vector_core_num == 2 * properties.cube_core_num > 0
    assert properties.total_memory > 0
    assert str(properties.uuid)


@pytest.mark.parametrize(
    "dtype", ["float32", "float16", "bfloat16", "float64", "int8", "uint8", "int16", "int32", "int64", "bool"]
)
@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 5), (7, 128, 33)])
def test_round_trip(dtype: str, shape: tuple[int, ...]) -> None:
    x = (torch.randn(shape) * 10).to(getattr(torch, dtype))
    y = x.npu()
    assert y.device.type == "npu"
    assert y.dtype == x.dtype
    assert y.shape == x.shape
    assert torch.equal(y.cpu(), x)


def test_copies() -> None:
    x = torch.randn(64, 32)
    y = torch.empty(64, 32, device="npu")
    y.copy_(x)
    assert torch.equal(y.cpu(), x)
    z = torch.empty_like(y).copy_(y)
    assert z.data_ptr() != y.data_ptr()
    assert torch.equal(z.cpu(), x)
    assert torch.equal(y.clone().cpu(), x)
    assert torch.equal(copy.deepcopy(y).cpu(), x)
    assert torch.equal(y[3:5].cpu(), x[3:5])
    assert torch.equal(y.view(-1)[10:20].cpu(), x.view(-1)[10:20])
    assert y[2, 3].item() == x[2, 3].item()
    assert torch.equal(torch.zeros(5).npu().cpu(), torch.zeros(5))
    assert torch.equal(torch.tensor(3.0, device="npu").cpu(), torch.tensor(3.0))


def test_save_and_load() -> None:
    x = torch.randn(4, 4)
    file = io.BytesIO()
    torch.save(x.npu(), file)
    file.seek(0)
    y = torch.load(file)
    assert y.device.type == "npu"
    assert torch.equal(y.cpu(), x)


def test_module_and_state_dict() -> None:
    layer = torch.nn.Linear(3, 4)
    weight = layer.weight.detach().clone()
    moved = layer.npu()
    assert moved.weight.device.type == "npu"
    assert torch.equal(moved.state_dict()["weight"].cpu(), weight)


def test_pinned_memory() -> None:
    x = torch.randn(1 << 16).pin_memory()
    assert x.is_pinned()
    y = x.to("npu", non_blocking=True)
    torch.npu.synchronize()
    assert torch.equal(y.cpu(), x)


def test_memory_statistics() -> None:
    before = torch.npu.memory_allocated()
    x = torch.empty(1 << 20, dtype=torch.uint8, device="npu")
    assert torch.npu.memory_allocated() - before >= 1 << 20
    assert torch.npu.max_memory_allocated() >= torch.npu.memory_allocated() > 0
    free, total = torch.npu.mem_get_info()
    assert 0 < free < total
    del x
    assert torch.npu.memory_allocated() == before
    y = torch.empty(1 << 26, dtype=torch.uint8, device="npu")
    del y
    reserved, free = torch.npu.memory_reserved(), torch.npu.mem_get_info()[0]
    torch.npu.empty_cache()
    assert torch.npu.memory_reserved() <= reserved - (1 << 26)
    assert torch.npu.mem_get_info()[0] >= free + (1 << 26)


def test_out_of_memory() -> None:
    with pytest.raises(torch.OutOfMemoryError):
        torch.empty(1 << 46, dtype=torch.uint8, device="npu")
    assert torch.equal(torch.ones(3).npu().cpu(), torch.ones(3))


def elapsed_us(start: Any, end: Any) -> float:
    end.synchronize()
    return float(start.elapsed_time(end)) * 1e3


def test_events_take_modelled_time(acl: Acl, kernels: Binary) -> None:
    x = torch.randn(512).npu()
    times = []
    for _ in range(2):
        start, end = torch.npu.Event(enable_timing=True), torch.npu.Event(enable_timing=True)
        start.record()
        launch_scale(acl, kernels, x, 2.0)
        end.record()
        times.append(elapsed_us(start, end))
        assert times[-1] == pytest.approx(acl.report()["profile"]["task_duration_us"], rel=1e-4)
    assert times[0] == times[1], "modelled time does not depend on the machine's load"
    assert start.query()
    assert end.query()


def test_streams_run_side_by_side(acl: Acl, kernels: Binary) -> None:
    # One tensor, in place: nothing differs but the stream, not even the data cache's lines.
    x = torch.randn(512).npu()
    first, second = torch.npu.Stream(), torch.npu.Stream()
    assert first.npu_stream != second.npu_stream

    def measure(*streams: Any) -> float:
        torch.npu.synchronize()
        start, end = torch.npu.Event(enable_timing=True), torch.npu.Event(enable_timing=True)
        start.record()
        for stream in streams:
            with torch.npu.stream(stream):
                launch_scale(acl, kernels, x, 2.0, out=x)
        for stream in streams:
            torch.npu.current_stream().wait_stream(stream)
        end.record()
        return elapsed_us(start, end)

    alone = measure(first)
    assert measure(first, second) == pytest.approx(alone, rel=1e-3)
    assert measure(first, first) == pytest.approx(2 * alone, rel=1e-3)


def test_wait_event_orders_streams(acl: Acl, kernels: Binary) -> None:
    host = torch.randn(512)
    x = host.npu()
    first, second = torch.npu.Stream(), torch.npu.Stream()
    torch.npu.synchronize()
    start, middle, end = (torch.npu.Event(enable_timing=True) for _ in range(3))
    start.record(first)
    with torch.npu.stream(first):
        launch_scale(acl, kernels, x, 2.0, out=x)
    middle.record(first)
    second.wait_event(middle)
    with torch.npu.stream(second):
        launch_scale(acl, kernels, x, 3.0, out=x)
    end.record(second)
    assert elapsed_us(start, end) == pytest.approx(2 * elapsed_us(start, middle), rel=1e-3)
    torch.testing.assert_close(x.cpu(), host * 2.0 * 3.0)


@pytest.fixture
def library() -> Iterator[Any]:
    library = torch.library.Library("test_" + uuid.uuid4().hex[:8], "DEF")
    yield library
    library._destroy()


def test_custom_operator(acl: Acl, kernels: Binary, library: Any) -> None:
    library.define("scale(Tensor x, float factor) -> Tensor")
    library.impl("scale", lambda x, factor: launch_scale(acl, kernels, x, factor), "PrivateUse1")
    library.impl("scale", lambda x, factor: torch.empty_like(x), "Meta")
    scale = getattr(torch.ops, library.ns).scale
    x = torch.randn(33, 7)
    torch.testing.assert_close(scale(x.npu(), 2.5).cpu(), x * 2.5)
    with torch.npu.stream(torch.npu.Stream()) as _:
        y = scale(x.npu(), -1.0)
        torch.npu.current_stream().synchronize()
    torch.testing.assert_close(y.cpu(), -x)
    assert scale(x.to("meta"), 2.0).shape == x.shape


def test_a_failing_kernel_raises_and_spoils_nothing_else(acl: Acl, kernels: Binary) -> None:
    x = torch.randn(64)
    y = x.npu()
    stream = torch.npu.current_stream().npu_stream
    acl.launch(kernels.function("out_of_bounds"), 1, [y.data_ptr()], stream)
    with pytest.raises(RuntimeError, match="out_of_bounds"):
        torch.npu.synchronize()
    torch.npu.synchronize()
    with pytest.raises(RuntimeError, match="out_of_bounds"):
        y.cpu()  # what the kernel was given is lost
    torch.testing.assert_close(launch_scale(acl, kernels, x.npu(), 2.0).cpu(), x * 2)


def test_an_operator_without_kernel_is_named_every_time() -> None:
    x = torch.randn(8)
    y = x.npu()
    for _ in range(3):
        with pytest.raises(RuntimeError, match="operator RmsNorm is not available"):
            torch.ops.npu.npu_rms_norm(y.view(1, 8), y)
    assert torch.equal(y.cpu(), x)
