"""msprof's files as profiles. Numbers are made up; columns are those that CANN 8.x writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from ascendopt_tune.device import msprof
from ascendopt_tune.errors import ProfileError
from ascendopt_tune.evaluate.diagnosis import diagnose
from ascendopt_tune.nouns.chip import load_chip
from ascendopt_tune.nouns.profile import Profile

CHIP = load_chip("ascend910b2")

BASIC = "Op Name,Op Type,Task Duration(us),Block Dim,Mix Block Dim,Device Id,Pid,Current Freq,Rated Freq,\n"
PIPES = (
    "block_id,sub_block_id,aic_time(us),aic_total_cycles,aic_mte2_time(us),aiv_time(us),aiv_total_cycles,"
    "aiv_vec_time(us),aiv_vec_ratio,aiv_scalar_time(us),aiv_scalar_ratio,aiv_mte2_time(us),aiv_mte2_ratio,"
    "aiv_mte2_active_bw(GB/s),aiv_mte3_time(us),aiv_mte3_ratio,aiv_mte3_active_bw(GB/s),aiv_icache_miss_rate,\n"
)
SUMMARY = (
    "Device_id,Task ID,Op Name,OP Type,Task Type,Task Duration(us),Block Dim,Mix Block Dim,aicore_time(us),"
    "aiv_time(us),aiv_vec_time(us),aiv_vec_ratio,aiv_scalar_time(us),aiv_scalar_ratio,aiv_mte2_time(us),"
    "aiv_mte2_ratio,aiv_mte3_time(us),aiv_mte3_ratio\n"
)


def core(block: int, us: float, bandwidth: str = "10") -> str:
    """A vector core's row, its pipes busy for fixed shares of its time."""
    vec, scalar, mte2, mte3 = 0.2 * us, 0.1 * us, 0.9 * us, 0.5 * us
    return (
        f"{block},vector0,NA,NA,NA,{us},{us * 1800:.0f},{vec},0.2,{scalar},0.1,{mte2},0.9,{bandwidth},{mte3},0.5,"
        f"{bandwidth},0.02,\n"
    )


def launch(folder: Path, name: str = "add_custom_0", us: float = 24.0, blocks: int = 4) -> Path:
    folder.mkdir(parents=True)
    (folder / "OpBasicInfo.csv").write_text(BASIC + f"{name},vector,{us},{blocks},NA,0,77,1800,1800,\n")
    (folder / "PipeUtilization.csv").write_text(PIPES + "".join(core(i, 20.0 + i) for i in range(blocks)))
    return folder


def row(name: str, us: str, kind: str = "AI_VECTOR_CORE", blocks: int = 40, aiv: str = "30.0") -> str:
    return f"0,3,{name},{name}Type,{kind},{us}\t,{blocks},0,0,{aiv},24.0,0.8,3.0,0.1,6.0,0.2,3.0,0.1\n"


def test_a_launch_of_msprof_op(tmp_path: Path) -> None:
    found = msprof.read(launch(tmp_path / "OPPROF_1").parent)
    assert (found.operator, found.launches) == ("add_custom_0", 1)
    assert [f.name for f in found.files] == ["OpBasicInfo.csv", "PipeUtilization.csv"]
    p = found.profile
    assert (p.task_duration_us, p.block_dim, p.aiv_time_us) == (24.0, 4, 21.5)
    assert p.aiv_mte2_time_us == pytest.approx(0.9 * 21.5)
    assert p.aiv_vec_time_us == pytest.approx(0.2 * 21.5)
    assert (p.counters["block_time_min_us"], p.counters["block_time_max_us"]) == (20.0, 23.0)
    # 10 times 2^30 bytes a second, for 0.9 of 86 us on all cores together
    assert p.counters["mte2_bytes"] == pytest.approx(10 * 2**30 * 0.9 * 86e-6)
    assert p.modelled is None
    told = diagnose(p, CHIP)
    assert "MTE2 (in) is busy 90 %" in told.paragraph
    assert told.bound == "few cores"


def test_a_device_that_ran_slowly_is_told(tmp_path: Path) -> None:
    folder = launch(tmp_path / "a")
    assert (msprof.read(folder).clock_mhz, msprof.read(folder).slowed) == ((1800, 1800), "")
    basic = folder / "OpBasicInfo.csv"
    basic.write_text(basic.read_text().replace("1800,1800", "800,1800"))
    assert "ran at 800 MHz, not at its 1800" in msprof.read(folder).slowed


@pytest.mark.parametrize("file", ["OpBasicInfo.csv", "PipeUtilization.csv"])
def test_one_file_names_its_folder(tmp_path: Path, file: str) -> None:
    folder = launch(tmp_path / "OPPROF_1")
    assert msprof.read(folder / file) == msprof.read(folder)


def test_names_of_columns_vary(tmp_path: Path) -> None:
    folder = launch(tmp_path / "a")
    plain = msprof.read(folder).profile
    basic = folder / "OpBasicInfo.csv"
    basic.write_text("﻿" + basic.read_text().replace("Duration(us)", "Duration(μs)").replace("Block Dim", "Block Num"))
    pipes = folder / "PipeUtilization.csv"
    pipes.write_text(pipes.read_text().replace("aiv_vec_time(us)", "nobody_reads"))  # the ratio is left
    assert msprof.read(folder).profile == plain


def test_bytes_are_told_only_where_every_core_tells_them(tmp_path: Path) -> None:
    folder = launch(tmp_path / "a")
    (folder / "PipeUtilization.csv").write_text(PIPES + core(0, 20.0) + core(1, 20.0, "NA"))
    found = msprof.read(folder)
    assert "mte2_bytes" not in found.profile.counters
    assert "GB/s" not in diagnose(found.profile, CHIP).paragraph


