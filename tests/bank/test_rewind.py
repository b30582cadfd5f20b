"""The trajectory: what is kept, where it goes on, in what order; with made-up kernels and times."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import pytest

from ascendopt_tune.bank.rewind import Removal, RewindOptions, RewindStep, ahead, hurts, replay, rewind
from ascendopt_tune.nouns.operator import Pair
from ascendopt_tune.nouns.outcome import Outcome, Timed, WrongResult
from ascendopt_tune.nouns.profile import Profile

# A kernel is the text of its optimizations; each, when it is missing, costs so many us. "wrong" breaks the result.
COSTS = {"a": 50.0, "b": 5.0, "c": 1.0, "d": 20.0}
STRONG = Pair({}, {"k": "abcd!"})


def remover(pair: Pair) -> Iterator[Removal]:
    text = pair.kernel["k"]
    for letter in text:
        name = "wrong" if letter == "!" else letter
        yield Removal(name, "f", f"no {letter}", Pair({}, {"k": text.replace(letter, "")}))


def measure(pairs: Mapping[int, Pair]) -> Iterator[tuple[int, Outcome]]:
    for number in reversed(pairs):  # measurements end in any order
        text = pairs[number].kernel["k"]
        time = 100.0 + sum(cost for letter, cost in COSTS.items() if letter not in text)
        yield number, Timed(Profile(time)) if "!" in text else WrongResult("wrong")


def applier(pair: Pair) -> Iterator[Removal]:
    text = pair.kernel["k"]
    for letter in "abcd":
        if letter not in text:
            yield Removal(letter, "f", f"with {letter}", Pair({}, {"k": text + letter}))
    yield Removal("wrong", "f", "", Pair({}, {"k": "ab"}))


def verdicts(steps: Iterable[RewindStep]) -> dict[str, str]:
    return {"".join(m for m, _ in s.path): s.verdict for s in steps}


def test_only_what_hurts_is_kept_and_the_mildest_goes_on() -> None:
    steps = list(rewind(STRONG, Profile(100.0), remover, measure, RewindOptions(depth=2)))
    assert verdicts(steps) == {
        **{"a": "hurts", "b": "hurts", "c": "harmless", "d": "hurts", "wrong": "refused"},
        **{"ba": "hurts", "bc": "harmless", "bd": "hurts", "bwrong": "refused"},
    }
    second = next(s for s in steps if s.path[-1][0] == "d" and len(s.path) == 2)
    assert second.fast.kernel["k"] == "acd!"
    assert second.after is not None
    assert second.after.task_duration_us == 105.0
    assert second.before is not None
    assert second.before.task_duration_us == 125.0


def test_it_ends_when_nothing_hurts() -> None:
    steps = list(rewind(Pair({}, {"k": "cd!"}), Profile(155.0), remover, measure, RewindOptions(depth=9)))
    assert verdicts(steps) == {"c": "harmless", "d": "hurts", "wrong": "refused", "dc": "harmless", "dwrong": "refused"}


def test_no_pair_is_measured_twice_and_places_are_limited() -> None:
    measured: list[str] = []

    def many(pair: Pair) -> Iterator[Removal]:
        for n in range(5):
            yield Removal("m", f"place{n}", "", Pair({}, {"k": f"{pair.kernel['k']}{n}"}))
            yield Removal("n", f"place{n}", "", Pair({}, {"k": "same"}))

    def counting(pairs: Mapping[int, Pair]) -> Iterator[tuple[int, Outcome]]:
        measured.extend(p.kernel["k"] for p in pairs.values())
        yield from ((n, Timed(Profile(200.0 + len(p.kernel["k"])))) for n, p in pairs.items())

    list(rewind(STRONG, Profile(100.0), many, counting, RewindOptions(depth=2, per_motif=2)))
    assert measured[:3] == ["abcd!0", "same", "abcd!1"]
    assert len(measured) == len(set(measured))


def test_replay_measures_one_path() -> None:
    steps = list(replay(STRONG, Profile(100.0), remover, applier, measure, [("b", "f"), ("d", "f")]))
    whole = rewind(STRONG, Profile(100.0), remover, measure, RewindOptions(depth=2))
    wanted = {s.path: s for s in whole}
    assert [s.path for s in steps] == [(("b", "f"),), (("b", "f"), ("d", "f"))]
    assert all(s == wanted[s.path] for s in steps)
    assert [
        s.verdict for s in replay(STRONG, Profile(100.0), remover, applier, measure, [("wrong", "f"), ("a", "f")])
    ] == ["refused"]
    assert list(replay(STRONG, Profile(100.0), remover, applier, measure, [("a", "elsewhere"), ("b", "f")])) == []


def test_what_a_kernel_lacks_is_put_in() -> None:
    steps = {s.path[-1][0]: s for s in ahead(Pair({}, {"k": "d!"}), Profile(156.0), applier, measure)}
    assert {name: s.verdict for name, s in steps.items()} == {
        **{"+a": "hurts", "+b": "hurts", "+c": "harmless", "+wrong": "refused"},
    }
    step = steps["+b"]
    assert step.forward
    assert (step.slow.kernel["k"], step.fast.kernel["k"]) == ("d!", "d!b")
    assert step.before == Profile(156.0)
    assert step.after == Profile(151.0)
    assert steps["+wrong"].before == Profile(156.0)
    assert steps["+wrong"].after is None


def test_a_path_may_put_in_and_take_out() -> None:
    steps = list(replay(Pair({}, {"k": "bd!"}), Profile(151.0), remover, applier, measure, [("+a", "f"), ("d", "f")]))
    assert [(s.slow.kernel["k"], s.fast.kernel["k"]) for s in steps] == [("bd!", "bd!a"), ("b!a", "bd!a")]
    assert [s.after.task_duration_us for s in steps if s.after] == [101.0, 101.0]


@pytest.mark.parametrize(
    ("slow", "fast", "spread", "expected"),
    [
        (102.1, 100.0, 0.0, True),
        (102.0, 100.0, 0.0, False),
        (99.0, 100.0, 0.0, False),
        (105.0, 100.0, 2.0, False),  # three spreads are 6 us
        (107.0, 100.0, 2.0, True),
    ],
)
def test_beyond_noise(slow: float, fast: float, spread: float, expected: bool) -> None:
    counters = {"candidate_spread_us": spread}
    assert hurts(Profile(slow, counters=counters), Profile(fast)) is expected
    assert hurts(Profile(slow), Profile(fast, counters=counters)) is expected
