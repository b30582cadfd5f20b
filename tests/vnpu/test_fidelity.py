"""Modelled against published measurements: limits, orders, gains, what the tables cover, and the docs page.

The rest of the scenarios (``ascendopt-tune fidelity --all``) takes some minutes more.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

from ascendopt_tune.errors import CaseError
from ascendopt_tune.fidelity import compare, cores, measured, output, ranking, runner, table
from ascendopt_tune.fidelity.compare import ComparedRow
from ascendopt_tune.fidelity.measured import PublishedValue
from ascendopt_tune.fidelity.summary import FidelitySummary
from ascendopt_tune.report.fidelity import beside_a_suite, write_fidelity
from ascendopt_tune.settings import settings

FAST = (
    *("add/1", "add/2", "add/4", "add/5", "data_copy/2", "data_copy/4", "data_copy/5", "data_copy/7"),
    *("bank_conflict_ub/1", "bank_conflict_ub/2", "bank_conflict_ub/5", "bank_conflict_nd2nz/2", "empty"),
    *("mhc_expand_forward", "mhc_expand_backward", "sinkhorn_1x8", "sinkhorn_1024x8", "add_rms_norm", "square_sum"),
)
ASKED_BLIND = ("tiles", "one_row_at_a_time", "bits_by_scalars", "rows_divided", "padded_rows", "scalar_walks")
DOCS = Path(__file__).resolve().parents[2] / "docs" / "fidelity.md"


def values() -> tuple[PublishedValue, ...]:
    return (*measured.read(), *measured.points())


@cache
def found() -> FidelitySummary:
    return FidelitySummary.of(list(runner.run(table.chosen(FAST))), values())


def test_rows_outside_their_limits_are_known() -> None:
    """A row that misses its limit has a reason in the scenario."""
    unknown = [(r.measured.id, r.scenario, r.measured.metric, r.error_percent) for r in found().missed if not r.note]
    assert not unknown
    assert len(found().held) >= 0.75 * (len(found().held) + len(found().missed))
    # Of the fast scenarios that CI runs 3.4; the page has the figure of all, whose aim is 5.
    assert compare.median_error(found().rows) <= 4
    told = re.search(r"their median error is ([\d.]+) %", DOCS.read_text())
    assert told is not None
    assert float(told[1]) <= 5
    # Without the rows that were asked blind, of which test_fidelity_vector.py knows what is missed (with the seven of
    # scalar_walks it is 4.3, and was 4.1 before their constants).
    rows = re.findall(r"^\| \S+ \| (\S+) \| .* \| ([+-][\d.]+) \| [\d.]+ \| (?:held|missed) ", DOCS.read_text(), re.M)
    known = [abs(float(error)) for name, error in rows if name.split("/")[0] not in ASKED_BLIND]
    assert len(known) >= 534
    assert statistics.median(known) <= 4.2


def test_orders_that_are_turned_around_are_known() -> None:
    """The aim is none; what is left has a reason in missed.toml."""
    assert not [i for i in found().inversions if not table.why_turned(i.faster.split("/")[0])]
    assert not [r for r in found().rankings if r.verdict == "missed" and not table.why_tau(r.family)]


def test_the_page_misses_no_more_than_it_did() -> None:
    """Of all scenarios, which CI doesn't run: the page is what they gave last."""
    page = DOCS.read_text()
    held = re.search(r"\*\*(\d+) of (\d+) rows with a limit are within it", page)
    assert held is not None
    assert int(held[1]) >= 459
    assert int(held[2]) >= 534
    assert " was measured faster than " not in page
    gains = page[page.index("| published gain |") : page.index("| family | pairs |")]
    new, old = (
        [row for row in gains.splitlines() if ("| concat_tasks/" in row) == of_concat_tasks]
        for of_concat_tasks in (True, False)
    )
    assert sum("| missed |" in row for row in old) <= 8
    assert sum("| held |" in row for row in old) >= 45
    assert sum("| missed |" in row for row in new) <= 3
    assert sum("| held |" in row for row in new) >= 16


def test_published_gains_have_their_size() -> None:
    assert not [g for g in found().gains if g.verdict == "missed" and not table.why_gain(g.slow, g.fast)]


