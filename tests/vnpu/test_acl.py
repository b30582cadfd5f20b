"""device/acl.py: one binding for compile, load, launch, memory, streams, events, errors."""

from __future__ import annotations

import ctypes
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from ascendopt_tune.build.toolkit import Toolkit, virtual
from ascendopt_tune.calibrate.write import chip_text
from ascendopt_tune.device.acl import Acl
from ascendopt_tune.device.options import LaunchOptions
from ascendopt_tune.errors import DeviceError, KernelCompileError, ToolchainError
from ascendopt_tune.nouns.chip import load_chip

SOURCE = """
#include "kernel_operator.h"
#define KERNEL extern "C" __global__ __aicore__ void
namespace inner {
__global__ __aicore__ void in_namespace(GM_ADDR x) {}
}
__global__ __aicore__ void only_declared(GM_ADDR x);
KERNEL through_macro(GM_ADDR x) { const char* braces = "}{ )\\""; (void)braces; }
extern "C" __global__ __aicore__ void axpy(GM_ADDR x, GM_ADDR y, uint32_t n, float a) {
  AscendC::GlobalTensor<float> from, to;
  from.SetGlobalBuffer((__gm__ float*)x, n);
  to.SetGlobalBuffer((__gm__ float*)y, n);
  for (uint32_t i = AscendC::GetBlockIdx(); i < n; i += AscendC::GetBlockNum()) {
    to.SetValue(i, from.GetValue(i) * a + 1.0f);
  }
}
extern "C" __global__ __aicore__ void out_of_bounds(GM_ADDR x) {
  AscendC::GlobalTensor<float> to;
  to.SetGlobalBuffer((__gm__ float*)x);
  to.SetValue(1 << 26, 1.0f);
}
"""


@pytest.fixture(scope="module")
def acl() -> Acl:
    return Acl(virtual())


@pytest.fixture(scope="module")
def binary(acl: Acl) -> bytes:
    return acl.compile(SOURCE, "axpy.cpp", ["--npu-arch=dav-2201"])


@pytest.fixture
def pair(acl: Acl) -> Iterator[tuple[int, int]]:
    """Device addresses of two blocks of 64 floats; the first holds 0..63."""
    x, y = acl.malloc(256), acl.malloc(256)
    acl.memcpy_h2d(x, np.arange(64, dtype=np.float32))
    yield x, y
    acl.free(x)
    acl.free(y)


def test_device(acl: Acl) -> None:
    assert acl.virtual
    assert acl.soc_name() == "Ascend910B2"
    with pytest.raises(DeviceError, match="only device is 0") as caught:
        acl.set_device(3)
    assert caught.value.code == 107001


def test_options_are_values_of_one_launch(acl: Acl, binary: bytes, pair: tuple[int, int]) -> None:
    x, y = pair

    def task_us(options: LaunchOptions | None = None) -> float:
        acl.launch(module.function("axpy"), 1, [x, y, ctypes.c_uint32(64), ctypes.c_float(2)], options=options)
        acl.synchronize()
        return float(acl.report()["profile"]["task_duration_us"])

    with acl.load(binary) as module:
        usual = task_us()
        assert task_us(LaunchOptions(timing=False)) == 0
        assert task_us(LaunchOptions(state="cold")) > usual
        assert task_us(LaunchOptions(chip="ascend910b4")) != usual
        with acl.with_options(chip="ascend910b4"):
            assert task_us() != usual
        assert task_us() == usual
        for wrong in (LaunchOptions(chip="no_such_chip"), LaunchOptions(state="lukewarm"), LaunchOptions(fill=256)):
            with pytest.raises(DeviceError, match=r"no_such_chip|lukewarm|fill"):
                task_us(wrong)


def test_a_chip_file_that_is_older_than_a_count_takes_that_of_its_architecture(
    acl: Acl, binary: bytes, pair: tuple[int, int], tmp_path: Path
) -> None:
    """``calibrate`` writes files that inherit nothing; those of before keep working."""
    x, y = pair
    later = (
        *("cross_flag", "l2_line_bytes", "gm_cut_bytes", "ub_bank_", "dcache_", "bias_table_", "fixpipe_buffer_"),
        *("at_once", "operator_head_us"),
    )
    text = chip_text(load_chip("ascend910b2"), {}, [])
    for section in ("nd2nz", "mte1", "mac", "fixpipe", "cube_instructions"):
        text, found = re.subn(rf"^\[{section}\]\n(?:.+\n)+", "", text, flags=re.MULTILINE)
        assert found == 1
    lines = text.splitlines()
    file = tmp_path / "older.toml"
    kept = [line for line in lines if not line.startswith(later)]
    assert len(kept) == len(lines) - 13
    file.write_text("\n".join(kept))
    times = []
    with acl.load(binary) as module:
        for chip in ("ascend910b2", str(file)):
            arguments = [x, y, ctypes.c_uint32(64), ctypes.c_float(2)]
            acl.launch(module.function("axpy"), 2, arguments, options=LaunchOptions(chip))
            acl.synchronize()
            times.append(acl.report()["profile"]["task_duration_us"])
    assert times[0] == times[1] > 0


