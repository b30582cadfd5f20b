"""The hardware's bound against times worked out by hand, and cann-bench's score against what its README says of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascendopt_tune.evaluate.bound import (
    NeededWork,
    bound_of,
    bound_us,
    costs_of_cores,
    hap,
    least,
    mean_hap,
    paying_cores,
    work,
)
from ascendopt_tune.nouns.case import Case, TensorSpec
from ascendopt_tune.nouns.chip import Chip, load_chip
from ascendopt_tune.nouns.profile import Profile

CHIP = load_chip("ascend910b4")
NOTHING = NeededWork(0.0, 0.0)
MIB = 1 << 20


def number(key: str, chip: Chip = CHIP) -> float:
    return float(chip.values[key])


def test_nothing_to_do_takes_a_launch_on_one_core() -> None:
    turn = number("launch.fetch_us") * number("launch.at_once")
    begun = number("launch.base_us") + number("launch.core_head_us")
    assert bound_us(NOTHING, CHIP) == pytest.approx(begun + turn)


def test_many_bytes_take_what_memory_gives() -> None:
    """16 MiB in and out fit L2; 512 MiB don't, and what doesn't fit comes from HBM."""
    fitting, not_fitting = NeededWork(16.0 * MIB, 16.0 * MIB), NeededWork(256.0 * MIB, 256.0 * MIB)
    l2 = 32.0 * MIB / (1e3 * number("memory.l2_gb_per_s"))
    hbm = (512.0 * MIB - number("memory.l2_bytes")) / (1e3 * number("memory.hbm_gb_per_s"))
    assert l2 < bound_us(fitting, CHIP) < l2 + 3
    assert hbm < bound_us(not_fitting, CHIP) < hbm + 1


def test_long_computations_are_spread_over_all_cores() -> None:
    cycles = 1e8
    spread = cycles / number("core.aiv") / number("core.clock_mhz")
    assert spread < bound_us(NeededWork(0.0, 0.0, cycles), CHIP) < spread + 3
    matrix = cycles / number("core.aic") / number("core.clock_mhz")
    assert matrix < bound_us(NeededWork(0.0, 0.0, 0.0, cycles), CHIP) < matrix + 3


@given(*(st.floats(0, 1e9) for _ in range(4)), st.floats(1, 3), st.integers(0, 3))
def test_more_work_is_never_sooner_done(a: float, b: float, c: float, d: float, more: float, which: int) -> None:
    amounts = [a, b, c, d]
    greater = [x * more if i == which else x for i, x in enumerate(amounts)]
    assert bound_us(NeededWork(*greater), CHIP) >= bound_us(NeededWork(*amounts), CHIP) - 1e-9


def test_what_a_pair_did_is_told_by_its_profile() -> None:
    counters = {"mte2_bytes": 4096.0, "mte3_bytes": 2048.0, "vec_instructions": 10.0, "bank_conflict_cycles": 50.0}
    clock, heads = number("core.clock_mhz"), 10 * number("vector.head_cycles")
    profile = Profile(9.0, aiv_time_us=4.0, aiv_vec_time_us=1.0, block_dim=8, counters=counters)
    assert work(profile, CHIP) == NeededWork(4096.0, 2048.0, pytest.approx(8 * clock - heads - 50), 0.0)


def test_the_least_of_everything_counts() -> None:
    known = [NeededWork(100.0, 900.0, 50.0, 7.0), NeededWork(300.0, 200.0, 70.0, 5.0)]
    assert least(known, 80, 1000) == NeededWork(80, 200.0, 50.0, 5.0)


def test_a_time_alone_says_nothing_of_a_bound() -> None:
    spec = TensorSpec("float32", (1024,))
    case = Case((spec,), (spec,))
    assert bound_of(case, [Profile(9.0, block_dim=1)], CHIP) is None
    told = Profile(9.0, aiv_time_us=4.0, block_dim=1, counters={"mte2_bytes": 1e6, "mte3_bytes": 1e6})
    assert bound_of(case, [told], CHIP) == pytest.approx(bound_us(NeededWork(4096.0, 4096.0), CHIP))


def test_the_score_is_cann_benchs() -> None:
    """Its README: 0.5 as fast as the baseline, below that where slower, 1 at the bound, above it where undercut."""
    assert hap(10.0, 10.0, 2.0) == 0.5
    assert hap(10.0, 12.0, 2.0) == pytest.approx(8 / 18)
    assert hap(10.0, 2.0, 2.0) == 1.0
    assert (hap(10.0, 1.0, 2.0) or 0.0) > 1.0
    assert hap(2.0, 1.0, 2.0) is None
    assert mean_hap([(10.0, 10.0, 2.0), (10.0, 2.0, 2.0), (2.0, 1.0, 2.0)]) == 0.75
    assert mean_hap([]) is None


def launched(blocks: int, moved: float, vector_us: float, waited_us: float) -> Profile:
    """On so many cores, each with its share of ``moved`` bytes in and out and so much vector work."""
    counters = {"mte2_bytes": moved, "mte3_bytes": moved, "vec_instructions": 0.0, "core_start_us": waited_us}
    return Profile(9.0, aiv_time_us=4.0, aiv_vec_time_us=vector_us, block_dim=blocks, counters=counters)


def test_little_work_pays_for_few_cores_and_much_for_all() -> None:
    late = 1.7  # us that the mean of 40 cores waits
    assert paying_cores(launched(40, 1e3, 0.01, late), CHIP) == 4  # the first turn of cores costs no more than one core
    few = paying_cores(launched(40, 256e3, 0.05, late), CHIP)
    more = paying_cores(launched(40, 2048e3, 0.4, late), CHIP)
    assert few is not None
    assert more is not None
    assert 4 < few < more < 40
    assert paying_cores(launched(40, 100e6, 20.0, late), CHIP) == 40


def test_a_longer_start_pays_for_fewer_cores() -> None:
    early, late = (paying_cores(launched(40, 1024e3, 0.2, waited), CHIP) for waited in (0.7, 2.5))
    assert early is not None
    assert late is not None
    assert late < early


def test_what_no_profile_tells_is_no_number_of_cores() -> None:
    assert paying_cores(Profile(9.0, block_dim=8), CHIP) is None


def test_costs_fall_towards_the_number_that_pays_and_rise_behind_it() -> None:
    profile = launched(40, 512e3, 0.1, 1.7)
    costs = costs_of_cores(profile, CHIP)
    paying = paying_cores(profile, CHIP)
    assert list(costs) == list(range(1, 41))
    assert paying is not None
    assert costs[1] > costs[max(2, paying // 2)] > costs[paying] < costs[40]
    assert costs_of_cores(Profile(9.0, block_dim=8), CHIP) == {}
