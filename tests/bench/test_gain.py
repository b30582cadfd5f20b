"""Where a gain comes from, and which constant of the clock moves it, on records and a chip made up for them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from bench_examples import FakeSubject
from hypothesis import given
from hypothesis import strategies as st

from ascendopt_tune.bench import sensitivity
from ascendopt_tune.bench.gain import PARTS, launch_us, parts
from ascendopt_tune.bench.record import Step
from ascendopt_tune.errors import CacheError, SettingsError
from ascendopt_tune.nouns.chip import Chip, Constant
from ascendopt_tune.nouns.operator import Pair
from ascendopt_tune.nouns.profile import Profile

US = st.floats(0.5, 1e4)
STEPS = st.lists(st.builds(Step, st.sampled_from((1, 2)), st.just("x"), US, US), min_size=1, max_size=6)


@given(STEPS)
def test_parts_add_up_to_the_speedup(steps: list[Step]) -> None:
    whole = math.log(steps[0].task_us / steps[-1].task_us)
    assert sum(parts(steps).values()) == pytest.approx(whole, abs=1e-9)


def test_a_step_gives_to_the_launch_and_to_its_stage() -> None:
    fewer_cores = (Step(0, "as written", 20.0, 10.0), Step(1, "cores", 16.0, 4.0))
    found = parts(fewer_cores)
    assert found["launch"] > found["launch"] + found["tiling"] > 0 > found["tiling"]  # the cores work longer
    assert found["kernel"] == 0
    rewritten = parts((*fewer_cores, Step(2, "motif", 12.0, 4.0)))
    assert rewritten["kernel"] == pytest.approx(math.log(16 / 12))
    assert parts(fewer_cores[:1]) == dict.fromkeys(PARTS, 0.0)


def test_the_launch_is_what_no_core_works() -> None:
    assert launch_us(Profile(10.0, aiv_time_us=6.0)) == 4.0
    assert launch_us(Profile(10.0, aiv_time_us=6.0, counters={"core_start_us": 1.0})) == 5.0
    assert launch_us(Profile(10.0, aiv_time_us=6.0, counters={"core_start_us": 1.0, "block_time_max_us": 8.0})) == 2.0


def chip() -> Chip:
    constants = {
        "launch.base_us": Constant(2.0, 1.0, 3.0, "meas: here"),
        "mte2.cost": Constant(1.0, 0.5, 2.0, "assumed"),
        "vector.zero": Constant(0.0, 0.0, 4.0, "assumed"),
    }
    return Chip("made-up", {key: one.value for key, one in constants.items()}, constants)


class Clocked:
    """A baseline of ten copies and a best pair of five, each behind one launch."""

    def __init__(self, baseline: Pair) -> None:
        self.baseline = baseline

    def times(self, pair: Pair, clocks: Sequence[Mapping[str, float]], state: str = "warm") -> list[float]:
        copies = (10 if pair.hash == self.baseline.hash else 5) * (2 if state == "flushed" else 1)
        own = {key: one.value for key, one in chip().constants.items()}
        return [
            c["launch.base_us"] + copies * c["mte2.cost"] + c["vector.zero"] for c in ({**own, **k} for k in clocks)
        ]


def test_each_constant_is_halved_and_doubled() -> None:
    changed = sensitivity.changes(chip())
    assert [c.clock for c in changed] == [
        {"launch.base_us": 1.0},
        {"launch.base_us": 4.0},
        {"mte2.cost": 0.5},
        {"mte2.cost": 2.0},
        {"vector.zero": 4.0},
    ]
    subject = FakeSubject()
    base, best = subject.operator.baseline, subject.changed(1)
    found = sensitivity.speedups(Clocked(base), base, best, changed)
    assert found == pytest.approx([12 / 7, 11 / 6, 14 / 9, 7 / 4.5, 22 / 12, 16 / 11])
    assert sensitivity.speedups(Clocked(base), base, base, changed) == [1.0] * 6
    nominal, moved = sensitivity.effects(changed, {("a", "decode"): found, ("b", "large"): [1.0] * 6})
    assert nominal.means == pytest.approx({"decode": 12 / 7, "large": 1.0, "all": (12 / 7) ** 0.5})
    assert nominal.fast == 0.5
    assert moved[0].change.names == "vector.zero"
    told = "\n".join(sensitivity.rows(chip(), nominal, moved, [], 2))
    assert "| launch.base_us | 2 | 4 | meas | 1.556 | 1.000 |" in told
    assert "flushed" not in told


def test_the_same_pairs_in_another_state() -> None:
    subject = FakeSubject()
    base, best = subject.operator.baseline, subject.changed(1)
    found = sensitivity.speedups(Clocked(base), base, best, [], "flushed")
    assert found == pytest.approx([22 / 12])
    nominal, moved = sensitivity.effects([], {("a", "decode"): found})
    told = "\n".join(sensitivity.rows(chip(), nominal, moved, [], 1, "flushed"))
    assert "launches that find the state `flushed` (the pairs were found in `warm`)" in told


def test_some_are_set_together_by_hand() -> None:
    (both,) = sensitivity.given(chip(), ["launch.base_us=0", "mte2.cost=2"])
    subject = FakeSubject()
    base, best = subject.operator.baseline, subject.changed(1)
    found = sensitivity.speedups(Clocked(base), base, best, [both])
    assert found == pytest.approx([12 / 7, 2.0])
    nominal, moved = sensitivity.effects([both], {("a", "decode"): found})
    told = [*sensitivity.rows(chip(), nominal, moved, [both], 1)]
    assert told[-1] == "| launch.base_us, mte2.cost | 2, 1 | 0, 2 | meas, assumed | 2.000 | 2.000 | 100.0 % |"
    assert sensitivity.given(chip(), []) == []


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("launch.base=0", "no constant 'launch.base'. Did you mean 'launch.base_us'"),
        ("mte2.cost", "'' is no number"),
        ("mte2.cost=-1", "0 or more"),
        ("mte2.cost=inf", "finite"),
    ],
)
def test_what_no_constant_can_be_is_refused(text: str, says: str) -> None:
    with pytest.raises(SettingsError, match=says):
        sensitivity.given(chip(), [text])


def test_the_sensitivity_has_a_place(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    with pytest.raises(CacheError, match="no place"):
        sensitivity.write(page, ["| a |"])
    page.write_text(f"before\n{sensitivity.BEGIN}\nold\n{sensitivity.END}\nafter\n")
    sensitivity.write(page, ["| a |"])
    assert page.read_text() == f"before\n{sensitivity.BEGIN}\n\n| a |\n\n{sensitivity.END}\nafter\n"
