"""What a search takes over from tuned neighbours in the cache, and that a resumed run takes over the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import cache_examples as example
import pytest

from ascendopt_tune.nouns.case import Case, TensorSpec
from ascendopt_tune.nouns.chip import load_chip
from ascendopt_tune.nouns.operator import Candidate, Operator, Pair
from ascendopt_tune.nouns.outcome import Outcome, Timed
from ascendopt_tune.nouns.profile import Profile
from ascendopt_tune.nouns.trial import Move
from ascendopt_tune.search.engine import Search, SearchOptions, SearchResult, one_by_one
from ascendopt_tune.search.journal import Journal
from ascendopt_tune.search.mutation import Mutation
from ascendopt_tune.search.tiling.warm_start import Neighbour, WarmStart, nearest, neighbours
from ascendopt_tune.store.cache import Cache, Entry, Key

DATA = Path(__file__).parent / "data" / "tiling"
ROWS, FIXED = ((DATA / f"{name}.cpp").read_text() for name in ("rows", "fixed"))
KERNEL = {"op_kernel/k.cpp": "kernel"}
CORES = Move("op_host/t.cpp:F:core_count:x#0", "core_count", "down", 24.0)


def operator(name: str = "op", text: str = ROWS, kernel: str = "kernel") -> Operator:
    pair = Pair({"op_host/t.cpp": text}, {"op_kernel/k.cpp": kernel})
    return Operator(name, Path("/operators") / name, "k", "op_kernel/k.cpp", pair, ("op_host/t.cpp",))


def case(rows: int, dtype: str = "float16") -> Case:
    spec = TensorSpec(dtype, (rows, 512))
    return Case((spec,), (spec,))


def key(of: Operator, rows: int, chip: str = "ascend910b2", dtype: str = "float16") -> Key:
    return Key.of(of, case(rows, dtype), chip=chip, target="virtual", toolkit="1")


def tuned(of: Operator, rows: int, *, us: float = 5.0, chip: str = "ascend910b2", mark: str = "") -> Entry:
    """A result whose tiling program ends in a comment that tells which it is."""
    made = example.entry(key(of, rows, chip), us)
    text = of.baseline.tiling["op_host/t.cpp"] + f"// tuned for {rows} {chip} {mark}\n"
    provenance = replace(made.provenance, moves=(tuple(CORES.to_json()),), baseline_tiling=of.baseline.tiling_hash)
    return replace(made, pair=of.baseline.with_tiling("op_host/t.cpp", text), provenance=provenance)


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(root=tmp_path / "cache", layers=())


def test_the_nearest_come_first(cache: Cache) -> None:
    ours, fixed = operator(), operator("fixed", FIXED)
    same_tiling = operator("twin", kernel="another kernel")
    cache.put(tuned(fixed, 1024))
    cache.put(tuned(same_tiling, 1024))
    cache.put(tuned(operator("other", FIXED + "//"), 64))  # another operator at another size tells nothing
    cache.put(tuned(ours, 4096))
    cache.put(tuned(ours, 1000))
    cache.put(tuned(ours, 1024, chip="ascend910b4"))
    cache.put(tuned(ours, 1024))  # the run's own key
    cache.put(tuned(ours, 2000, us=10.0))  # no faster than its baseline
    found = neighbours(cache, ours, key(ours, 1024))
    assert [n.relation for n in found][:3] == ["pair"] * 3
    assert {n.relation for n in found[3:]} == {"tiling", "other"}
    assert ["[1000,512] on ascend910b2" in found[0].title, "[4096,512]" in found[1].title] == [True, True]
    assert "ascend910b4" in found[2].title
    by_relation = {n.relation: n for n in found}
    assert by_relation["tiling"].kernel == {}
    assert "// tuned for 1024" in by_relation["tiling"].tiling["op_host/t.cpp"]
    assert by_relation["other"].moves == (CORES,)
    assert by_relation["other"].tiling == {}
    assert cache.counters.hits == cache.counters.misses == 0, "the caller's counters are its own"
    assert [Neighbour.from_json(n.to_json()) for n in found] == found


def search(found: list[Neighbour], us: float = 5.0, **more: object) -> SearchResult:
    """Pairs of other runs take 5 us, those with fewer cores 7, the rest 10."""

    def evaluate(c: Candidate) -> Outcome:
        text = c.pair.tiling["op_host/t.cpp"]
        return Timed(Profile(us if "// tuned" in text else 7.0 if "< 24 ?" in text else 10.0))

    run = Search(operator(), case(1024), load_chip("ascend910b2"), [], one_by_one(evaluate))
    return replace(run, starters=[WarmStart(found)], options=SearchOptions(budget=20), **more).run()  # type: ignore[arg-type]


def test_a_neighbours_pair_is_taken_as_it_is(cache: Cache) -> None:
    ours = operator()
    cache.put(tuned(ours, 2048))
    result = search(neighbours(cache, ours, key(ours, 1024)))
    trial = result.history[1]
    assert (trial.candidate.proposer, trial.round, trial.candidate.parent) == ("warm-start", 0, 0)
    assert trial.candidate.change == "warm start: pair of op float16[2048,512] on ascend910b2"
    assert result.best is trial
    assert trial.moves == (CORES,)


def test_moves_of_another_operator_are_replayed_by_family(cache: Cache) -> None:
    cache.put(tuned(operator("fixed", FIXED), 1024))
    result = search(neighbours(cache, operator(), key(operator(), 1024)))
    assert result.best.time_us == 7.0
    assert "GetCoreNumAiv() < 24 ?" in result.best.candidate.pair.tiling["op_host/t.cpp"]
    assert result.best.moves[0].family == "core_count"
    assert result.best.candidate.change.startswith("warm start: moves of fixed")


def test_a_tenth_of_the_budget_at_most(cache: Cache) -> None:
    for rows in range(1, 9):
        cache.put(tuned(operator(), rows * 100))
    result = search(neighbours(cache, operator(), key(operator(), 1024)))
    assert result.evaluations == 1 + 4


def test_a_resumed_run_is_told_what_it_was_told_before(cache: Cache, tmp_path: Path) -> None:
    ours, file = operator(), tmp_path / "run.jsonl"

    def run() -> SearchResult:
        with Journal(file, {"run": 1}) as journal:
            told = journal.fact("neighbours", lambda: [n.to_json() for n in neighbours(cache, ours, key(ours, 1024))])
            return search([Neighbour.from_json(n) for n in told], journal=journal)

    cache.put(tuned(ours, 2048))
    first = run()
    cache.put(tuned(ours, 1025))
    assert [t.candidate for t in run().history] == [t.candidate for t in first.history]


@pytest.mark.parametrize(
    ("value", "direction", "wanted"),
    [(4096.0, "up", 4000.0), (100.0, "up", 512.0), (1e9, "up", 8000.0), (64.0, "down", 64.0), (0.0, "flip", None)],
)
def test_the_nearest_value_replays_a_move(value: float, direction: str, wanted: float | None) -> None:
    known = [
        Mutation((), f"{v}", (Move("s", "tile_length", d, v),), 1.0)
        for v, d in ((512.0, "up"), (4000.0, "up"), (8000.0, "up"), (64.0, "down"))
    ]
    found = nearest([*known, Mutation((), "two", known[0].moves * 2, 9.0)], Move("x", "tile_length", direction, value))
    assert (found.moves[0].value if found else None) == wanted
