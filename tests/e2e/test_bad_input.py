"""What a user can get wrong: one paragraph on stderr that names the next step, exit code 2, nothing half-written."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ascendopt_tune import paths
from ascendopt_tune.cli import options
from ascendopt_tune.errors import CacheError

ADD = ["--input", "x=float16[8,2048]", "--input", "y=float16[8,2048]"]
BROKEN = """\
#include "kernel_operator.h"
extern "C" __global__ __aicore__ void broken(GM_ADDR x, GM_ADDR y) {
  AscendC::NoSuchThing(x, y);
}
"""

Cli = Callable[..., subprocess.CompletedProcess[str]]
Refused = Callable[..., str]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["run", "no_such_operator"], ["no_such_operator", "add"]),
        (["run"], ["no operator", "rms_norm"]),
        (["run", "add", "--kernel", "k.cpp"], ["both", "k.cpp"]),
        (["run", "--kernel", "/no/such.cpp", "--entry", "k", "--block-dim", "1"], ["/no/such.cpp"]),
        (["run", "--kernel", "k.cpp"], ["k.cpp", "does not exist"]),
        (["run", "./no/such/folder"], ["no folder ./no/such/folder"]),
        (["run", str(paths.shipped("registry"))], ["op_host/", "operators below", "registry/add"]),
        (["run", "add", "--block-dim", "3"], ["--kernel"]),
        (["run", "add", "--input", "z=float16[8]"], ["'z'", "x, y"]),
        (["run", "add", "--input", "x=float16[8]"], ["--input y="]),
        (["run", "add", "--input", "x=float17[8]"], ["float17", "float16"]),
        (["run", "add", "--input", "x=int64[8]", "--input", "y=int64[8]"], ["int64", "float16"]),
        (["run", "add", "--input", "x=float16(8)"], ["x=float16[1024,4096]"]),
        (["run", "add", *ADD, "--input", "x=float16[8]"], ["twice"]),
        (["run", "add", *ADD, "--attr", "axis=1"], ["axis"]),
        (["run", "rms_norm", "--attr", "epsilon=big"], ["epsilon", "big", "float"]),
        (["run", "add", *ADD, "--chip", "ascend310p"], ["ascend310p", "ascend910b2"]),
        (["run", "add", *ADD, "--target", "gpu"], ["gpu", "virtual"]),
        (["run", "add", "--inputs", "/no/such.npz"], ["/no/such.npz"]),
        (["run", "add", *ADD, "--outputs", "/no/such/out.npz"], ["/no/such"]),
        (["run", "add", *ADD, "--outputs", "out.txt"], [".safetensors"]),
        (["tune", "add", *ADD, "--report", "/proc/no/report.html"], ["--report", "/proc/no/report.html"]),
        (["tune", "add", "--input", "x=float16[8,2048]", "--input", "y=float16[3]"], ["tiling function", "16384"]),
    ],
)  # fmt: skip
def test_bad_input_is_refused_by_name(refused: Refused, arguments: list[str], says: list[str]) -> None:
    text = refused(*arguments)
    for word in says:
        assert word in text


def test_arrays_that_do_not_fit(refused: Refused, tmp_path: Path) -> None:
    for name in ("junk.npz", "junk.safetensors"):
        (tmp_path / name).write_text("junk")
        assert name in refused("run", "add", "--inputs", str(tmp_path / name))


def test_a_kernel_that_does_not_compile_shows_the_users_file_and_line(
    refused: Refused, cli: Cli, tmp_path: Path
) -> None:
    kernel = tmp_path / "broken.cpp"
    kernel.write_text(BROKEN)
    direct = ["--kernel", str(kernel), "--entry", "broken", "--block-dim", "1"]
    case = ["--input", "x=float32[8]", "--output", "y=float32[8]"]
    for command in ("run", "tune"):
        text = refused(command, *direct, *case)
        assert f"{kernel}:3" in text
        assert "NoSuchThing" in text
    found = json.loads(cli("run", *direct, *case, "--json", expect=2).stdout)
    assert found["outcome"] == "CompileFailed"
    assert f"{kernel}:3" in found["reason"]
    assert "AscendC::NoSuchThing(x, y);" in found["log"]


def test_a_kernel_file_says_itself_what_to_launch(refused: Refused, tmp_path: Path) -> None:
    kernel = tmp_path / "two.cpp"
    kernel.write_text(BROKEN + BROKEN.replace("broken", "other") + "void host() { other<<<7, nullptr, 0>>>(0, 0); }")
    text = refused("run", "--kernel", str(kernel))
    for word in ("broken, other", "--entry"):
        assert word in text
    assert "--block-dim" in refused("run", "--kernel", str(kernel), "--entry", "broken")
    assert "other needs x" in refused("run", "--kernel", str(kernel), "--entry", "other")


def test_what_cube_kernels_lack_is_refused_with_the_reason(refused: Refused, tmp_path: Path) -> None:
    kernel = tmp_path / "cube.cpp"
    kernel.write_text(BROKEN.replace("NoSuchThing", "SetAippFunctions"))
    case = ["--input", "x=float32[8]", "--output", "y=float32[8]"]
    text = refused("run", "--kernel", str(kernel), "--block-dim", "1", *case)
    for word in ("AscendC::SetAippFunctions", "not covered", "at this stage", "docs/cube.md", "docs/api.md"):
        assert word in text


def test_without_inputs_the_operator_tells_what_it_takes(refused: Refused, operator: Path) -> None:
    (operator / "op.toml").unlink()
    (operator / "reference.py").unlink()
    text = refused("run", str(operator))
    for word in ("It takes x (float16", "y (float16", "--input x=float16[64,1024] --input y=float16[64,1024]"):
        assert word in text


@pytest.fixture
def operator(tmp_path: Path) -> Path:
    """A copy of the registry's add."""
    return Path(shutil.copytree(paths.shipped("registry") / "add", tmp_path / "my_add"))


