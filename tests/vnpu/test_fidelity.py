"""Modelled against published measurements: limits, rankings, what the table covers, and the docs page.

The rest of the scenarios (``ascendopt-tune fidelity --all``) takes a minute more.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

from ascendopt_tune.errors import CaseError
from ascendopt_tune.fidelity import compare, runner, table
from ascendopt_tune.settings import settings

FAST = (
    *("add/1", "add/2", "add/4", "add/5", "data_copy/2", "data_copy/4", "data_copy/5", "data_copy/7"),
    *("bank_conflict_ub/1", "bank_conflict_ub/2", "bank_conflict_ub/5", "bank_conflict_nd2nz/2", "empty"),
)
DOCS = Path(__file__).resolve().parents[2] / "docs" / "fidelity.md"


@cache
def rows() -> Sequence[compare.Row]:
    return compare.rows_of(list(runner.run(table.chosen(FAST, slow=False))), table.read())


def test_rows_are_within_the_promised_limits() -> None:
    missed = [(r.measured.id, r.scenario, r.measured.metric, r.error_percent) for r in rows() if r.verdict == "missed"]
    assert not missed
    assert sum(r.verdict == "held" for r in rows()) >= 35


def test_no_ranking_is_inverted() -> None:
    assert not compare.inversions(rows())


def test_the_docs_page_shows_these_rows() -> None:
    """`make docs` writes it; the rows of the fast scenarios are compared."""
    page = DOCS.read_text()
    stale = [line for r in rows() if (line := compare.markdown(r)) not in page]
    assert not stale, "run `make docs`"


def test_other_architectures_are_refused_by_name() -> None:
    with pytest.raises(CaseError, match="ascend950"):
        next(runner.run(table.chosen(["empty"], slow=False), chip="ascend950"))
    row = table.Measured(
        "M0078", "x/add_high_performance/README_en.md", "950", "SCENARIO_NUM=0 ", "aiv_time_us", 1, "us"
    )
    assert table.scenario_of(row) is None
    assert "950" in table.reason_of(row)


def test_every_row_of_a_table_is_repeated_or_has_a_reason() -> None:
    """With the whole table of published measurements at ASCENDOPT_MEASUREMENTS; else with what is shipped."""
    assert "" not in compare.not_repeated(table.read(settings().measurements or table.MEASUREMENTS))


def test_an_inversion_is_found() -> None:
    def row(name: str, measured: float, modelled: float) -> compare.Row:
        value = table.Measured("M1", "s", "A2", name, "task_duration_us", measured, "us")
        return compare.Row(value, modelled, name, "ascend910b1")

    wrong = compare.inversions([row("add/1", 100, 120), row("add/2", 110, 115), row("copy/1", 200, 50)])
    assert wrong == [compare.Inversion("task_duration_us", "add/1", "add/2")]


def test_csv_and_plot(tmp_path: Path) -> None:
    with (tmp_path / "rows.csv").open("w", newline="") as file:
        compare.write_csv(rows(), file)
    lines = (tmp_path / "rows.csv").read_text().splitlines()
    assert len(lines) == len(rows()) + 1
    assert lines[0].startswith("id,scenario,chip,metric,unit,measured,modelled,error_percent")
    compare.plot(rows(), tmp_path / "rows.html")
    assert "task_duration_us (limit 10 %)" in (tmp_path / "rows.html").read_text()
