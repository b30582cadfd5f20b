"""Rows that were asked before the clock had seen their sources, the law that came of them, and operators of others.

With checkouts of ops-nn (``ASCENDOPT_OPS_NN``), ops-math (``ASCENDOPT_OPS_MATH``) and ascend-s9-operators
(``ASCENDOPT_S9_OPERATORS``) a few of those operators run, against what docs/fidelity_blind.md says.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ascendopt_tune.fidelity import measured, operators, runner, table
from ascendopt_tune.fidelity.compare import ComparedRow
from ascendopt_tune.fidelity.runner import Modelled
from ascendopt_tune.fidelity.summary import FidelitySummary
from ascendopt_tune.nouns.chip import WARM, load_chip

PAGE = Path(__file__).resolve().parents[2] / "docs" / "fidelity_blind.md"
NAMES = (
    *("tiles/relu/1", "tiles/relu/8", "tiles/mul/8", "tiles/add/16", "tiles/not/64", "one_row_at_a_time/softmax/2"),
    *("one_row_at_a_time/layernorm/1", "padded_rows/i2_r4096", "padded_rows/i8_r4096"),
)


def run(*names: str, chip: str | None = None) -> list[Modelled]:
    return list(runner.run(table.chosen(names), chip))


def rows(*names: str) -> list[ComparedRow]:
    values = (*measured.read(), *measured.points())
    found = FidelitySummary.of(run(*names), values).rows
    return [r for r in found if r.measured.metric == "task_duration_us"]


def test_the_rows_are_held() -> None:
    found = rows(*NAMES)
    assert len(found) == len(NAMES)
    assert [(r.scenario, r.error_percent) for r in found if r.verdict == "missed"] == []


def mte2_us(scenario: str) -> float:
    (one,) = run(scenario)
    return one.profile.aiv_mte2_time_us


def test_a_piece_that_is_filled_up_is_read_by_itself_the_faster_the_longer_it_is() -> None:
    """Rows of 4 and of 16 bytes, as many of each: 38 and 25 cycles, published 39 and 24."""
    short, long = mte2_us("padded_rows/i2_r4096"), mte2_us("padded_rows/i8_r4096")
    clock = float(load_chip("ascend910b4").values["core.clock_mhz"])
    assert 37 < short * clock / 4096 < 41
    assert 23 < long * clock / 4096 < 27


def test_walks_of_the_scalar_unit_are_in_their_order() -> None:
    """Cycles a load, published 4.1, 27.8 and 91.8: written out, compared within a cached line, compared anywhere."""
    loads = {"taps": 2000 * 42, "abreast": 65536, "compared": 65536}
    found = {one.scenario.name.rpartition("/")[2]: one for one in run(*(f"scalar_walks/{name}" for name in loads))}
    out, line, anywhere = (found[k].profile.aiv_scalar_time_us * found[k].clock_mhz / n for k, n in loads.items())
    assert out < 10 < line < 30 < anywhere < 95


def test_rows_of_others_are_asked_for_by_name() -> None:
    found = operators.read(operators.OF_OTHERS)
    assert len({r.id for r in found}) == len(found) == 17
    assert all(r.task_duration_us > 0 and r.repository in operators.checkouts() for r in found)
    assert not {r.id for r in found} & {r.id for r in operators.known([])}
    assert [r.in_place for r in operators.chosen(["apply_ftrl/1024"], found)] == [("accum", "linear")]


@pytest.mark.parametrize("name", ["apply_ftrl/1024", "apply_ftrl/16384", "slogdet/16", "square_sum_s9/o8_f16"])
def test_an_operator_of_others_is_what_the_page_says(name: str) -> None:
    (row,) = operators.chosen([name], operators.known([name]))
    if operators.checkouts()[row.repository] is None:
        pytest.skip(f"there is no checkout of {row.repository}")
    (one,) = operators.run([row])
    line = next(text for text in PAGE.read_text().splitlines() if text.startswith(f"| {name} |"))
    said = re.findall(r"\| ([\d.]+) \| [+-]", line)
    assert f"{one.profiles[WARM].task_duration_us:.2f}" == said[0]