def test_a_tiling_program_that_does_not_compile(refused: Refused, cli: Cli, operator: Path) -> None:
    source = operator / "op_host/add.cpp"
    lines = source.read_text().splitlines()
    number = next(i for i, line in enumerate(lines) if "totalLength =" in line)
    lines[number] += " nonsense;"
    source.write_text("\n".join(lines) + "\n")
    for command in ("run", "tune"):
        assert f"{source}:{number + 1}" in refused(command, str(operator))
    error = json.loads(cli("tune", str(operator), "--json", expect=2).stdout)["error"]
    assert error["kind"] == "HostProgramError"
    assert str(source) in error["message"]


def test_a_missing_tiling_function(refused: Refused, operator: Path) -> None:
    source = operator / "op_host/add.cpp"
    source.write_text("".join(line for line in source.read_text().splitlines(True) if "SetTiling" not in line))
    text = refused("run", str(operator))
    assert "no tiling function" in text
    assert "SetTiling" in text


def test_a_case_the_tiling_function_refuses(refused: Refused, cli: Cli) -> None:
    case = ["--input", "x=float16[8,2048]", "--input", "y=float16[3]"]
    text = refused("run", "add", *case)
    assert "tiling function" in text
    assert "16384" in text, "the operator's own words"
    found = json.loads(cli("run", "add", *case, "--json", expect=2).stdout)
    assert found["outcome"] == "LaunchFailed"
    assert found["profile"] is None


def test_without_a_compiler_the_next_step_is_named(refused: Refused, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASCENDOPT_CXX", "no-such-compiler")
    for command in ("run", "tune"):
        text = refused(command, "add", *ADD)
        assert "no-such-compiler" in text
        assert "Install" in text
    assert "no-such-compiler" in cli("doctor", expect=1).stdout


def test_a_cache_folder_that_cannot_be_written(refused: Refused, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASCENDOPT_CACHE_DIR", "/proc/ascendopt")
    for command in ("run", "tune"):
        text = refused(command, "add", *ADD)
        assert "/proc/ascendopt" in text
        assert "ASCENDOPT_CACHE_DIR" in text
    assert "ASCENDOPT_CACHE_DIR" in cli("doctor", expect=1).stdout


def test_a_full_disk_is_told_before_anything_is_written(monkeypatch: pytest.MonkeyPatch, shared_cache: Path) -> None:
    usage = shutil.disk_usage("/")._replace(free=1 << 20)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(CacheError, match="is full: 1 MiB free"):
        options.check_cache_folder()


def test_an_unknown_setting_is_refused(refused: Refused, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASCENDOPT_BUGDET", "10")
    assert "ASCENDOPT_BUDGET" in refused("run", "add", *ADD)


def test_debug_shows_the_traceback(cli: Cli) -> None:
    done = cli("run", "no_such_operator", "--debug", expect=2)
    assert "Traceback" in done.stderr
    assert "no_such_operator" in done.stderr.splitlines()[-1]
