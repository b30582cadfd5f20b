"""The command line as a user calls it: results and JSON documents."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from stopping import interrupted

from ascendopt_tune import paths

ADD = ["--input", "x=float16[8,2048]", "--input", "y=float16[8,2048]"]
PROFILE = {
    "task_duration_us", "aiv_time_us", "aiv_vec_time_us", "aiv_scalar_time_us", "aiv_mte2_time_us", "aiv_mte3_time_us",
}  # fmt: skip
RUN = {
    "operator", "case", "chip", "target", "outcome", "checks", "hazards", "profile", "block_dim", "tiling_key",
    "timings_s",
}  # fmt: skip
TUNE = RUN | {"baseline", "best", "speedup", "evaluations", "outcomes", "cached", "cache_key", "history"}

Cli = Callable[..., subprocess.CompletedProcess[str]]
Document = Callable[..., dict[str, Any]]

SCALE = """\
#include "kernel_operator.h"
using namespace AscendC;
extern "C" __global__ __aicore__ void scale(GM_ADDR x, GM_ADDR y, float factor) {
  TPipe pipe;
  TQue<QuePosition::VECIN, 1> in;
  TQue<QuePosition::VECOUT, 1> out;
  pipe.InitBuffer(in, 1, N * sizeof(float));
  pipe.InitBuffer(out, 1, N * sizeof(float));
  GlobalTensor<float> from, to;
  from.SetGlobalBuffer((__gm__ float*)x + GetBlockIdx() * N, N);
  to.SetGlobalBuffer((__gm__ float*)y + GetBlockIdx() * N, N);
  LocalTensor<float> a = in.AllocTensor<float>();
  DataCopy(a, from, N);
  in.EnQue(a);
  a = in.DeQue<float>();
  LocalTensor<float> b = out.AllocTensor<float>();
  Muls(b, a, factor, N);
  out.EnQue(b);
  in.FreeTensor(a);
  b = out.DeQue<float>();
  DataCopy(to, b, N);
  out.FreeTensor(b);
}
int main() { return 1; }
"""


@pytest.fixture
def fresh_results(tmp_path: Path, shared_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache without results, which finds what the others have compiled."""
    (shared_cache / "build").mkdir(parents=True, exist_ok=True)
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache/build").symlink_to(shared_cache / "build")
    monkeypatch.setenv("ASCENDOPT_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_help_names_every_command_and_option(cli: Cli) -> None:
    text = cli("--help").stdout
    for command in ("doctor", "ops", "run", "tune", "toolkit"):
        assert command in text
    text = cli("tune", "--help").stdout
    for option in ("--input", "--inputs", "--attr", "--output", "--outputs", "--chip", "--seed", "--budget", "--kernel",
                   "--entry", "--block-dim", "-D", "--json", "--report", "--target"):  # fmt: skip
        assert option in text
    assert "Examples" in text


def test_doctor_finds_the_compiler_and_the_virtual_npu(cli: Cli, document: Document) -> None:
    findings = {f["name"]: f for f in document("doctor")["findings"]}
    for name in ("host compiler", "virtual NPU", "cache folder", "chip", "target"):
        assert findings[name]["state"] == "ok", findings[name]
    assert findings.keys() >= {"CANN toolkit", "NPU devices", "torch", "torch_npu"}
    assert all(f["next_step"] for f in findings.values() if f["state"] != "ok")
    assert "host compiler" in cli("doctor").stdout


def test_toolkit_prints_a_root_laid_out_as_canns(cli: Cli, document: Document) -> None:
    prefix = Path(cli("toolkit", "--prefix").stdout.strip())
    assert (prefix / "include/acl/acl.h").is_file()
    assert (prefix / "include/kernel_operator.h").is_file()
    assert (prefix / "lib64/libascendcl.so").is_file()
    assert (prefix / "lib64/libacl_rtc.so").is_file()
    assert document("toolkit")["prefix"] == str(prefix)


def test_ops_lists_the_registry_with_signatures(document: Document) -> None:
    operators = document("ops")["operators"]
    assert len(operators) >= 10
    assert all("->" in o["signature"] and o["summary"] for o in operators)


def test_run_reports_a_modelled_profile(cli: Cli, document: Document) -> None:
    found = document("run", "add", *ADD)
    assert found.keys() >= RUN
    assert (found["operator"], found["outcome"], found["target"]) == ("add", "Timed", "virtual")
    assert found["case"]["inputs"] == ["float16[8,2048]"] * 2
    assert found["checks"] > 0
    assert found["hazards"] == []
    assert found["profile"].keys() >= PROFILE
    assert found["profile"]["task_duration_us"] > 0
    assert found["timings_s"].keys() >= {"compile", "tiling", "execute"}
    assert found["block_dim"] >= 1
    assert isinstance(found["tiling_key"], int)
    again = document("run", "add", *ADD)
    assert again["profile"] == found["profile"], "modelled times are reproducible"
    assert "modelled" in cli("run", "add", *ADD).stdout
    behind = [document("run", "add", *ADD, "--state", state) for state in ("warm", "flushed", "cold")]
    assert [one["state"] for one in behind] == ["warm", "flushed", "cold"]
    times = [one["profile"]["task_duration_us"] for one in behind]
    assert found["profile"]["task_duration_us"] == times[0] < times[1] < times[2]
    assert "as written, flushed" in cli("run", "add", *ADD, "--state", "flushed").stdout
    assert "unknown" in cli("run", "add", *ADD, "--state", "hot", expect=2).stderr


def test_options_that_have_no_effect_on_fidelity_are_refused(cli: Cli, tmp_path: Path) -> None:
    assert "--docs goes with --operators" in cli("fidelity", "--docs", str(tmp_path / "page.md"), expect=2).stderr
    refused = cli("fidelity", "--operators", "--cold", "--plot", str(tmp_path / "page.html"), expect=2).stderr
    assert "--operators has no --cold, --plot" in refused


def test_run_with_the_users_arrays_saves_what_the_kernel_computed(cli: Cli, tmp_path: Path) -> None:
    x, y = (np.random.default_rng(seed).standard_normal((3, 50)).astype(np.float32) for seed in (1, 2))
    np.savez(tmp_path / "in.npz", x=x, y=y)
    cli("run", "add", "--inputs", str(tmp_path / "in.npz"), "--outputs", str(tmp_path / "out.npz"))
    results = np.load(tmp_path / "out.npz")
    np.testing.assert_array_equal(results["z"], x + y)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.npz", "out.npz"]


def test_bfloat16_travels_in_safetensors(cli: Cli, tmp_path: Path) -> None:
    x = np.linspace(-4, 4, 64 * 3, dtype=np.float32).reshape(3, 64).astype(ml_dtypes.bfloat16)
    save_file({"x": x, "gamma": np.ones(64, ml_dtypes.bfloat16)}, tmp_path / "in.safetensors")
    cli("run", "rms_norm", "--inputs", str(tmp_path / "in.safetensors"), "--attr", "epsilon=1e-5",
        "--outputs", str(tmp_path / "out.safetensors"))  # fmt: skip
    y = load_file(tmp_path / "out.safetensors")["y"]
    assert y.dtype == ml_dtypes.bfloat16
    wide = x.astype(np.float32)
    expected = wide / np.sqrt((wide**2).mean(-1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(y.astype(np.float32), expected, rtol=2e-2, atol=1e-2)


def test_a_kernel_for_direct_launch(document: Document, tmp_path: Path) -> None:
    (tmp_path / "scale.cpp").write_text(SCALE)
    x = np.arange(4 * 256, dtype=np.float32)
    np.savez(tmp_path / "in.npz", x=x)
    direct = ["--kernel", str(tmp_path / "scale.cpp"), "--entry", "scale", "--block-dim", "4", "-D", "N=256"]
    case = ["--inputs", str(tmp_path / "in.npz"), "--output", "y=float32[1024]", "--attr", "factor=2.5"]
    found = document("run", *direct, *case, "--outputs", str(tmp_path / "out.npz"))
    assert (found["outcome"], found["block_dim"], found["reference"]) == ("Timed", 4, "baseline")
    np.testing.assert_array_equal(np.load(tmp_path / "out.npz")["y"], x * 2.5)


def test_a_kernel_that_does_nothing_is_only_a_launch(cli: Cli, document: Document, tmp_path: Path) -> None:
    (tmp_path / "empty.cpp").write_text(
        '#include "kernel_operator.h"\nextern "C" __global__ __aicore__ void empty(GM_ADDR x, GM_ADDR y) {}\n'
    )
    direct = ["--kernel", str(tmp_path / "empty.cpp"), "--entry", "empty", "--block-dim", "100"]
    case = ["--input", "x=float32[8]", "--output", "y=float32[8]", "--chip", "ascend910b2"]
    found = document("run", *direct, *case, "--profile")
    assert found["outcome"] == "Timed"
    assert "nothing to do" in found["diagnosis"]
    assert (found["waves"], found["note"]) == (3, "100 blocks on 48 cores: they run in 3 waves")
    text = cli("run", *direct, *case, "--profile").stdout
    assert "Launch bound" in text
    assert "3 waves" in text
    tuned = document("tune", *direct, *case, "--budget", "3")
    assert (tuned["decision"], tuned["waves"]) == ("no significant win", 3)
    assert "wins" not in tuned


def test_an_operator_in_a_folder_of_canns_layout(document: Document, tmp_path: Path) -> None:
    source = paths.shipped("registry") / "add"
    for part in ("op_host", "op_kernel"):
        (tmp_path / "my_add" / part).mkdir(parents=True)
        for file in (source / part).iterdir():
            (tmp_path / "my_add" / part / file.name).write_text(file.read_text())
    found = document("run", str(tmp_path / "my_add"), *ADD)
    assert (found["outcome"], found["reference"]) == ("Timed", "baseline")


def test_a_hazard_is_a_result_that_names_the_line(document: Document, cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "scale.cpp").write_text(SCALE.replace("(__gm__ float*)y + GetBlockIdx() * N", "(__gm__ float*)y"))
    direct = ["--kernel", str(tmp_path / "scale.cpp"), "--entry", "scale", "--block-dim", "2", "-D", "N=256"]
    case = ["--input", "x=float32[512]", "--output", "y=float32[512]", "--attr", "factor=2.5"]
    found = document("run", *direct, *case, expect=1)
    assert found["outcome"] == "Hazard", found["reason"]
    assert found["hazards"]
    line = SCALE.splitlines().index("  DataCopy(to, b, N);") + 1
    assert f"{tmp_path / 'scale.cpp'}:{line}" in found["reason"]
    assert "Hazard" in cli("run", *direct, *case, expect=1).stdout


def test_a_wrong_result_is_a_result(document: Document, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(paths.shipped("registry") / "add", tmp_path / "add"))
    (kernel,) = (folder / "op_kernel").glob("*.cpp")
    kernel.write_text(re.sub(r"\bAdd\(", "Sub(", kernel.read_text()))
    found = document("run", str(folder), *ADD, expect=1)
    assert (found["outcome"], found["reference"]) == ("WrongResult", "reference.py")
    assert found["reason"]


def test_tune_writes_record_and_report_and_answers_the_second_call_from_the_cache(
    cli: Cli, document: Document, fresh_results: Path, tmp_path: Path
) -> None:
    record, report, results = tmp_path / "made/record.json", tmp_path / "made/report.html", tmp_path / "out.npz"
    arguments = ["tune", "add", *ADD, "--budget", "4"]
    first = document(*arguments, "--record", str(record), "--report", str(report), "--outputs", str(results))
    assert first.keys() >= TUNE
    assert not first["cached"]
    assert first["evaluations"] == sum(first["outcomes"].values()) <= 4
    assert first["baseline"].keys() >= PROFILE
    assert first["best"]["task_duration_us"] <= first["baseline"]["task_duration_us"]
    assert first["speedup"] == pytest.approx(first["baseline"]["task_duration_us"] / first["best"]["task_duration_us"])
    assert len(first["history"]) >= first["evaluations"]
    assert first["timings_s"]["execute"] > 0
    assert first["checks"] > 0
    assert first["speedup_low"] <= first["speedup"] <= first["speedup_high"]
    assert first["wins"] >= 0.95
    assert (first["decision"], first["waves"]) == ("win", 1)
    assert json.loads(record.read_text()) == first
    html = report.read_text()
    cli("report", str(record), "-o", str(tmp_path / "again.html"))
    assert (tmp_path / "again.html").read_text() == html, "a record has all that the page shows"
    assert {name: len(t["lanes"]) >= 4 for name, t in first["report"]["timelines"].items()} == {
        "baseline": True, "best": True
    }  # fmt: skip
    assert "<b>modelled</b>" in html
    assert "over plausible clocks" in html
    assert not [line for line in html.splitlines() if 'src="http' in line[:2000] or 'href="http' in line[:2000]]
    assert np.load(results)["z"].shape == (8, 2048)

    second = document(*arguments)
    assert second["cached"]
    told = ("speedup", "speedup_low", "speedup_high", "wins")
    for name in ("cache_key", "best", "baseline", "evaluations", "block_dim", "reference", *told):
        assert second[name] == first[name]
    text = cli(*arguments).stdout
    assert "answered from the cache" in text
    assert "modelled" in text
    speedup = "{:.2f}x ({:.2f} to {:.2f} over plausible clocks)".format(*(first[name] for name in told[:3]))
    assert f"speedup {speedup}" in text
    assert f"modelled, {speedup}" in cli("cache", "list").stdout
    assert document("cache", "list")["entries"][0]["wins"] == first["wins"]


def test_what_a_kernel_prints_is_shown(cli: Cli, document: Document, tmp_path: Path) -> None:
    kernel = tmp_path / "scale.cpp"
    printing = SCALE.replace("  Muls(", '  printf("block %d\\x1b[2J of %d\\n", GetBlockIdx(), GetBlockNum());\n  Muls(')
    kernel.write_text(printing)
    case = ["--input", "x=float32[256]", "--output", "y=float32[256]", "--attr", "factor=2.5", "-D", "N=128"]
    direct = ["run", "--kernel", str(kernel), "--block-dim", "2", *case]
    said = cli(*direct).stdout
    assert "the kernel printed, in the first trial:\nblock 0\ufffd[2J of 2\nblock 1\ufffd[2J of 2\n" in said
    assert document(*direct)["printed"] == "block 0\x1b[2J of 2\nblock 1\x1b[2J of 2\n"


def test_without_torch_the_baseline_is_the_specification(
    cli_anew: Cli, fresh_results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['torch'] = sys.modules['torch_npu'] = None\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    for command in (["run"], ["tune", "--budget", "2"]):
        done = cli_anew(*command, "add", *ADD, "--json")
        assert "torch is not installed" in done.stderr
        found = json.loads(done.stdout)
        assert (found["outcome"], found["reference"]) == ("Timed", "baseline")
        assert found["checks"] > 0


def test_ctrl_c_keeps_what_was_found(document: Document, fresh_results: Path) -> None:
    arguments = ["tune", "add", *ADD, "--budget", "40"]
    done = interrupted(["evaluation 3/40"], [*arguments, "--json"])
    assert done.returncode == 0, done.stderr
    assert "interrupted: keeping the best pair" in done.stderr
    found = json.loads(done.stdout)
    assert found["stop"] == "interrupted"
    assert 3 <= found["evaluations"] < 40
    assert document(*arguments, "--accept-unfinished")["cached"]  # else the search goes on: test_resume.py


def test_a_second_ctrl_c_ends_at_once_and_nothing_is_cached(fresh_results: Path) -> None:
    arguments = ["tune", "add", *ADD, "--budget", "40"]
    done = interrupted(["evaluation 2/40", "checking the best pair once more"], arguments)
    assert done.returncode == 130, done.stderr
    assert "the cache is unchanged" in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(fresh_results.glob("entries/*/*"))


def test_profile_tells_stalls_bandwidth_and_what_bounds_the_kernel(cli: Cli, document: Document) -> None:
    text = cli("run", "add", "--input", "x=float32[1024,1024]", "--input", "y=float32[1024,1024]", "--profile").stdout
    for part in ("modelled, mean over the cores", "MTE2 (in) busy", "waiting: V, for MTE2", "bandwidth of L2",
                 "moved in", "cores: 48 of 48 used", "diagnosis: "):  # fmt: skip
        assert part in text
    assert document("run", "add", *ADD)["diagnosis"].count(". ") >= 2
