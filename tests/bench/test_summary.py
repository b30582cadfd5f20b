"""The figures of the report, on records made up for them."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascendopt_tune.bench import report, runner, summary
from ascendopt_tune.bench.record import RunRecord, Step
from ascendopt_tune.bench.table import TEST, LeftOut, read
from ascendopt_tune.errors import CacheError

TIMES = st.floats(1.0, 1e4)


def run(operator: str, method: str, speedup: float, seed: int = 0, level: int = 1, size: str = "medium") -> RunRecord:
    best = 100.0 / speedup
    return RunRecord(
        key="k",
        operator=operator,
        method=method,
        seed=seed,
        budget=4,
        code="c",
        list="test",
        level=level,
        size=size,
        elements=1 << 20,
        chip="x",
        toolkit="t",
        baseline_us=100.0,
        best_us=best,
        best_at=2,
        trace=(100.0, best, None),
        outcomes={"Timed": 2},
        repeats=0,
        steps=(Step(0, "as written", 100.0, 10.0), Step(1, "fewer", best, 10.0)),
    )


def test_fast_p_is_strict() -> None:
    runs = [run(f"op{i}", "full", s) for i, s in enumerate((1.0, 1.2, 1.21, 2.0, 4.0))]
    line = summary.line("full", runs, summary.best_known(runs))
    assert line.fast == (0.8, 0.6, 0.4, 0.2)
    assert line.mean == pytest.approx(math.prod((1.0, 1.2, 1.21, 2.0, 4.0)) ** 0.2)


def test_an_interval_takes_each_clock_for_all_cases_together() -> None:
    one = replace(run("one", "full", 2.0), wins=1.0, over_clocks=(1.5, 2.5))
    other = replace(run("two", "full", 2.0), wins=1.0, over_clocks=(2.5, 1.5))
    kept = replace(run("kept", "full", 1.0), wins=0.0)
    found = summary.gain([one, other])
    assert found.mean == summary.MeanInterval(pytest.approx(2.0), pytest.approx(3.75**0.5), pytest.approx(3.75**0.5))
    assert found.fast[2.0] == summary.MeanInterval(0.0, 0.5, 0.5)
    assert found.wins == 1.0
    with_kept = summary.gain([one, other, kept])
    assert with_kept.mean.low == pytest.approx(3.75 ** (1 / 3))
    assert with_kept.wins == pytest.approx(2 / 3)
    assert summary.gain([kept]).mean == summary.MeanInterval(1.0, 1.0, 1.0)
    assert summary.gain([one, run("old", "full", 1.1)]).mean.low is None, "not all runs tell"


def test_evaluations_until_95_percent_of_the_best_known() -> None:
    near, far = run("op", "full", 1.95), run("op", "random", 1.5)
    known = summary.best_known([near, far, run("op", "other", 2.0)])
    assert summary.line("full", [near], known).to_best == 2
    missed = summary.line("random", [far], known)
    assert (missed.to_best, missed.reached) == (None, 0.0)


def test_an_operator_counts_when_it_has_everything() -> None:
    runs = [run("a", "full", 2.0), run("a", "random", 1.0), run("b", "full", 3.0)]
    assert {r.operator for r in summary.complete(runs, ["full", "random"], 1)} == {"a"}
    assert {r.operator for r in summary.complete(runs, ["full"], 1)} == {"a", "b"}
    assert summary.complete(runs, ["full"], 2) == []


@given(st.lists(st.none() | TIMES, max_size=12), TIMES)
def test_a_curve_never_falls_and_ends_at_what_was_confirmed(times: list[float | None], baseline: float) -> None:
    found = [t for t in (baseline, *times) if t is not None]
    one = replace(run("op", "full", 1.0), budget=20, trace=(baseline, *times), baseline_us=baseline, best_us=min(found))
    curve = summary.best_so_far(one)
    assert len(curve) == 20
    assert curve == sorted(curve)
    assert curve[-1] == pytest.approx(one.speedup)


def test_what_was_refused_is_not_in_the_curve() -> None:
    one = replace(run("op", "full", 1.0), trace=(100.0, 10.0, 80.0), best_us=80.0)
    assert summary.best_so_far(one) == [1.0, 1.25, 1.25, 1.25]


def test_most_left_on_the_table_comes_first() -> None:
    runs = [run("a", "full", 1.0), run("a", "random", 1.1), run("b", "full", 1.0), run("b", "random", 3.0)]
    rows = summary.left_behind(runs, "full", summary.best_known(runs))
    assert [(r[0], r[3]) for r in rows] == [(("b", "medium"), "random"), (("a", "medium"), "random")]


def changed(seed: int, changes: tuple[str, ...]) -> RunRecord:
    steps = tuple(Step(1, change, 50.0, 5.0) for change in ("as written", *changes))
    return replace(run("op", "full", 2.0, seed), steps=steps)


def test_what_the_best_pairs_changed() -> None:
    changes = (("cores: at most 8", "UB: size times 1/2; flag-pair: 2 pairs"), ("cores: at most 5", "length doubled"))
    runs = [changed(seed, of) for seed, of in enumerate((*changes, ("recombined with #8 (x: y)",)))]
    shares = summary.kinds_of_change([*runs, run("op", "random", 2.0)], "full")
    assert shares == pytest.approx({"cores": 2 / 3, "UB": 1 / 3, "flag-pair": 1 / 3, "quantity": 1 / 3})
    assert next(iter(shares)) == "cores"


def test_one_method_against_another() -> None:
    speeds = {"a": (2.0, 1.0), "b": (1.5, 1.5), "c": (1.0, 1.2)}
    runs = [run(op, m, s) for op, both in speeds.items() for m, s in zip(("full", "random"), both, strict=True)]
    one = summary.against([*runs, run("d", "full", 9.0)], "full", "random")
    assert one is not None
    assert (one.cases, one.ahead, one.level, one.behind) == (3, 1, 1, 1)
    assert one.ratio == pytest.approx((2.0 / 1.2) ** (1 / 3))
    assert one.low <= one.ratio <= one.high
    assert summary.against(runs, "full", "stage-1") is None


def plan(path: Path) -> runner.BenchPlan:
    listed = tuple(o for o in read() if o.list == TEST and o.size == "medium")[:2]
    return runner.BenchPlan(listed, ("full", "random", "optuna-tpe"), 1, 4, "x", path)


def test_the_page_keeps_its_own_words(tmp_path: Path) -> None:
    one = plan(tmp_path)
    first, second = (o.path for o in one.operators)
    runs = [run(first, "full", 2.0), run(first, "random", 1.5), run(first, "optuna-tpe", 1.2), run(second, "full", 3.0)]
    page = tmp_path / "page.md"
    page.write_text(f"# Mine\n\nbefore\n\n{report.BEGIN}\nold\n{report.END}\n\nafter\n")
    found = report.Results(one, runs, [((second, "medium"), "it | failed")], [LeftOut("a", "large", "test", "too big")])
    report.write(page, found)
    text = page.read_text()
    assert text.startswith("# Mine\n\nbefore\n")
    assert text.endswith("\nafter\n")
    assert "old" not in text
    assert "| full | 1 | 1 | 2.000 |" in text
    assert "1 of the 2 cases (1 medium) of the 2 operators of the test list" in text
    assert "| random | 1 | 1.333 | 1.333 to 1.333 | 1 | 0 | 0 |" in text
    assert "| optuna-tpe | 1 | 1.667 |" in text
    assert "Met: a geometric mean of at least 1.25 (2.000); fast_1" in text
    assert "Missed: nothing." in text
    assert "modelled" in text
    assert f"| {second} | medium | it \\| failed |" in text
    assert "| a | large | too big |" in text
    report.write(page, found)
    assert page.read_text() == text


def test_sampled_methods_are_counted_apart(tmp_path: Path) -> None:
    one = replace(plan(tmp_path), methods=("full", "random"), sampled=("random",))
    first, second = (o.path for o in one.operators)
    runs = [run(first, "full", 2.0), run(second, "full", 3.0), run(second, "random", 1.5)]
    page = tmp_path / "page.md"
    report.write(page, report.Results(one, runs, []))
    told = "2 of the 2 cases (2 medium) of the 2 operators of the test list that were asked for have every method"
    assert f"{told} that is not sampled and seed; 1 have random, too: 1 seed(s)" in page.read_text()


def test_a_page_without_a_place_is_refused(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Mine\n")
    with pytest.raises(CacheError, match="no place for results"):
        report.write(page, report.Results(plan(tmp_path), [], []))
