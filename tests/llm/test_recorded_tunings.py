"""Tunings that a model once led, over HTTP: the same replies come to the same gains, and again without network.

The rules come to less for these operators. The beginning of one is in every test run, the rest is a battery.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from chat_server import KEY, Server
from recorded import FOLDER, Recording, Replay

from ascendopt_tune import Cache, TuneRecord, tune_case
from ascendopt_tune.llm.client import estimate_tokens
from ascendopt_tune.llm.endpoint import Endpoint
from ascendopt_tune.paths import shipped

RECORDINGS = {path.stem: Recording.read(path) for path in sorted(FOLDER.glob("*.txt"))}
BEGINNING = 1.969  # modelled speedup of softmax after 7 evaluations
MOST_TOKENS = 12_000  # of one question
RULES_ALONE = 1.1  # where rules came to less, there was something for a model to find


def tune(told: Recording, evaluations: int, folder: Path, kept: Path, **endpoint: Any) -> TuneRecord:
    """The model alone leads, and nothing is learned from other runs. ``kept``: a copy of the journal; what is in it is
    not evaluated again.
    """
    end = Endpoint("m", "m", **{"api_key": KEY, "timeout_s": 60.0, **endpoint})
    journal, cache = folder / "journal.jsonl", Cache(root=folder, layers=())
    if kept.exists():
        folder.mkdir()
        shutil.copy(kept, journal)
    options: dict[str, Any] = {"warm_start": False, "workers": 1, "resume": True, "budget": evaluations}
    options["schedule"] = "paper"  # as it was recorded
    return tune_case(
        told.load(), told.case, proposer="llm", endpoint=end, cache=cache, journal=journal,
        progress=lambda _: shutil.copy(journal, kept), **options,
    )  # fmt: skip


def test_what_is_recorded() -> None:
    for told in RECORDINGS.values():
        assert told.rules < told.speedup
        assert len(dict(told.replies)) == len(told.replies), "each has a heading of its own"
        assert told.within[2] <= told.limit
    hopeless = [told for told in RECORDINGS.values() if told.chosen < RULES_ALONE]
    assert len(hopeless) >= 3
    assert all(10 * told.rules < told.speedup for told in hopeless), "the rules have got better, and are far behind"
    replies = [text for told in hopeless for _, text in told.replies]
    content = [text for text in replies if not text.startswith("PASS")]
    assert len(content) >= 40
    page = " ".join((Path(__file__).parents[2] / "docs/llm.md").read_text(encoding="utf-8").split())
    assert f"The first three have {len(replies)} replies, {len(content)} of which are no `PASS`." in page
    for told in RECORDINGS.values():
        assert f"{told.speedup:.2f}x" in page
    for told in hopeless:
        evaluations, speedup, tokens = told.within
        assert f"| `{told.operator}` | {evaluations}, {tokens:,} | {speedup:.2f}x" in page


def replayed(told: Recording, evaluations: int, server: Server, folder: Path) -> float:
    """The speedup after so many evaluations: over HTTP, then once more without network."""
    replay, kept = Replay(told), folder / "kept.jsonl"
    server.answer = replay
    record = tune(told, evaluations, folder / "one", kept, base_url=server.url)
    assert replay.unknown == []
    assert record.decision is not None
    assert record.decision.outcome == "win"
    questions = ["".join(m["content"] for m in r["messages"][:2]) for r in server.requests]
    assert len(questions) == len(told.replies) - len(replay.left)
    assert max(map(estimate_tokens, questions)) < MOST_TOKENS
    assert not any(str(place) in text for text in questions for place in (shipped("registry"), folder, Path.home()))

    again = tune(told, evaluations, folder / "two", kept, replay=True, api_key=None, base_url="http://127.0.0.1:9/v1")
    assert [(t.candidate, t.outcome) for t in again.history] == [(t.candidate, t.outcome) for t in record.history]
    assert (again.llm["requests"], again.llm["replayed"]) == (0, len(questions) + int(str(record.llm["replayed"])))
    return record.baseline.task_duration_us / record.best.task_duration_us


def test_a_recorded_tuning_begins_as_it_did(server: Server, tmp_path: Path) -> None:
    """Joint moves, a template, and rewrites of the kernel that come to nothing more."""
    gain = replayed(RECORDINGS["softmax"], 7, server, tmp_path)
    assert gain == pytest.approx(BEGINNING, rel=1e-3)


@pytest.mark.battery
@pytest.mark.parametrize("name", RECORDINGS)
def test_a_recorded_tuning_comes_to_the_same_gain(name: str, server: Server, tmp_path: Path) -> None:
    told = RECORDINGS[name]
    assert replayed(told, told.evaluations, server, tmp_path) == pytest.approx(told.speedup, rel=1e-3)
    assert len(server.requests) == len(told.replies)


@pytest.mark.battery
@pytest.mark.parametrize("name", [name for name, told in RECORDINGS.items() if told.limit])
def test_a_part_keeps_to_the_tokens_that_openevolve_was_given(name: str, server: Server, tmp_path: Path) -> None:
    told = RECORDINGS[name]
    evaluations, speedup, tokens = told.within
    server.answer = Replay(told)
    record = tune(told, evaluations, tmp_path / "one", tmp_path / "kept.jsonl", base_url=server.url)
    assert record.baseline.task_duration_us / record.best.task_duration_us == pytest.approx(speedup, rel=1e-3)
    assert server.tokens == pytest.approx(tokens, rel=0.02)