def test_a_chip_file_inherits_a_part_and_what_that_inherits(
    acl: Acl, binary: bytes, pair: tuple[int, int], tmp_path: Path
) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('[chip]\ninherits = "ascend910b4"\n')
    times = []
    with acl.load(binary) as module:
        for chip in ("ascend910b4", str(file)):
            arguments = [*pair, ctypes.c_uint32(64), ctypes.c_float(2)]
            acl.launch(module.function("axpy"), 2, arguments, options=LaunchOptions(chip))
            acl.synchronize()
            times.append(acl.report()["profile"]["task_duration_us"])
    assert times[0] == times[1] > 0


def test_launch_and_modelled_time(acl: Acl, binary: bytes, pair: tuple[int, int]) -> None:
    x, y = pair
    with acl.load(binary) as module:
        function = module.function("axpy")
        stream, start, end = acl.stream(), acl.create_event(), acl.create_event()
        acl.record(start, stream)
        acl.launch(function, 4, [x, y, ctypes.c_uint32(64), ctypes.c_float(2)], stream)
        acl.record(end, stream)
        elapsed = acl.elapsed_us(start, end)
        result = np.empty(64, np.float32)
        acl.memcpy_d2h(result, y)
        np.testing.assert_array_equal(result, np.arange(64, dtype=np.float32) * 2 + 1)
        report = acl.report()
        assert report["kernel"] == "axpy"
        assert report["block_dim"] == 4
        assert report["status"] == 0
        assert elapsed == pytest.approx(report["profile"]["task_duration_us"], rel=1e-5)
        acl.destroy_event(start)
        acl.destroy_event(end)
        acl.destroy_stream(stream)


def test_every_defined_kernel_is_found(acl: Acl, binary: bytes) -> None:
    with acl.load(binary) as module:
        for name in ("axpy", "out_of_bounds", "through_macro", "in_namespace"):
            assert module.function(name)
        with pytest.raises(DeviceError, match="only_declared"):
            module.function("only_declared")


def test_failure_belongs_to_its_stream_and_is_told_once(acl: Acl, binary: bytes, pair: tuple[int, int]) -> None:
    x, y = pair
    bad, good = acl.stream(), acl.stream()
    with acl.load(binary) as module:
        acl.launch(module.function("out_of_bounds"), 1, [x], bad)
        acl.launch(module.function("axpy"), 1, [x, y, ctypes.c_uint32(64), ctypes.c_float(1)], good)
        acl.synchronize(good)
        with pytest.raises(DeviceError, match="out_of_bounds") as caught:
            acl.synchronize(bad)
        assert caught.value.code == 507035
        acl.synchronize(bad)
        acl.synchronize()
        acl.launch(module.function("out_of_bounds"), 1, [x], bad)
        with pytest.raises(DeviceError, match="out_of_bounds"):
            acl.memcpy_d2h(np.empty(64, np.float32), y)
    acl.destroy_stream(bad)
    acl.destroy_stream(good)


def test_two_binaries_with_the_same_kernel_name(acl: Acl, pair: tuple[int, int]) -> None:
    _, y = pair
    results = []
    for constant in (5, 9):
        source = (
            '#include "kernel_operator.h"\n#include "constant.h"\ninline int state = CONSTANT;\n'
            'extern "C" __global__ __aicore__ void put(GM_ADDR y) {\n'
            "  AscendC::GlobalTensor<int32_t> to;\n  to.SetGlobalBuffer((__gm__ int32_t*)y, 8);\n"
            "  to.SetValue(0, state);\n}\n"
        )
        binary = acl.compile(source, "put.cpp", headers={"constant.h": f"#define CONSTANT {constant}\n"})
        with acl.load(binary) as module:
            acl.launch(module.function("put"), 1, [y])
            result = np.empty(8, np.int32)
            acl.memcpy_d2h(result, y)
            results.append(int(result[0]))
    assert results == [5, 9]


def test_compile_error_has_the_users_file_and_line(acl: Acl) -> None:
    source = 'int f() {\n  return undeclared_name;\n}\n#line 40 "user/kernel.h"\nint g() { return other_name; }\n'
    with pytest.raises(KernelCompileError) as caught:
        acl.compile(source, "user/kernel.cpp")
    assert "user/kernel.cpp:2" in caught.value.log
    assert "user/kernel.h:40" in caught.value.log
    assert "aclrtc-" not in caught.value.log, "the temporary folder's name is of no use to anyone"


@pytest.mark.parametrize("same", [True, False])
def test_compile_error_quotes_no_other_file(
    acl: Acl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, same: bool
) -> None:
    text = 'extern "C" __global__ __aicore__ void k(GM_ADDR x) { missing(); }\n'
    monkeypatch.chdir(tmp_path)
    Path("k.cpp").write_text(text if same else "something else\n")
    with pytest.raises(KernelCompileError, match=r"k\.cpp:1:.*'missing'") as caught:
        acl.compile(text, "k.cpp")
    assert ("1 | " in caught.value.log) is same
    assert "something else" not in caught.value.log


