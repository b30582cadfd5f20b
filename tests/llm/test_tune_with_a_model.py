"""Whole tuning runs on the virtual NPU with a model behind a real HTTP server that replays a conversation."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from chat_server import KEY, Server, Transcript, edit

from ascendopt_tune import Cache, TuneRecord, tune_case
from ascendopt_tune.llm.endpoint import Endpoint, Prices
from ascendopt_tune.nouns.case import Case, TensorSpec
from ascendopt_tune.nouns.outcome import CompileFailed, Timed
from ascendopt_tune.nouns.trial import Trial
from ascendopt_tune.sources.registry import load_operator

SPEC = TensorSpec("float16", (128, 1024))
CASE = Case((SPEC, SPEC), (SPEC,))
HOST, KERNEL = "op_host/add.cpp", "op_kernel/add.cpp"
TILING, REFINE = "Change the **tiling program**", "Change the **kernel**"
CORES = "  coreNum = std::max<uint64_t>(1, std::min(coreNum, blockNum));"
ADD = "    Add(zLocal, xLocal, yLocal, count);"

Tune = Callable[..., TuneRecord]


def cores(n: int) -> str:
    return edit(HOST, CORES, CORES.replace("std::min(coreNum", f"std::min<uint64_t>({n}"), f"at most {n} cores")


@pytest.fixture
def tune(server: Server, tmp_path: Path) -> Tune:
    def run(*, endpoint: dict[str, Any] | None = None, **options: Any) -> TuneRecord:
        prices = {"prices": Prices(1.0, 10.0), "prices_offline": Prices(1.0, 10.0)}
        more = {"base_url": server.url, "api_key": KEY, "timeout_s": 20.0, **prices, **(endpoint or {})}
        end = Endpoint("fast", "thorough", **more)
        cache = Cache(root=tmp_path / "results", layers=())
        options = {"proposer": "llm", "retune": True, "cache": cache, "workers": 2, **options}
        return tune_case(load_operator("add"), CASE, endpoint=end, **options)

    return run


def by_change(record: TuneRecord) -> dict[str, Trial]:
    """Questions of a batch reach the server in any order, so trials are told apart by what they changed."""
    return {t.candidate.change: t for t in record.history}


def questions(server: Server, mark: str) -> list[str]:
    return [text for r in server.requests if mark in (text := r["messages"][-1]["content"])]


def test_a_replayed_conversation_tunes_an_operator(server: Server, tune: Tune, own_cache: Path) -> None:
    """Both stages; a compile error is repaired; then the same run again, offline."""
    server.answer = Transcript(
        ("important", '{"important": [2], "unimportant": [7], "notes": ["Few cores suffice."]}'),
        (TILING, cores(24)),
        (TILING, cores(12)),
        (REFINE, edit(KERNEL, ADD, "    Addd(zLocal, xLocal, yLocal, count);", "a faster addition")),
        (REFINE, edit(KERNEL, ADD, "    Add(zLocal, xLocal, xLocal, count);", "one operand less")),
        ("Addd", edit(KERNEL, ADD.replace("Add(", "Addd("), ADD + "  // one instruction", "the API that exists")),
    )
    record = tune(budget=6, schedule="paper")
    trials = by_change(record)
    repaired = "a faster addition; repaired: the API that exists"
    assert {change: type(t.outcome).__name__ for change, t in trials.items()} == {
        "as written": "Timed",
        "at most 24 cores": "Timed",
        "at most 12 cores": "Timed",
        "a faster addition": "CompileFailed",
        "one operand less": "WrongResult",
        repaired: "Timed",
    }
    assert trials[repaired].candidate.parent == trials["a faster addition"].candidate.parent
    assert record.best.task_duration_us < 0.72 * record.baseline.task_duration_us  # a launch pays for every core
    assert record.entry.provenance.changes == ("at most 12 cores",)
    assert record.entry.provenance.evaluations == 6

    (question,) = [text for text in questions(server, "What had been changed") if "Addd" in text]
    assert "CompileFailed" in question
    assert [r["model"] for r in server.requests].count("thorough") == 1
    first = questions(server, TILING)[:2]
    assert len(set(first)) == 2, "each question of a batch has another focus"
    assert all("Few cores suffice." in text and "Launch bound" in text for text in first)

    told = record.to_json()["llm"]
    assert told["answered"] == told["requests"] == len(server.requests)
    assert told["tokens"] == 120 * len(server.requests)
    assert told["money"] == pytest.approx(300e-6 * len(server.requests))
    assert not any(KEY.encode() in p.read_bytes() for p in own_cache.rglob("*") if p.is_file())

    end = {"replay": True, "api_key": None, "base_url": "http://127.0.0.1:9/v1"}
    offline = tune(budget=6, schedule="paper", endpoint=end)
    assert [(t.candidate.pair, t.outcome) for t in offline.history] == [
        (t.candidate.pair, t.outcome) for t in record.history
    ]
    assert (offline.llm["requests"], offline.llm["tokens"]) == (0, 0)


def test_code_that_uses_files_gets_nothing(server: Server, tune: Tune, tmp_path: Path) -> None:
    """The gate's business: here it is shown that what a model wrote goes through it."""
    secret, loot = tmp_path / "secret", tmp_path / "loot"
    secret.write_text("x")
    steal = f'{CORES}\n  if (std::fopen("{secret}", "r") != nullptr) return ge::GRAPH_FAILED;'
    leave = f'{CORES}\n  if (FILE* f = std::fopen("{loot}", "w")) {{ std::fputs("x", f); std::fclose(f); }}'
    kernel = f'{ADD}\n    fopen("{loot}", "w");'
    server.answer = Transcript(
        (TILING, edit(HOST, CORES, steal, "reads")),
        (TILING, edit(HOST, CORES, leave, "writes")),
        (REFINE, edit(KERNEL, ADD, kernel, "writes in the kernel")),
    )
    trials = by_change(tune(budget=4))
    assert trials.keys() == {"as written", "reads", "writes", "writes in the kernel"}
    assert not loot.exists()
    assert "GRAPH_FAILED" not in str(trials["reads"].outcome), "it could not read the file"
    assert isinstance(trials["reads"].outcome, Timed)
    assert isinstance(trials["writes in the kernel"].outcome, CompileFailed)