def test_the_docs_page_shows_these_rows() -> None:
    """`make docs` writes it; the rows of the fast scenarios are compared."""
    page = DOCS.read_text()
    stale = [line for r in found().rows if r.verdict and (line := output.markdown(r)) not in page]
    assert not stale, "run `make docs`"


def test_every_kernel_runs_without_unordered_accesses() -> None:
    """Their originals are right on silicon, so ours must be, too."""
    assert not [(m.scenario.name, m.hazards) for m in found().modelled if m.hazards]


def test_other_architectures_are_refused_by_name() -> None:
    with pytest.raises(CaseError, match="ascend950"):
        next(runner.run(table.chosen(["empty"]), chip="ascend950"))
    row = PublishedValue(
        "M0078", "x/add_high_performance/README_en.md", "950", "SCENARIO_NUM=0 ", "aiv_time_us", "1", "us"
    )
    assert table.scenario_of(row) is None
    assert "950" in table.reason_of(row)


def test_every_row_of_a_table_is_repeated_or_has_a_reason() -> None:
    """With the whole table of published measurements at ASCENDOPT_MEASUREMENTS; else with what is shipped."""
    rows = (*measured.read(settings().measurements or measured.MEASUREMENTS), *measured.points())
    assert "" not in compare.not_repeated(rows)


def test_every_point_of_a_scenario_is_in_the_table() -> None:
    ids = {row.id for row in measured.points()}
    wrong = [(s.name, point) for s in table.scenarios() for point in s.points if point not in ids]
    assert not wrong


def test_cold_scenarios_are_chosen_apart() -> None:
    warm, cold = ({s.name for s in table.chosen([], slow=True, cold=c)} for c in (False, True))
    assert warm | cold == {s.name for s in table.scenarios()}
    assert cold
    assert not warm & cold
    with pytest.raises(CaseError, match="no scenario"):
        table.chosen(["add/1"], cold=True)


def row(text: str, modelled: float, metric: str = "task_duration_us", scenario: str = "f/1") -> ComparedRow:
    value = PublishedValue("P1", "s", "910B4", "x", metric, text, "us", wide=True)
    return ComparedRow(value, modelled, scenario, "ascend910b4", compare.allowed(value, modelled))


@pytest.mark.parametrize(
    ("text", "modelled", "metric", "held"),
    [
        ("100", 110.4, "task_duration_us", True),  # 10 % and half a digit
        ("100.0", 110.4, "task_duration_us", False),
        ("2.00", 2.7, "task_duration_us", True),  # 0.7 us is more than 15 %
        ("20.0", 23.1, "task_duration_us", False),
        ("0.3", 0.36, "aiv_vec_time_us", True),  # published to a tenth
        ("0.300", 0.36, "aiv_vec_time_us", False),
        ("4.7-7.1", 5.0, "aiv_scalar_time_us", True),
        ("4.7-7.1", 9.0, "aiv_scalar_time_us", True),
        ("4.7-7.1", 12.0, "aiv_scalar_time_us", False),
    ],
)
def test_limits(text: str, modelled: float, metric: str, held: bool) -> None:
    assert row(text, modelled, metric).verdict == ("held" if held else "missed")


def test_errors_of_ranges_count_from_the_nearer_end() -> None:
    assert row("4-8", 6).error_percent == 0
    assert row("4-8", 10).error_percent == pytest.approx(25)
    assert row("4-8", 2).error_percent == pytest.approx(-50)


def test_mte3_has_a_limit_where_the_source_repeats() -> None:
    rows = {(r.scenario, r.measured.metric): r.verdict for r in found().rows}
    assert rows["add/2", "aiv_mte3_time_us"]  # 54.3 and 54.9
    assert not rows["add/5", "aiv_mte3_time_us"]  # 64 to 160


def family(*names: str, ranked: bool = True, gains: Sequence[table.PublishedGain] = ()) -> table.Family:
    made = tuple(table.Scenario(f"f/{n}", "k", 1, "ascend910b4") for n in names)
    return table.Family("f", ranked, made, tuple(gains))


