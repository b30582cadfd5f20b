"""Prebuilding on a Ray cluster that is started for it on this machine: the same results, and what a kill costs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from manifests import write_manifest

from ascendopt_tune.deploy.prebuild import prebuild
from ascendopt_tune.errors import AscendOptError
from ascendopt_tune.store.cache import Cache
from ascendopt_tune.store.claim import FOLDER

pytest.importorskip("ray", reason="ray isn't installed")
PATIENCE_S = 300.0  # a machine may be busy


def start(operator: Path, rows: list[int], *more: str) -> subprocess.Popen[str]:
    manifest = write_manifest(operator.parent / "manifest.toml", operator, rows, budget=5)
    command = [sys.executable, "-m", "ascendopt_tune", "prebuild", str(manifest), "-o", str(manifest.parent / "bundle")]
    return subprocess.Popen([*command, "--json", *more], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> list[dict[str, Any]]:
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
    entries: list[dict[str, Any]] = json.loads(out)["entries"]
    return entries


def test_a_task_that_is_killed_goes_on_and_only_what_changed_is_tuned(operator: Path, own_cache: Path) -> None:
    on_ray = ("--ray", "local", "--workers", "1")
    process = start(operator, [8], *on_ray)
    victim, journal, told = worker_at_its_third_line(process, own_cache)
    os.kill(victim, signal.SIGKILL)
    seen = told
    while process.poll() is None:  # every trial it had told of stays in the journal, which the next one goes on with
        try:
            seen = journal.read_bytes()
        except FileNotFoundError:
            break
        assert seen.startswith(told)
        time.sleep(0.05)
    assert len(seen) > len(told)
    first = finish(process)
    assert [e["result"] for e in first] == ["tuned"]

    more = finish(start(operator, [8, 16], *on_ray))
    assert sorted(e["result"] for e in more) == ["cached", "tuned"]
    assert first[0] | {"result": "cached"} in more
    again = finish(start(operator, [8, 16], "--workers", "1"))
    assert [e["best_us"] for e in again] == sorted(e["best_us"] for e in more)
    assert {e["result"] for e in again} == {"cached"}


def worker_at_its_third_line(process: subprocess.Popen[str], root: Path) -> tuple[int, Path, bytes]:
    """The process that holds the case's lock, once a trial is in its journal, the journal, and what it holds."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline and process.poll() is None:
        locks = {p.stat().st_ino for p in (root / FOLDER).glob("*")}
        rows = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
        holders = [int(r[4]) for r in rows if r[1] == "FLOCK" and int(r[5].rpartition(":")[2]) in locks]
        for journal in (root / "journals").glob("*.jsonl"):
            told = journal.read_bytes()
            if holders and told.endswith(b"\n") and told.count(b"\n") >= 3:
                return holders[0], journal, told
        time.sleep(0.02)
    raise AssertionError(process.communicate())


def test_a_cluster_that_is_not_there() -> None:
    with pytest.raises(AscendOptError, match=r"Ray at 'auto' can't be reached: .*ray status"):
        list(prebuild([], Cache(), workers=1, ray_address="auto"))
