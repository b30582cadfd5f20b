"""Measuring, going on, writing, and the two commands."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ascendopt_tune.build import toolkit
from ascendopt_tune.calibrate.measure import Effort, Measured, Measurements, measure
from ascendopt_tune.calibrate.microbenchmarks import Microbenchmark, microbenchmarks, vector_rows
from ascendopt_tune.calibrate.model import Models
from ascendopt_tune.calibrate.played import PlayedAcl
from ascendopt_tune.calibrate.write import chip_text
from ascendopt_tune.cli import app
from ascendopt_tune.device.acl import Acl
from ascendopt_tune.errors import CaseError
from ascendopt_tune.nouns.chip import Constant, chip_names, load_chip

NOMINAL = "ascend910b2"
DEVICE = {"soc": "a", "target": "npu", "toolkit": "1", "chip": "c"}


def test_every_row_of_the_table_has_a_microbenchmark() -> None:
    rows = {
        k.removeprefix("instructions.").rpartition(".")[0] for k in load_chip(NOMINAL).vector_constants if "instr" in k
    }
    assert rows == set(vector_rows()) - {"default"}


@pytest.mark.parametrize("name", chip_names())
def test_microbenchmarks_fit_the_chip(name: str) -> None:
    chip = load_chip(name)
    found = microbenchmarks(chip)
    assert len({b.name for b in found}) == len(found)
    assert len({b.digest for b in found}) == len(found)
    assert all(b.entry != "scalar" or b.blocks <= int(chip.values["core.aiv"]) for b in found)


def test_events_alone_tell_the_time(tmp_path: Path) -> None:
    """2 % noise, outliers, and events that take time themselves: the median of many batches has none of it."""
    chip = load_chip(NOMINAL)
    file = tmp_path / "device.toml"
    file.write_text(chip_text(chip, {"launch.base_us": Constant(1.5, 1.5, 1.5, "drawn")}, []))
    chosen = [
        b
        for b in microbenchmarks(chip)
        if b.name in ("empty/1", "empty/cold/1", "empty/flushed/8", "scalar/ub", "vector/Exp.float/40")
    ]
    device = PlayedAcl(toolkit.virtual(), file, 5)
    measured = {m.name: m for m in measure(device, chip, chosen, Effort(100))}
    with Models(Acl(toolkit.virtual()), NOMINAL, chosen) as models:
        for one in chosen:
            (want,) = models.times_us(one.name, [{"launch.base_us": 1.5}])
            assert measured[one.name].us == pytest.approx(want, rel=0.02)
            assert 0.0005 < measured[one.name].error < 0.01


def test_measurements_go_on_where_they_were(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    one, two = Microbenchmark("one", "launch", "empty", 1), Microbenchmark("two", "launch", "empty", 2)
    Measurements(path, DEVICE).add(Measured("one", one.digest, 1.0, 0.01, 3))
    with path.open("a") as file:
        file.write('{"name": "two", "dig')  # killed while it wrote
    again = Measurements(path, DEVICE)
    assert again.missing([one, two]) == [two]
    again.add(Measured("two", two.digest, 2.0, 0.01, 3))
    assert Measurements(path, DEVICE).missing([one, two]) == []
    other = Microbenchmark("one", "launch", "empty", 4)  # what is run has changed
    assert Measurements(path, DEVICE).missing([other]) == [other]
    with pytest.raises(CaseError, match="was measured on"):
        Measurements(path, DEVICE | {"soc": "b"})


@pytest.mark.parametrize("name", chip_names())
def test_a_chip_file_says_what_the_chip_does(name: str, tmp_path: Path) -> None:
    """Written whole and read again, by Python and by the virtual NPU."""
    chip, file = load_chip(name), tmp_path / "whole.toml"
    file.write_text(chip_text(chip, {}, ['a "comment"', ""]))
    read = load_chip(str(file))
    left_out = ("chip.inherits",)
    assert {k: v for k, v in chip.values.items() if not k.endswith(".source") and k not in left_out} == {
        k: v for k, v in read.values.items() if not k.endswith(".source")
    }
    assert {k: (c.value, c.low, c.high) for k, c in read.constants.items()} == {
        k: (c.value, c.low, c.high) for k, c in chip.constants.items()
    }
    chosen = [b for b in microbenchmarks(chip) if b.name in ("empty/8", "vector/Exp.float/40", "copy_in/32768/1")]
    acl = Acl(toolkit.virtual())
    with Models(acl, name, chosen) as shipped, Models(acl, read.option, chosen) as own:
        assert [shipped.times_us(b.name, [{}]) for b in chosen] == [own.times_us(b.name, [{}]) for b in chosen]


def test_calibrate_command(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    arguments = ["calibrate", "-o", str(file), "--target", "virtual", "--reduced", "--json"]
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert document["time"] == "modelled"
    assert document["not_determined"]["launch.dispatch_us"]
    for key, one in document["determined"].items():
        assert one["value"] == pytest.approx(one["nominal"], rel=0.02, abs=0.05), key
        assert one["low"] <= one["value"] <= one["high"]
    chip = load_chip(str(file))
    assert chip.name.startswith("mine-")
    assert "calibrated on" in chip.constants["launch.base_us"].source
    assert "not calibrated" in chip.constants["launch.dispatch_us"].source
    lines = (tmp_path / "mine.measurements.jsonl").read_text()
    CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert (tmp_path / "mine.measurements.jsonl").read_text() == lines  # nothing was measured again


def test_calibrate_says_when_facts_differ(tmp_path: Path) -> None:
    result = CliRunner().invoke(
        app, ["calibrate", "-o", str(tmp_path / "x.toml"), "--target", "virtual", "--chip", "no"]
    )
    assert isinstance(result.exception, CaseError)
    assert "unknown chip" in result.exception.message


def test_silicon_check_leaves_a_bundle(tmp_path: Path) -> None:
    folder = tmp_path / "check"
    arguments = ["silicon-check", "--reduced", "-o", str(folder), "--target", "virtual", "--json"]
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0, [p.read_text()[-2000:] for p in folder.glob("*.log")]
    document = json.loads(result.stdout)
    assert set(document["steps"].values()) == {0}
    with tarfile.open(document["bundle"]) as archive:
        names = {Path(n).name for n in archive.getnames()}
        summary = archive.extractfile("silicon-check/summary.md")
        assert summary is not None
        text = summary.read().decode()
    assert {"doctor.json", "calibrated.toml", "calibrated.measurements.jsonl", "kernels.json", "tune.json"} <= names
    tuned = json.loads((folder / "tune.json").read_text())
    assert tuned["chip"].startswith("calibrated-")  # by the file's content
    assert "nothing here is from silicon" in text
    assert "measured us" not in text
