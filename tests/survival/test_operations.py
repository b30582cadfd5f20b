"""Many processes at one store, every operation at random; whatever is answered is right, and what is left is sound."""

from __future__ import annotations

import multiprocessing
import os
import random
import time
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
from cache_examples import entry, key

from ascendopt_tune.deploy import upkeep
from ascendopt_tune.store.cache import Cache, CacheWarning, Key

_KEYS = 12
_WEIGHTS = {
    "put": 20,
    "get": 35,
    "find": 25,
    "items": 8,
    "quarantine": 4,
    "remove": 4,
    "gc": 2,
    "rebuild": 1,
    "reopen": 1,
}


def _key(number: int) -> Key:
    return key(number + 1, name=f"op{number % 3}")


def _time_of(number: int, rng: random.Random) -> float:
    """Times that tell the key: an entry that answers for another one is noticed."""
    return 1.0 + number + rng.randrange(1000) / 1001


def work(root: str, seed: int, operations: int) -> Counter[str]:
    """Random operations; what they did, by name. Any warning is an error: nobody damages anything."""
    rng = random.Random(seed)
    cache = Cache(Path(root), layers=())
    counts: Counter[str] = Counter()
    warnings.simplefilter("error", CacheWarning)
    for _ in range(operations):
        (name,) = rng.choices(list(_WEIGHTS), list(_WEIGHTS.values()))
        number = rng.randrange(_KEYS)
        wanted = _key(number)
        counts[name] += 1
        if name == "put":
            cache.put(entry(wanted, _time_of(number, rng), rng.randbytes(500)))
        elif name in ("get", "find"):
            found = cache.get(wanted) if name == "get" else cache.find(wanted)
            counts["hits"] += found is not None
            if found is not None:
                assert found.key == wanted
                assert number + 1 <= found.best.task_duration_us < number + 2
        elif name == "items":
            for summary in cache.items(wanted.operator if rng.random() < 0.5 else None):
                assert summary.best_us // 1 == summary.case.inputs[0].shape[0]  # type: ignore[union-attr]
        elif name == "quarantine":
            assert not cache.quarantine(cache._folder(cache.root, wanted))
        elif name == "remove":
            cache.remove(cache._folder(cache.root, wanted))
        elif name == "gc":
            unused = rng.choice([["vnpu-1"], ["vnpu-1"], ["another"]])
            for item in upkeep.garbage(cache, toolkits=unused):
                upkeep.remove(cache, item)
        elif name == "rebuild":
            cache.rebuild()
        else:
            cache.close()
            cache = Cache(Path(root), layers=())
    assert cache.counters.quarantined == 0
    cache.close()
    return counts


def run(root: Path, operations: int, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    here = Path(__file__)
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join(map(str, (here.parent, here.parents[1] / "unit", here.parents[2])))
    )
    with ProcessPoolExecutor(8, multiprocessing.get_context("spawn")) as pool:  # a worker that dies is an error
        jobs = [pool.submit(work, str(root), seed, operations) for seed in range(8)]
    done = sum((job.result() for job in jobs), Counter[str]())
    cache = Cache(root, layers=())
    assert list(upkeep.verify(cache)) == []
    assert not (root / "quarantine").exists()
    assert list((root / "tmp").iterdir()) == []
    listed = list(cache.items())
    for summary in listed:
        found = cache.get(summary.key)
        assert found is not None
        assert found.best.task_duration_us == summary.best_us
    assert cache.rebuild() == len(listed)
    return done


def test_eight_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = run(tmp_path / "root", 200, monkeypatch)
    assert done["hits"] > 100
    assert all(done[name] for name in _WEIGHTS)


@pytest.mark.battery
def test_eight_processes_ten_thousand_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    began = time.monotonic()
    done = run(tmp_path / "root", 10_000, monkeypatch)
    print(f"{sum(done[name] for name in _WEIGHTS)} operations in {time.monotonic() - began:.0f} s: {dict(done)}")
    assert sum(done[name] for name in _WEIGHTS) == 80_000