def test_the_middle_of_several_launches(tmp_path: Path) -> None:
    for i, us in enumerate((30.0, 26.0, 90.0)):
        launch(tmp_path / str(i), us=us)
    found = msprof.read(tmp_path)
    assert (found.launches, found.profile.task_duration_us) == (3, 30.0)


def test_cube_rows_are_not_vector_cores(tmp_path: Path) -> None:
    folder = launch(tmp_path / "a")
    (folder / "OpBasicInfo.csv").write_text(BASIC + "mixed,mix,9.5,1,2,0,NA,1800,1800,\n")
    cube = f"0,cube0,4.5,8000,1.0{',NA' * 13},\n"
    (folder / "PipeUtilization.csv").write_text(PIPES + cube + core(0, 6.0) + core(0, 7.0))
    assert msprof.read(folder).profile.block_dim == 2
    (folder / "PipeUtilization.csv").write_text(PIPES + cube)
    alone = msprof.read(folder).profile
    assert (alone.task_duration_us, alone.aiv_time_us, alone.block_dim) == (9.5, 0.0, 2)
    assert "Only the task's duration is known" in diagnose(alone, CHIP).paragraph


def test_a_summary_has_a_row_per_launch(tmp_path: Path) -> None:
    folder = tmp_path / "PROF_1" / "mindstudio_profiler_output"
    folder.mkdir(parents=True)
    rows = [
        row("RmsNorm", "33.0"),
        row("Cast", "5.0"),
        row("RmsNorm", "31.0"),
        row("RmsNorm", "47.5"),
        row("Wait", "N/A"),
    ]
    (folder / "op_summary_20260101.csv").write_text(SUMMARY + "".join(rows))
    with pytest.raises(ProfileError, match=r"several operators: RmsNorm \(3\), Cast \(1\)\. Name one with --op"):
        msprof.read(tmp_path)
    for name in ("RmsNorm", "RmsNormType", "rmsn"):
        found = msprof.read(tmp_path, name)
        assert (found.operator, found.launches, found.profile.task_duration_us) == ("RmsNorm", 3, 33.0)
    p = found.profile
    assert p == Profile(33.0, 30.0, 24.0, 3.0, 6.0, 3.0, 40)
    told = diagnose(p, CHIP)
    assert told.bound == "vector"
    assert "instructions, 0" not in told.paragraph
    with pytest.raises(ProfileError, match=r"no operator called Softmax\. It has RmsNorm \(3\)"):
        msprof.read(tmp_path, "Softmax")


def test_a_summary_without_pipes_tells_a_duration(tmp_path: Path) -> None:
    file = tmp_path / "op_summary_1.csv"
    file.write_text("Op Name,OP Type,Task Type,Task Duration(us),Block Dim,Mix Block Dim\nk,K,MIX_AIC,12.5,20,40\n")
    assert msprof.read(file).profile == Profile(12.5, block_dim=40)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("24.0", "soon"), r"OpBasicInfo\.csv, line 2, column taskduration: 'soon' is no number"),
        (("24.0", "-1"), "'-1' is no number >= 0"),
        (("24.0", "NA"), "line 2, has nothing in column taskduration"),
        (("Task Duration", "Task Time"), "has no column taskduration"),
        (("add_custom_0,vector", "a,vector,1,1\nadd_custom_0,vector"), "has 2 rows; it should tell of one launch"),
    ],
)
def test_what_is_wrong_and_where(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    file = launch(tmp_path / "a") / "OpBasicInfo.csv"
    file.write_text(file.read_text().replace(*change))
    with pytest.raises(ProfileError, match=message):
        msprof.read(tmp_path)


def test_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match=r"neither OpBasicInfo\.csv nor op_summary_\*\.csv .*msprof op"):
        msprof.read(tmp_path)
    with pytest.raises(ProfileError, match="there is no"):
        msprof.read(tmp_path / "nothing")
    folder = launch(tmp_path / "a")
    (folder / "OpBasicInfo.csv").unlink()
    with pytest.raises(ProfileError, match=r"has no OpBasicInfo\.csv, which tells the duration"):
        msprof.read(folder / "PipeUtilization.csv")
    (folder / "OpBasicInfo.csv").write_text("")
    with pytest.raises(ProfileError, match="is empty"):
        msprof.read(folder)
    (folder / "OpBasicInfo.csv").write_text(BASIC)
    with pytest.raises(ProfileError, match="has a header and nothing below it"):
        msprof.read(folder)
    (folder / "Memory.csv").write_text(BASIC)
    with pytest.raises(ProfileError, match=r"Memory\.csv is none of the files"):
        msprof.read(folder / "Memory.csv")


def test_pipes_that_fill_the_time_one_after_another_take_turns() -> None:
    profile = Profile(50.0, 45.0, 14.0, 5.0, 18.0, 8.0, 48)
    told = diagnose(profile, CHIP)
    assert told.bound == "no overlap"
    assert "seem to take turns" in told.paragraph
    overlapping = Profile(50.0, 45.0, 27.0, 5.0, 27.0, 20.0, 48)
    assert diagnose(overlapping, CHIP).bound == "none"


def test_a_modelled_profile_survives_json_and_is_diagnosed_as_one() -> None:
    model = Profile(50.0, 45.0, 40.0, 5.0, 18.0, 8.0, 48, {"block_time_max_us": 45.0})
    timed = Profile(61.0, block_dim=48, counters={"candidate_spread_us": 0.5}, modelled=model)
    assert Profile.from_json(timed.to_json()) == timed
    assert diagnose(timed, CHIP).findings == diagnose(model, CHIP).findings
    assert diagnose(timed, CHIP).paragraph.startswith("By the virtual NPU's model, not measured: Vector bound")
