"""Experience and Use: JSON there and back, identity, and what damage leads to."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from bank_examples import experience
from hypothesis import given
from hypothesis import strategies as st

from ascendopt_tune.bank.experience import Experience, ExperienceProvenance, Use, line_of, newer, record_of
from ascendopt_tune.errors import BankError
from ascendopt_tune.nouns.profile import Profile

_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
_numbers = st.floats(allow_nan=False, allow_infinity=True) | st.integers(0, 10**6)
_profiles = st.builds(
    Profile, *[_numbers] * 6, block_dim=st.integers(0, 64), counters=st.dictionaries(_texts, _numbers, max_size=3)
)
_NAMES = ["motif", "title", "description", "bottleneck", "diff", "preconditions", "site", "operator", "case", "dtype"]
_NAMES += ["regime", "chip", "target", "reason"]
_experiences = st.builds(
    Experience,
    **dict.fromkeys(_NAMES, _texts),
    before=st.none() | _profiles,
    after=st.none() | _profiles,
    kind=st.sampled_from(["positive", "negative"]),
    provenance=st.builds(ExperienceProvenance, _texts, _texts, st.integers(), _texts, _texts),
    applied=st.integers(0, 9),
    helped=st.integers(0, 9),
)


@given(_experiences)
def test_json_round_trip(e: Experience) -> None:
    assert Experience.from_json(e.to_json()) == e
    assert Experience.from_json(json.loads(json.dumps(e.to_json()))) == e


@given(_experiences)
def test_line_round_trip_leaves_the_counts_out(e: Experience) -> None:
    line = line_of(e)
    assert "\n" not in line
    assert record_of(json.loads(line)) == replace(e, applied=0, helped=0)


@given(_texts, st.booleans())
def test_use_round_trip(trial: str, helped: bool) -> None:
    use = Use(experience().id, trial, helped)
    assert record_of(json.loads(line_of(use))) == use


@given(st.lists(_experiences, min_size=2, max_size=3), st.permutations([0, 1, 2]))
def test_newer_is_a_maximum(found: list[Experience], order: list[int]) -> None:
    """Which record is kept depends on the records alone, not on the order they are met in."""
    found = (found * 2)[:3]
    a, b, c = (found[i] for i in order)
    assert newer(a, b) == newer(b, a)
    assert newer(a, a) == a
    assert newer(newer(a, b), c) == newer(a, newer(b, c))


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({"title": "other", "description": "words", "bottleneck": "of a later version"}, True),
        ({"before": None}, True),
        ({"provenance": ExperienceProvenance(version="9.9")}, True),
        ({"applied": 3, "helped": 1}, True),
        ({"motif": "x"}, False),
        ({"site": "x"}, False),
        ({"diff": "x"}, False),
        ({"case": "x"}, False),
        ({"chip": "x"}, False),
        ({"target": "npu"}, False),
        ({"kind": "negative"}, False),
    ],
)
def test_identity_is_what_was_changed_where(change: dict[str, object], same: bool) -> None:
    assert (experience(0, **change).id == experience(0).id) is same


def test_the_later_version_is_kept() -> None:
    old, new = (
        experience(0, title=t, provenance=ExperienceProvenance(version=v)) for t, v in (("z", "0.9.1"), ("a", "0.10.0"))
    )
    assert newer(old, new) is new


def test_speedup_and_validated() -> None:
    e = experience(0)
    assert e.speedup == pytest.approx(2.0)
    assert e.validated
    assert not replace(e, before=None).validated
    assert not replace(e, kind="negative").validated
    assert not replace(e, provenance=ExperienceProvenance("import")).validated


def _line(**changes: object) -> dict[str, object]:
    document: dict[str, object] = json.loads(line_of(experience(0)))
    return {**document, **changes}


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ([], "no record"),
        ({"title": "x"}, "no record"),
        (_line(schema=2), "schema 2"),
        (_line(sha256="0"), "altered"),
        (_line(experience={**_line()["experience"], "title": "better"}), "altered"),  # type: ignore[dict-item]
        ({"schema": 1, "sha256": ""}, "neither"),
    ],
)
def test_damaged_lines_are_named(document: object, reason: str) -> None:
    with pytest.raises(BankError, match=reason):
        record_of(document)


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "great"},
        {"motif": 3},
        {"applied": -1},
        {"before": {"task_duration_us": "x"}},
        {"provenance": {"who": "me"}},
        {"unknown": 1},
        {"id": "0" * 64},
    ],
    ids=str,
)
def test_records_of_another_form_are_refused(change: dict[str, object]) -> None:
    with pytest.raises(BankError):
        Experience.from_json({**experience(0).to_json(), **change})
