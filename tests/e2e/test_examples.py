"""The examples, and the commands and programs that README.md shows, run as they stand there."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ascendopt_tune import paths

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
HAVE_TORCH_NPU = all(importlib.util.find_spec(name) is not None for name in ("torch", "torch_npu"))
needs_torch_npu = pytest.mark.skipif(not HAVE_TORCH_NPU, reason="torch or torch_npu is not installed")

KERNEL = """\
#include "kernel_operator.h"
using namespace AscendC;
extern "C" __global__ __aicore__ void my_kernel(GM_ADDR x, GM_ADDR y) {
  TPipe pipe;
  TQueBind<QuePosition::VECIN, QuePosition::VECOUT, 1> queue;
  pipe.InitBuffer(queue, 1, N / 8 * sizeof(float));
  GlobalTensor<float> from, to;
  from.SetGlobalBuffer((__gm__ float*)x + GetBlockIdx() * (N / 8), N / 8);
  to.SetGlobalBuffer((__gm__ float*)y + GetBlockIdx() * (N / 8), N / 8);
  LocalTensor<float> tile = queue.AllocTensor<float>();
  DataCopy(tile, from, N / 8);
  queue.EnQue(tile);
  tile = queue.DeQue<float>();
  DataCopy(to, tile, N / 8);
  queue.FreeTensor(tile);
}
"""


def shown(language: str, document: str = "README.md") -> list[str]:
    """The code blocks of a document that are marked as tested."""
    return re.findall(rf"<!-- tested -->\n```{language}\n(.*?)```", (ROOT / document).read_text(), re.DOTALL)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder in which ``ascendopt-tune`` and the package of this tree are found."""
    tool = tmp_path / "bin/ascendopt-tune"
    tool.parent.mkdir()
    tool.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ascendopt_tune "$@"\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("ASCENDOPT_BUDGET", "2")
    work = tmp_path / "work"
    work.mkdir()
    return work


def execute(*command: str, cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_the_command_line(run: Path) -> None:
    text = execute("sh", str(EXAMPLES / "01_command_line.sh"), cwd=run)
    assert "modelled" in text
    assert json.loads((run / "rms_norm.json").read_text())["cached"]
    page = (run / "rms_norm.html").read_text()
    assert "<svg" in page
    assert "modelled" in page


@needs_torch_npu
def test_the_decorator(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASCENDOPT_CACHE_DIR", str(tmp_path / "cache"))
    text = execute(sys.executable, str(EXAMPLES / "02_decorator.py"), cwd=run)
    assert "2 hits" in text
    assert "1 tuned" in text
    assert "us (modelled)" in text


def test_a_direct_launch(run: Path) -> None:
    assert "no hazard" in execute("sh", str(EXAMPLES / "03_direct_launch.sh"), cwd=run)
    assert (run / "scale_shift.npz").exists()


def test_prebuild_and_deploy(run: Path) -> None:
    text = execute("sh", str(EXAMPLES / "04_prebuild.sh"), cwd=run)
    assert text.count("rms_norm on ascend910b2") == 2
    assert "case.inputs[0].shape: wanted '[32,1024]', cached '[" in text
    assert text.count("rebuilt  rms_norm") == 2
    assert "every result is sound" in text


@needs_torch_npu
def test_intercepting_an_extension(run: Path) -> None:
    text = execute(sys.executable, str(EXAMPLES / "intercept/run.py"), cwd=run)
    assert re.search(r"my_ops::silu: [12] hits|my_ops::silu: 0 hits, [12] kept", text)
    assert ", 1 tuned, 0 fallbacks" in text


@needs_torch_npu
def test_warmup_of_a_decoder(run: Path) -> None:
    text = execute(sys.executable, str(EXAMPLES / "05_warmup.py"), "--compile", cwd=run)
    assert "the answers are those of before" in text
    row = r"^ *[\d.]+% +(\d+) calls  [\d.]+ -> [\d.]+ us modelled, [\d.]+x.*  ascendopt::(\w+) "
    cases = re.findall(row, text, re.MULTILINE)
    assert sorted({name for _, name in cases}) == ["add", "rms_norm", "rope", "softmax", "swiglu"]
    assert len(cases) == 10  # prefill and decoding each
    assert sum(int(calls) for calls, _ in cases) == 34


@needs_torch_npu
def test_torch_compile(run: Path) -> None:
    text = execute(sys.executable, str(EXAMPLES / "06_compile.py"), cwd=run)
    for name in ("registry/add", "ascendopt::rms_norm"):
        line = rf"^{name}: (\d+) hits(?: \(\d+ in C\+\+\))?, (\d+) kept, \d misses, 1 tuned, 0 fallbacks"
        served = re.search(line, text, re.MULTILINE)
        assert served is not None, text
        assert sum(map(int, served.groups())) == 4


@pytest.mark.battery
@needs_torch_npu
def test_a_block_s_subgraphs(run: Path) -> None:
    """Both norms and the gate are operators; the softmax's isn't faster than its calls."""
    text = execute(sys.executable, str(EXAMPLES / "07_generate.py"), cwd=run)
    assert re.findall(r"^(\w+) \[.*\] operator \((\w+)\)", text, re.MULTILINE) == [
        ("pow_mean_add_rsqrt_mul_mul", "rows"),
        ("add_pow_mean_add_rsqrt_mul_7", "rows"),
        ("silu_mul", "map"),
    ]
    assert "mul_softmax [mul _softmax] as it was (no faster than its calls)" in text


def test_the_demo(run: Path) -> None:
    text = execute(sys.executable, str(EXAMPLES / "demo.py"), cwd=run)
    assert "answered from the cache" in text
    record = json.loads((run / "demo-output/record.json").read_text())
    assert record["operator"] == "rms_norm"
    assert not record["cached"]
    assert (run / "demo-output/report.html").exists()


def test_the_readmes_commands(run: Path) -> None:
    for part in ("op_host", "op_kernel"):
        shutil.copytree(paths.shipped("registry") / "add" / part, run / "path/to/my_op" / part)
    (run / "my_kernel.cpp").write_text(KERNEL)
    blocks = [*shown("sh"), *shown("sh", "docs/tour.md")]
    assert blocks
    for block in blocks:
        execute("sh", "-euc", block, cwd=run)


def test_the_command_at_the_end_of_the_life_of_a_datacopy(run: Path) -> None:
    shutil.copytree(EXAMPLES, run / "examples")
    (block,) = shown("sh", "docs/life_of_a_datacopy.md")
    text = execute("sh", "-euc", block, cwd=run)
    assert "diagnosis: " in text
    copies = [e for e in json.loads((run / "scale_shift.json").read_text())["traceEvents"] if e["name"] == "DataCopy"]
    assert any("scale_shift.cpp:24 " in e["args"]["source"] for e in copies)


@needs_torch_npu
def test_the_readmes_programs(run: Path) -> None:
    programs = shown("python")
    assert programs
    for number, program in enumerate(programs):
        (run / f"program{number}.py").write_text(program)
        execute(sys.executable, f"program{number}.py", cwd=run)