def test_a_file_may_hold_kernel_and_host_program(acl: Acl) -> None:
    headers = '#include "kernel_operator.h"\n#include "acl/acl.h"\n#include "tiling/tiling_api.h"\n'
    kernel = 'extern "C" __global__ __aicore__ void k(GM_ADDR x) { AscendC::TPipe pipe; }\n'
    host = "int width() { return ge::DT_FLOAT == 0 ? static_cast<int>(ge::FORMAT_ND) : 0; }\n"
    assert acl.compile(headers + kernel + host, "both.cpp")


def test_uncovered_api_is_named(acl: Acl) -> None:
    source = '#include "kernel_operator.h"\nextern "C" __global__ __aicore__ void k() {\n  AscendC::NoSuchApi(1);\n}\n'
    with pytest.raises(KernelCompileError, match=r"AscendC::NoSuchApi is not covered.*vnpu/include/ascendc"):
        acl.compile(source, "k.cpp")


MATRIX = "AscendC::MatmulType<AscendC::TPosition::GM, CubeFormat::ND, int32_t>"


@pytest.mark.parametrize(
    "body", [f"AscendC::Matmul<{MATRIX}, {MATRIX}, {MATRIX}> mm;", f"matmul::Matmul<{MATRIX}, {MATRIX}, {MATRIX}> mm;"]
)
def test_a_matrix_multiplication_is_refused(acl: Acl, body: str) -> None:
    """Its header may be included, its types named."""
    source = f'#include "lib/matmul_intf.h"\nextern "C" __global__ __aicore__ void k() {{\n  {body}\n}}\n'
    with pytest.raises(KernelCompileError, match="types of A and B are not covered"):
        acl.compile(source, "k.cpp")
    acl.compile(source.replace(" mm;", "* mm = nullptr; (void)mm;"), "k.cpp")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--no-such-option"], "unknown option --no-such-option"),
        (["--npu-arch=dav-3510"], "only architecture modelled is dav-2201"),
        (["-D"], "option -D has no value"),
    ],
)
def test_bad_option(acl: Acl, options: list[str], message: str) -> None:
    with pytest.raises(KernelCompileError, match=message):
        acl.compile(SOURCE, "axpy.cpp", options)


def test_options_reach_the_compiler(acl: Acl) -> None:
    source = '#include "kernel_operator.h"\nstatic_assert(VALUE == 3);\nextern "C" __global__ __aicore__ void k() {}\n'
    assert acl.compile(source, "k.cpp", ["-DVALUE=3", "-O2", "-Wno-unused", "-mllvm", "-x=1", "--cce-auto-sync=off"])


def test_source_without_kernel(acl: Acl) -> None:
    with pytest.raises(KernelCompileError, match="defines no kernel"):
        acl.compile("int x;\n", "empty.cpp")


def test_memory(acl: Acl) -> None:
    array = np.arange(10, dtype=np.float32).astype(ml_dtypes.bfloat16)
    pointer = acl.malloc(array.nbytes)
    assert pointer % 512 == 0
    acl.memcpy_h2d(pointer, array)
    back = np.empty_like(array)
    acl.memcpy_d2h(back, pointer)
    np.testing.assert_array_equal(back, array)
    acl.memset(pointer, 0xFF, array.nbytes)
    acl.memcpy_d2h(back, pointer)
    assert (back.view(np.uint16) == 0xFFFF).all()
    with pytest.raises(DeviceError, match="leave device memory"):
        acl.memcpy_h2d(pointer, np.zeros(4096, np.uint8))
    with pytest.raises(DeviceError, match="C-contiguous"):
        acl.memcpy_h2d(pointer, np.zeros((4, 4), np.float32).T[::2])
    acl.free(pointer)
    with pytest.raises(DeviceError, match="freed already"):
        acl.free(pointer)
    with pytest.raises(DeviceError, match="do not fit"):
        acl.malloc(1 << 50)


def test_argument_count_is_checked(acl: Acl, binary: bytes) -> None:
    with acl.load(binary) as module, pytest.raises(DeviceError, match="0 is outside"):
        acl.launch(module.function("through_macro"), 0, [0])


def test_garbage_is_no_binary(acl: Acl) -> None:
    with pytest.raises(DeviceError, match="not an ELF file"):
        acl.load(b"no binary at all")


def test_wrong_kind_of_toolkit() -> None:
    toolkit = virtual()
    with pytest.raises(ToolchainError, match="already runs the virtual NPU"):
        Acl(Toolkit("cann", toolkit.prefix, "0"))


def test_works_without_torch() -> None:
    code = (
        "import sys\nfrom ascendopt_tune.build.toolkit import virtual\nfrom ascendopt_tune.device.acl import Acl\n"
        "Acl(virtual()).malloc(64)\nassert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
