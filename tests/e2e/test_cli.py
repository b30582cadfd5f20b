"""The command line as a user calls it: results, JSON documents, and one-paragraph errors with exit code 2."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ADD = ["--input", "x=float16[8,2048]", "--input", "y=float16[8,2048]"]
PROFILE = {
    "task_duration_us", "aiv_time_us", "aiv_vec_time_us", "aiv_scalar_time_us", "aiv_mte2_time_us", "aiv_mte3_time_us",
}  # fmt: skip


def cli(*arguments: str, expect: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "ascendopt_tune", *arguments], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == expect, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def refused(*arguments: str) -> str:
    """stderr of a call that must fail with exit code 2, one paragraph and no traceback."""
    done = cli(*arguments, expect=2)
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    return done.stderr


def test_help_names_every_command() -> None:
    text = cli("--help").stdout
    for command in ("doctor", "ops", "run", "tune", "toolkit"):
        assert command in text


def test_doctor_finds_the_compiler_and_the_virtual_npu() -> None:
    findings = {f["name"]: f for f in json.loads(cli("doctor", "--json").stdout)["findings"]}
    assert findings["host compiler"]["state"] == "ok"
    assert findings["virtual NPU"]["state"] == "ok"


def test_ops_lists_the_registry_with_signatures() -> None:
    operators = json.loads(cli("ops", "--json").stdout)["operators"]
    assert len(operators) >= 10
    assert all("->" in o["signature"] for o in operators)


def test_run_reports_a_modelled_profile() -> None:
    document = json.loads(cli("run", "add", *ADD, "--json").stdout)
    assert document["outcome"] == "Timed"
    assert document["target"] == "virtual"
    assert document["checks"] > 0
    assert document["hazards"] == []
    assert document["profile"].keys() >= PROFILE
    assert document["profile"]["task_duration_us"] > 0
    assert document["timings_s"].keys() >= {"compile", "tiling", "execute"}
    assert document["block_dim"] >= 1


def test_run_with_the_users_arrays_saves_what_the_kernel_computed(tmp_path: Path) -> None:
    x, y = (np.random.default_rng(seed).standard_normal((3, 50)).astype(np.float32) for seed in (1, 2))
    np.savez(tmp_path / "in.npz", x=x, y=y)
    cli("run", "add", "--inputs", str(tmp_path / "in.npz"), "--outputs", str(tmp_path / "out.npz"))
    (result,) = np.load(tmp_path / "out.npz").values()
    np.testing.assert_array_equal(result, x + y)


def test_tune_writes_record_and_report_and_answers_the_second_call_from_the_cache(tmp_path: Path) -> None:
    record, report = tmp_path / "record.json", tmp_path / "report.html"
    arguments = ["tune", "add", *ADD, "--budget", "4", "--json"]
    first = json.loads(cli(*arguments, "--record", str(record), "--report", str(report)).stdout)
    assert not first["cached"]
    assert first["evaluations"] == sum(first["outcomes"].values()) <= 4
    assert first["history"]
    assert json.loads(record.read_text()) == first
    assert "modelled" in report.read_text()
    second = json.loads(cli(*arguments).stdout)
    assert second["cached"]
    assert second["cache_key"] == first["cache_key"]
    assert second["best"] == first["best"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["run", "no_such_operator"], ["no_such_operator", "add"]),
        (["run", "add", "--input", "z=float16[8]"], ["z", "x"]),
        (["run", "add", "--input", "x=float16[8]"], ["y"]),
        (["run", "add", "--input", "x=float17[8]"], ["float17", "float16"]),
        (["run", "add", "--input", "x=int64[8]", "--input", "y=int64[8]"], ["int64"]),
        (["run", "add", *ADD, "--attr", "axis=1"], ["axis"]),
        (["run", "rms_norm", "--input", "x=float16[4,64]", "--input", "gamma=float16[64]", "--attr", "epsilon=big"],
         ["epsilon", "big"]),
        (["run", "add", *ADD, "--chip", "ascend310p"], ["ascend310p", "ascend910b2"]),
        (["run", "add", "--input", "x=float16(8)"], ["x=float16[1024,4096]"]),
    ],
)  # fmt: skip
def test_bad_input_is_refused_by_name(arguments: list[str], says: list[str]) -> None:
    text = refused(*arguments)
    for word in says:
        assert word in text


def test_a_kernel_that_does_not_compile_shows_the_users_file_and_line(tmp_path: Path) -> None:
    kernel = tmp_path / "broken.cpp"
    kernel.write_text(
        '#include "kernel_operator.h"\n'
        'extern "C" __global__ __aicore__ void broken(GM_ADDR x, GM_ADDR y) {\n'
        "  AscendC::NoSuchThing(x, y);\n"
        "}\n"
    )
    done = cli("run", "--kernel", str(kernel), "--entry", "broken", "--block-dim", "1",
               "--input", "x=float32[8]", "--output", "y=float32[8]", expect=1)  # fmt: skip
    assert f"{kernel}:3" in done.stdout
    assert "NoSuchThing" in done.stdout


def test_without_a_compiler_the_next_step_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASCENDOPT_CXX", "no-such-compiler")
    text = refused("run", "add", *ADD)
    assert "no-such-compiler" in text
    assert "Install" in text


def test_a_case_the_tiling_function_refuses(tmp_path: Path) -> None:
    done = cli("run", "add", "--input", "x=float16[8,2048]", "--input", "y=float16[3]", expect=1)
    assert "LaunchFailed" in done.stdout
    assert "tiling" in done.stdout


def test_an_unknown_setting_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASCENDOPT_BUGDET", "10")
    assert "ASCENDOPT_BUDGET" in refused("run", "add", *ADD)
