"""Calibration without silicon: the virtual NPU plays devices whose constants are drawn at random, and events with noise
and stray outliers are all that calibration sees of them.

``make calibrate-battery`` runs it for 20 devices, ``make test-all`` for one.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from ascendopt_tune.build import toolkit
from ascendopt_tune.calibrate.calibration import fitted
from ascendopt_tune.calibrate.fit import Fit
from ascendopt_tune.calibrate.measure import Effort, measure
from ascendopt_tune.calibrate.measuring import Session
from ascendopt_tune.calibrate.microbenchmarks import Microbenchmark, microbenchmarks
from ascendopt_tune.calibrate.model import Models
from ascendopt_tune.calibrate.parameters import parameters_of, seen_by
from ascendopt_tune.calibrate.played import PlayedAcl, drawn
from ascendopt_tune.calibrate.write import chip_text
from ascendopt_tune.cli.options import CaseFlags
from ascendopt_tune.cli.subject import make_subject
from ascendopt_tune.device.acl import Acl
from ascendopt_tune.evaluate.evaluator import Evaluator
from ascendopt_tune.evaluate.gate import Gate
from ascendopt_tune.nouns.chip import Chip, Constant, load_chip
from ascendopt_tune.nouns.outcome import Timed
from ascendopt_tune.sources.registry import load_operator, operator_names

NOMINAL = "ascend910b2"
WITHIN = 0.10  # of a constant; of half its interval, if it may be 0 and that is more
SHARE = 0.90  # of the constants that the benchmarks see
OF_CUBE_CORES = ("cube_instructions", "nd2nz", "mte1", "mac", "fixpipe", "mixed")  # no benchmark sees these sections
MEDIAN, WORST = 0.05, 0.15  # of the operators' times

EFFORT = Effort(100, 50.0, 10)  # smaller batches than on a device: noise is of every time, however long

SEEDS = [1, *(pytest.param(seed, marks=pytest.mark.battery) for seed in range(2, 21))]


@dataclass(frozen=True)
class Bench:
    """What all devices share: the nominal chip, the traces of the microbenchmarks, and what each depends on."""

    chip: Chip
    benchmarks: tuple[Microbenchmark, ...]
    models: Models
    seen: dict[str, list[int]]


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    chip = load_chip(NOMINAL)
    benchmarks = microbenchmarks(chip)
    with Models(Acl(toolkit.virtual()), NOMINAL, benchmarks) as models:
        parameters = parameters_of(chip)
        seen = {b.name: seen_by(models, b.name, parameters, np.zeros(len(parameters))) for b in benchmarks}
        yield Bench(chip, benchmarks, models, seen)


def device_file(chip: Chip, truth: dict[str, float], folder: Path) -> Path:
    path = folder / "device.toml"
    path.write_text(chip_text(chip, {k: Constant(v, v, v, "drawn") for k, v in truth.items()}, ["A device."]))
    return path


def expected(truth: dict[str, float], found: Fit) -> dict[str, float]:
    """What the fitted constants should be. What all rows of the table share is part of each of them."""
    out = {}
    for key in found.determined:
        out[key] = truth[key]
        if key.endswith(".head") or key == "vector.head_cycles":
            out[key] += truth["vector.head_offset_cycles"]
        if key.endswith(".pace"):
            out[key] *= truth["vector.pace_factor"] / found.clock.get("vector.pace_factor", 1)
    return out


def errors(chip: Chip, want: dict[str, float], found: Fit) -> dict[str, float]:
    """How far fitted constants are from what they should be."""
    out = {}
    for key, one in found.determined.items():
        constant = chip.constants[key]
        half = 0 if constant.low > 0 else (constant.high - constant.low) / 2
        out[key] = (one.value - want[key]) / max(abs(want[key]), half)
    return out


def operator_times(chip_file: Path) -> dict[str, float]:
    """Modelled times (us) of the registry's operators as written, each in the first case of its op.toml."""
    times = {}
    with Evaluator(toolkit.virtual(), str(chip_file), workers=1) as evaluator:
        for name in operator_names():
            operator = load_operator(name)
            subject = make_subject(operator, evaluator, CaseFlags())
            built = Gate(operator, subject.case, evaluator, signature=subject.signature).build(operator.baseline)
            assert isinstance(built.outcome, Timed), (name, built.outcome)
            times[name] = built.outcome.profile.task_duration_us
    return times


@pytest.mark.parametrize("seed", SEEDS)
def test_a_device_is_calibrated(seed: int, bench: Bench, tmp_path: Path) -> None:
    truth = drawn(bench.chip, seed)
    file = device_file(bench.chip, truth, tmp_path)
    device = PlayedAcl(toolkit.virtual(), file, seed)
    measured = tuple(measure(device, bench.chip, bench.benchmarks, EFFORT))
    session = Session({"soc": "played", "target": "virtual", "toolkit": "-"}, NOMINAL, measured)
    result = fitted(bench.models, session, bench.chip, bench.benchmarks, bench.seen)
    found = result.fit

    want = expected(truth, found)
    off = errors(bench.chip, want, found)
    inside = sum(one.low <= want[key] <= one.high for key, one in found.determined.items()) / len(want)
    missed = {key: f"{100 * e:+.1f} %" for key, e in off.items() if abs(e) > WITHIN}
    print(f"device {seed}: {len(off) - len(missed)} of {len(off)} constants within {WITHIN:.0%}, not {missed};")
    print(f"  not determined: {dict(found.undetermined)}")
    print(f"  {inside:.0%} of the 90 % intervals hold the device's constant")
    assert len(missed) <= (1 - SHARE) * len(off)
    assert inside >= 0.75
    of_vector_cores = [key for key in bench.chip.constants if key.partition(".")[0] not in OF_CUBE_CORES]
    visible = [key for key in of_vector_cores if ".cube_" not in key]
    assert len(off) >= 0.9 * len(visible)

    held = max((r.percent for r in result.held), key=abs)
    print(f"  microbenchmarks held out: worst {held:+.2f} %")
    calibrated = tmp_path / "calibrated.toml"
    calibrated.write_text(result.text())
    device_us, ours_us = operator_times(file), operator_times(calibrated)
    off = {name: ours_us[name] / us - 1 for name, us in device_us.items()}
    assert off.keys() == set(operator_names())
    assert len(off) >= 12
    middle, worst = statistics.median(map(abs, off.values())), max(off.values(), key=abs)
    print(f"  operators: median {100 * middle:.2f} %, worst {100 * worst:+.2f} %")
    assert middle <= MEDIAN, off
    assert abs(worst) <= WORST, off
