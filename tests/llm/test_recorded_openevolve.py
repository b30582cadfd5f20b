"""OpenEvolve with the recorded model behind it: the same replies come to the same gains, with no more tokens than ours.

Recorded by record_openevolve.py; docs/llm.md has the figures beside those of the search.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from chat_server import Server
from record_openevolve import Questions, evolve
from recorded import FOLDER, OPENEVOLVE, Recording

from ascendopt_tune.llm.client import estimate_tokens

RECORDINGS = {path.stem: Recording.read(path) for path in sorted(OPENEVOLVE.glob("*.txt"))}


def test_what_is_recorded() -> None:
    for name, told in RECORDINGS.items():
        ours = Recording.read(FOLDER / f"{name}.txt")
        assert (told.operator, told.case) == (ours.operator, ours.case)
        assert 0.8 * ours.limit < told.tokens <= ours.limit
        assert len(dict(told.replies)) == len(told.replies), "each has a heading of its own"
        assert told.evaluations <= len(told.replies) + 1


@pytest.mark.battery
@pytest.mark.parametrize("name", RECORDINGS)
def test_openevolve_comes_to_the_same_gain(name: str, server: Server, tmp_path: Path) -> None:
    pytest.importorskip("openevolve", reason="the extra bench isn't installed")
    told, ours = RECORDINGS[name], Recording.read(FOLDER / f"{name}.txt")
    questions = Questions(told)
    found = evolve(ours, ours.limit, questions, server, tmp_path)
    assert (questions.unknown, questions.left) == ([], [])
    assert found.speedup == pytest.approx(told.speedup, rel=1e-3)
    assert (found.evaluations, found.tokens) == (told.evaluations, pytest.approx(told.tokens, rel=0.01))
    asked = ["".join(m["content"] for m in r["messages"]) for r in server.requests]
    assert not any(str(place) in text for text in asked for place in (tmp_path, Path.home()))
    assert max(map(estimate_tokens, asked)) < ours.limit / 4, "one question is not most of the budget"
