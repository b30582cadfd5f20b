"""kill -9 at random moments, of the tuner, of its evaluation server and all it forked, and of a prebuild's workers.

No trial that was announced is lost, the store is sound, nothing goes on running, no temporary folder stays, and the
run that goes on comes to the result of the one that was left alone. ``make survival-battery`` kills 200 times.
"""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from killing import Battle
from manifests import write_manifest

from ascendopt_tune.store.cache import Cache


def tuning(operator: Path, root: Path, seed: int, prepared: Path | None = None) -> Battle:
    call = ["--input", "x=float32[8,32]", "--input", "y=float32[8,32]", "--target", "virtual"]
    command = ["tune", str(operator), *call, "--budget", "6", "--seed", "3", "--resume", "--json"]

    def result(record: dict[str, Any]) -> dict[str, Any]:
        trials = [(t["change"], t["outcome"], t.get("profile")) for t in record["history"]]
        # When it was killed between storing and printing, the cache answers, without a history.
        return {"best": record["best"], "changes": record["changes"], "trials": trials or None}

    return Battle(root, command, result, random.Random(seed), prepared)


def prebuilding(
    operator: Path, root: Path, seed: int, prepared: Path | None = None, rows: Sequence[int] = (8, 16, 24)
) -> Battle:
    root.mkdir()
    manifest = write_manifest(root / "manifest.toml", operator, rows, budget=3)
    command = ["prebuild", str(manifest), "-o", str(root / "bundle"), "--workers", "2", "--json"]

    def result(document: dict[str, Any]) -> dict[str, Any]:
        return {"times": sorted((e["case"], e["result"] != "failed", e["best_us"]) for e in document["entries"])}

    return Battle(root, command, result, random.Random(seed), prepared)


def test_killed_four_times(operator: Path, tmp_path: Path) -> None:
    """The share of the battery that every test run has."""
    battle = tuning(operator, tmp_path / "tune", 1)
    battle.fight(3)
    other = prebuilding(operator, tmp_path / "prebuild", 2, battle.cache / "build", rows=(8, 16))
    other.fight(1)
    for each in (battle, other):
        assert each.counts["same result"] >= 1


@pytest.mark.battery
@pytest.mark.parametrize("seed", range(10))
def test_tuning_is_killed_fourteen_times(operator: Path, tmp_path: Path, seed: int) -> None:
    battle = tuning(operator, tmp_path / "tune", 100 + seed)
    battle.fight(14)
    print(f"seed {seed}: {dict(battle.counts)}")
    assert battle.counts["same result"] >= 1
    check_on_the_command_line(battle)


@pytest.mark.battery
@pytest.mark.parametrize("seed", range(10))
def test_prebuilding_is_killed_six_times(operator: Path, tmp_path: Path, seed: int) -> None:
    battle = prebuilding(operator, tmp_path / "prebuild", 200 + seed)
    battle.fight(6)
    print(f"seed {seed}: {dict(battle.counts)}")
    assert battle.counts["same result"] >= 1
    check_on_the_command_line(battle)


def check_on_the_command_line(battle: Battle) -> None:
    command = [sys.executable, "-m", "ascendopt_tune", "cache", "verify"]
    env = {"PATH": "/usr/bin:/bin", "ASCENDOPT_CACHE_DIR": str(battle.cache)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    assert Cache(battle.cache, ()).rebuild() == len(list(Cache(battle.cache, ()).items()))
