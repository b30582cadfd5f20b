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
from doc_blocks import blocks, run_blocks
from first_hour import linked

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
    return [block.text for block in run_blocks(document) if block.language == language]


def as_on_page(name: str, text: str) -> None:
    """What the example's page shows is among what it printed, in that order; numbers may be others.

    With REFRESH in the environment the page gets the numbers of this run.
    """
    page = EXAMPLES / f"{name}.md"
    (shown_there,) = [block.text for block in blocks(page) if block.language == "text"]
    printed = iter(text.splitlines())
    now = []
    for line in shown_there.splitlines():
        beginning = line.removesuffix(" ...")
        wanted = _without_numbers(beginning)
        found = line if line == "..." else next((p for p in printed if _without_numbers(p).startswith(wanted)), None)
        assert found is not None, f"{line}\nis not in\n{text}"
        now.append(found if line == beginning else f"{_as_many_words(found, beginning)} ...")
    if os.environ.get("REFRESH"):
        page.write_text(page.read_text().replace(shown_there, "\n".join(now) + "\n"))


def _as_many_words(line: str, beginning: str) -> str:
    words = re.findall(r"\s*\S+", re.sub(r"sha256:[0-9a-f]+", "sha256:", line))
    return "".join(words[: len(beginning.split())])


def _without_numbers(line: str) -> str:
    line = re.sub(r" \(\d+ in C\+\+\)|\([0-9a-f]{12}\)", "", line)
    return re.sub(r"[\d.]+", "0", " ".join(line.split()))


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder in which ``ascendopt-tune`` and the package of this tree are found."""
    linked(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("ASCENDOPT_BUDGET", "2")
    work = tmp_path / "work"
    work.mkdir()
    return work


def execute(*command: str, cwd: Path) -> str:
    done = subprocess.run(
        command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}"
    return done.stdout


def test_the_command_line(run: Path) -> None:
    text = execute("sh", str(EXAMPLES / "01_command_line.sh"), cwd=run)
    as_on_page("01_command_line", text)
    assert "modelled" in text
    assert json.loads((run / "rms_norm.json").read_text())["cached"]
    page = (run / "rms_norm.html").read_text()
    assert "<svg" in page
    assert "modelled" in page


@needs_torch_npu
def test_the_decorator(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASCENDOPT_CACHE_DIR", str(tmp_path / "cache"))
    text = execute(sys.executable, str(EXAMPLES / "02_decorator.py"), cwd=run)
    as_on_page("02_decorator", text)
    assert "2 hits" in text
    assert "1 tuned" in text
    assert "us (modelled)" in text


def test_a_direct_launch(run: Path) -> None:
    text = execute("sh", str(EXAMPLES / "03_direct_launch.sh"), cwd=run)
    as_on_page("03_direct_launch", text)
    assert (run / "scale_shift.npz").exists()


def test_prebuild_and_deploy(run: Path) -> None:
    text = execute("sh", str(EXAMPLES / "04_prebuild.sh"), cwd=run)
    as_on_page("04_prebuild", text)
    assert text.count("rms_norm on ascend910b2") == 2
    assert "case.inputs[0].shape: wanted '[32,1024]', cached '[" in text
    assert text.count("rebuilt  rms_norm") == 2
    assert "every result is sound" in text


@needs_torch_npu
def test_intercepting_an_extension(run: Path) -> None:
    text = execute(sys.executable, str(EXAMPLES / "intercept/run.py"), cwd=run)
    as_on_page("intercept", text)
    assert re.search(r"my_ops::silu: [12] hits|my_ops::silu: 0 hits, [12] kept", text)
    assert ", 1 tuned, 0 fallbacks" in text


@needs_torch_npu
def test_warmup_of_a_decoder(run: Path) -> None:
    text = execute(sys.executable, str(EXAMPLES / "05_warmup.py"), "--compile", cwd=run)
    as_on_page("05_warmup", text)
    assert "the answers are those of before" in text
    row = r"^ *[\d.]+% +(\d+) calls  [\d.]+ -> [\d.]+ us modelled, [\d.]+x.*  ascendopt::(\w+) "
    cases = re.findall(row, text, re.MULTILINE)
    assert sorted({name for _, name in cases}) == ["add", "rms_norm", "rope", "softmax", "swiglu"]
    assert len(cases) == 10  # prefill and decoding each
    assert sum(int(calls) for calls, _ in cases) == 34


@pytest.mark.battery  # tests/torch/test_compile.py compiles the same model in every run
@needs_torch_npu
def test_warmup_of_a_decoder_on_cube_cores(run: Path) -> None:
    """Matmuls and attention are operators, too: ranked with the others, tuned, served and compiled."""
    text = execute(sys.executable, str(EXAMPLES / "05_warmup.py"), "--cubes", "--compile", cwd=run)
    assert "the answers are those of before" in text
    row = r"^ *([\d.]+)% +\d+ calls  [\d.]+ -> [\d.]+ us modelled, .*  ascendopt::(\w+) "
    cases = [(float(share), name) for share, name in re.findall(row, text, re.MULTILINE)]
    assert {name for _, name in cases} == {"add", "flash_attention", "matmul", "rms_norm", "rope", "swiglu"}
    assert cases == sorted(cases, key=lambda case: -case[0])
    of = {name: sum(share for share, other in cases if other == name) for _, name in cases}
    assert of["matmul"] + of["flash_attention"] > 40
    served = re.search(r"ascendopt::matmul: (\d+) hits \(\d+ in C\+\+\), (\d+) kept, 0 misses, 10 tuned", text)
    assert served is not None
    assert sum(map(int, served.groups())) >= 4 * 9  # prefill and decoding, as they are and compiled


@needs_torch_npu
def test_torch_compile(run: Path) -> None:
    text = execute(sys.executable, str(EXAMPLES / "06_compile.py"), cwd=run)
    as_on_page("06_compile", text)
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


@pytest.mark.battery  # the tutorial, which test_first_hour.py runs, goes the same way
@needs_torch_npu
def test_an_operator_of_ones_own(run: Path) -> None:
    text = execute("sh", str(EXAMPLES / "08_own_operator/run.sh"), cwd=run)
    as_on_page("08_own_operator", text)
    assert re.search(r"clipped_relu_op: [12] hits|clipped_relu_op: 0 hits, [12] kept", text)


@needs_torch_npu
@pytest.mark.skipif(importlib.util.find_spec("transformers") is None, reason="transformers is not installed")
def test_a_llama(run: Path) -> None:
    text = execute(sys.executable, str(EXAMPLES / "09_llama.py"), cwd=run)
    as_on_page("09_llama", text)
    served = re.search(r"^rms_norm: (\d+) hits(?: \(\d+ in C\+\+\))?, (\d+) kept", text, re.MULTILINE)
    assert served is not None, text
    assert sum(map(int, served.groups())) >= 20  # two layers and the last norm, in prefill and each step


@pytest.mark.skipif("ASCENDOPT_VLLM_ASCEND" not in os.environ, reason="ASCENDOPT_VLLM_ASCEND is not set")
def test_a_kernel_of_vllm_ascend(run: Path) -> None:
    as_on_page("10_vllm_ascend", execute("sh", str(EXAMPLES / "10_vllm_ascend.sh"), cwd=run))


@pytest.mark.battery  # test_prebuild_and_deploy makes and serves a bundle, too
@needs_torch_npu
def test_a_bundle_in_an_image(run: Path) -> None:
    text = execute("sh", str(EXAMPLES / "11_container.sh"), cwd=run)
    as_on_page("11_container", text)
    assert "0 misses, 0 tuned" in text
    assert not (run / "empty/entries").exists(), "nothing was tuned where it serves"
    serving = re.findall(r"ASCENDOPT_\w+(?==)", (EXAMPLES / "11_container.sh").read_text())
    assert set(serving) <= set(re.findall(r"ASCENDOPT_\w+", (EXAMPLES / "container/Dockerfile").read_text()))


@pytest.mark.battery
def test_an_image_with_a_bundle(run: Path) -> None:
    """Where docker or buildah and a base image are at hand."""
    made = subprocess.run(
        ["ascendopt-tune", "prebuild", EXAMPLES / "container/manifest.toml", "-o", "bundle", "--json"],
        cwd=run, stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    build = ["sh", str(EXAMPLES / "container/build.sh"), json.loads(made.stdout)["digest"]]
    done = subprocess.run(build, cwd=run, capture_output=True, text=True, check=False)
    if done.returncode in (3, 4):
        pytest.skip(done.stderr.strip().splitlines()[-1])
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert re.search(r"^silu: 2 hits.*0 misses, 0 tuned", done.stdout, re.MULTILINE), done.stdout


def test_a_recorded_model(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASCENDOPT_CACHE_DIR", str(tmp_path / "cache"))  # no warm start from the other examples
    text = execute(sys.executable, str(EXAMPLES / "12_language_model.py"), cwd=run)
    as_on_page("12_language_model", text)


@pytest.mark.battery  # tests/mkb runs the same commands
@needs_torch_npu
def test_multikernelbench(run: Path) -> None:
    as_on_page("13_multikernelbench", execute("sh", str(EXAMPLES / "13_multikernelbench.sh"), cwd=run))


@pytest.mark.battery  # tests/calibrate runs the same command
def test_calibrating(run: Path) -> None:
    as_on_page("14_calibrate", execute("sh", str(EXAMPLES / "14_calibrate.sh"), cwd=run))
    assert (run / "mine.toml").exists()


def test_every_example_has_a_page_and_a_test() -> None:
    here = Path(__file__).read_text()
    files = [f for f in EXAMPLES.iterdir() if f.suffix in (".py", ".sh")]
    assert len(files) >= 13  # two more are folders
    overview = (EXAMPLES / "README.md").read_text()
    for page in sorted(p for p in EXAMPLES.glob("*.md") if p.name != "README.md"):
        assert f"({page.name})" in overview, page.name
    for file in files:
        assert file.with_suffix(".md").exists(), file.name
        assert file.name in here, file.name


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
