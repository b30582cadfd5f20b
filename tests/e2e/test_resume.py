"""A run that was killed, or ended by a limit, goes on and becomes the run that was never interrupted."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import stopping

RUN = ["tune", "silu", "--input", "x=float32[64,1000]", "--budget", "9", "--seed", "3"]

Document = Callable[..., dict[str, Any]]


@pytest.fixture
def cache(tmp_path: Path, shared_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Switches to a cache of that name: without results, but with what the others have compiled."""

    def switch(name: str) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        (shared_cache / "build").mkdir(parents=True, exist_ok=True)
        (folder / "build").symlink_to(shared_cache / "build")
        monkeypatch.setenv("ASCENDOPT_CACHE_DIR", str(folder))
        return folder

    return switch


def history(record: dict[str, Any]) -> list[tuple[Any, ...]]:
    names = ("id", "parent", "stage", "proposer", "change", "duplicate_of", "outcome", "profile")
    return [tuple(json.dumps(trial.get(name), sort_keys=True) for name in names) for trial in record["history"]]


def kill_after(evaluations: int) -> None:
    """The run, killed as by a machine's failure when it has told so many evaluations."""
    killed = stopping.command(signal.SIGKILL, [f"evaluation {evaluations}/"], RUN)
    done = subprocess.run(killed, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == -signal.SIGKILL, done.stderr


def test_a_killed_run_and_a_limited_run_become_the_uninterrupted_one(
    document: Document, cache: Callable[[str], Path]
) -> None:
    cache("whole")
    whole = document(*RUN)
    assert whole["stop"] == "budget"
    assert whole["evaluations"] == 9

    folder = cache("killed")
    kill_after(4)
    (journal,) = (folder / "journals").glob("*.jsonl")
    whole_lines = [line for line in journal.read_text().splitlines(keepends=True) if line.endswith("\n")]
    survived = sum("outcome" in json.loads(line) for line in whole_lines)
    assert survived >= 4
    at_once = document(*RUN, "--resume", "--max-seconds", "0")
    assert len(at_once["history"]) >= survived, "what was journaled takes no time"
    assert history(at_once) == history(whole)[: len(at_once["history"])]
    resumed = document(*RUN, "--resume")
    assert history(resumed) == history(whole)
    assert resumed["best"] == whole["best"]
    assert not journal.exists()

    folder = cache("limited")
    first = document(*RUN, "--max-seconds", "0")
    assert (first["stop"], first["evaluations"], first["speedup"]) == ("seconds", 1, 1.0)
    assert (first["finished"], first["ended"]) == (False, "seconds")
    assert document(*RUN, "--accept-unfinished")["cached"]
    resumed = document(*RUN)  # goes on by itself
    assert (resumed["finished"], resumed["ended"]) == (True, "budget")
    assert history(resumed) == history(whole)
    assert resumed["best"] == whole["best"]
    assert not list((folder / "journals").iterdir())


def test_what_was_judged_by_something_else_is_no_answer(
    document: Document, cache: Callable[[str], Path], cli: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    """The cache names a case by shapes and dtypes; what inputs are drawn is noted with the result."""
    cache("judged")
    run = ["tune", "silu", "--input", "x=float32[8,32]", "--budget", "2"]
    narrow, wide = [*run, "--domain", "x=0:1"], [*run, "--domain", "x=-9:9"]
    assert not document(*narrow)["cached"]
    assert document(*narrow)["cached"]
    explain = ["cache", "explain", *run[1:4]]
    assert "It was judged by other input domains" in cli(*explain).stdout
    assert document(*explain)["judged_alike"] is False
    said = cli(*wide)
    assert "input domains, tolerances or reference have changed since: tuning anew" in said.stderr
    assert document(*wide)["cached"]
    assert not document(*narrow)["cached"]


def test_one_pair_for_several_cases(
    document: Document,
    cache: Callable[[str], Path],
    cli: Callable[..., subprocess.CompletedProcess[str]],
    tmp_path: Path,
) -> None:
    file = tmp_path / "cases.toml"
    file.write_text(
        '[[case]]\ninputs = { x = "float32[64,1000]" }\nweight = 3\n\n[[case]]\ninputs = { x = "float32[8,1000]" }\n'
    )
    cache("together")
    run = ["tune", "silu", "--cases", str(file), "--budget", "6", "--seed", "3"]
    found = document(*run)
    assert [c["weight"] for c in found["cases"]] == [3, 1]
    assert [c["case"]["inputs"] for c in found["cases"]] == [["float32[64,1000]"], ["float32[8,1000]"]]
    assert found["mean_relative_time"] < 0.9
    assert all(c["speedup"] >= 1.0 for c in found["cases"])
    assert found["cases"][0]["common_pair"]
    assert sum(found["cases"][0]["outcomes"].values()) == 6
    again = cli(*run).stdout
    assert "answered from the cache" in again
    assert "one pair for 2 cases" in again