def test_inversions_correlation_and_gains() -> None:
    rows = [
        row("100", 120, scenario="f/1"),
        row("110", 115, scenario="f/2"),
        row("111", 90, scenario="f/3"),  # within 2 % of f/2
        row("200", 240, scenario="f/4"),
        row("1.00", 50, scenario="other/1"),
    ]
    f = family("1", "2", "3", "4", gains=[table.PublishedGain("what", "f/4", "f/1")])
    wrong = ranking.inversions(rows, [f])
    assert [(i.faster, i.slower) for i in wrong] == [("f/1", "f/2"), ("f/1", "f/3")]
    assert not ranking.inversions(rows, [family("1", "2", ranked=False)])
    (tau,) = ranking.rankings(rows, [f])
    assert (tau.pairs, tau.tau, tau.verdict) == (5, pytest.approx(1 / 5), "missed")
    (gain,) = ranking.gains(rows, [f])
    assert gain.measured == gain.modelled == pytest.approx(2)
    assert gain.verdict == "held"


def test_gains_of_cores() -> None:
    """Of one kernel on 1, 8 and 40 cores; another one, and a launch within 2 %, make no pair."""
    made = [table.Scenario(f"f/{n}", "k", n, "ascend910b4") for n in (1, 8, 9, 40)]
    other = table.Scenario("f/2", "k", 2, "ascend910b4", define=("OTHER",))
    rows = [row(us, m, scenario=f"f/{n}") for n, us, m in ((1, "10", 10), (8, "5", 5), (9, "5.02", 9), (40, "20", 40))]
    rows.append(row("1", 1, scenario="f/2"))
    families = [table.Family("f", True, (*made, other), ())]
    fewer, more, both_fewer, both_more = cores.core_gains(rows[:2] + rows[3:], families)
    assert (fewer.kernel, fewer.fewer, fewer.pairs, fewer.held) == ("f", True, 2, 0)
    assert fewer.share == pytest.approx(8 / 5)  # of log2: 1 and 2 measured, 2 and 3 modelled
    assert (more.fewer, more.pairs, more.held, more.share) == (False, 1, 1, pytest.approx(1))
    assert (both_fewer.kernel, both_fewer.pairs, both_more.pairs) == ("all", 2, 1)
    assert not cores.core_gains(rows[1:3], families)
    assert not cores.core_gains(rows, [table.Family("f", False, (*made, other), ())])  # nothing says: the same work


def test_fewer_cores_are_worth_what_they_are_on_silicon() -> None:
    """What the search finds most often. Of all scenarios, as the page has them."""
    page = DOCS.read_text()
    for direction, least in (("fewer", 0.9), ("more", 0.75)):
        found = re.search(rf"\| all \| {direction} \| (\d+) \| (\d+) \| ([\d.]+) \|", page)
        assert found is not None
        assert int(found[2]) >= least * int(found[1])
        assert 0.9 <= float(found[3]) <= 1.1


@pytest.mark.parametrize(
    ("size", "modelled", "verdict"), [(2, 1.6, "held"), (2, 1.5, "missed"), (2, 0.9, "missed"), (1.01, 0.9, "")]
)
def test_gains_are_judged_by_logarithm(size: float, modelled: float, verdict: str) -> None:
    assert ranking.ComparedGain("", "a", "b", size, modelled).verdict == verdict


def test_csv_and_plot(tmp_path: Path) -> None:
    rows = found().rows
    with (tmp_path / "rows.csv").open("w", newline="") as file:
        output.write_csv(rows, file)
    lines = (tmp_path / "rows.csv").read_text().splitlines()
    assert len(lines) == len(rows) + 1
    assert lines[0].startswith("id,scenario,chip,metric,unit,measured,modelled,error_percent,limit_percent,verdict")
    write_fidelity(tmp_path / "rows.html", found())
    text = (tmp_path / "rows.html").read_text()
    assert "task_duration (10 %)" in text
    assert len(text) < 400_000
    figure = beside_a_suite(found())
    assert "median error" in figure.note
    assert figure.svg.count("<circle") == len(figure.tables[0].rows) > 0
