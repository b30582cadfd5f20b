"""The cache under many processes, and under processes that die."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cache_examples import entry, key

from ascendopt_tune.store import root as root_module
from ascendopt_tune.store.cache import Cache

HERE = Path(__file__).parent
WRITER = """
import sys
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from cache_examples import entry, key
from ascendopt_tune.store.cache import Cache
cache = Cache(Path(sys.argv[1]), layers=())
print("ready", flush=True)
for i in range(1_000_000):
    cache.put(entry(key(i % 3 + 1), best_us=1e6 - i))
    print(i % 3 + 1, 1e6 - i, flush=True)
"""


def start_writer(root: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(root), str(HERE)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=HERE.parents[1])


def test_a_writer_that_is_killed_leaves_a_sound_cache(tmp_path: Path) -> None:
    """Killed at 10 random moments: what it announced is there and whole, and nothing half-written is."""
    rng = random.Random(0)
    root = tmp_path / "root"
    process = start_writer(root)
    for round_ in range(10):
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(rng.uniform(0.0, 0.05))
        process.send_signal(signal.SIGKILL)
        announced = process.stdout.read().splitlines()
        process.wait()
        process.stdout.close()
        process = start_writer(root) if round_ < 9 else process
        cache = Cache(root, layers=())
        for line in announced:
            if len(words := line.split()) == 2:
                found = cache.get(key(int(words[0])))
                assert found is not None
                assert found.best.task_duration_us <= float(words[1])
        for summary in cache.items():
            assert cache.get(summary.key) is not None
        assert cache.counters.quarantined == 0
        cache.close()
    cache = Cache(root, layers=())
    assert cache.put(entry(key(9)))
    assert cache.rebuild() == len(list(cache.items()))


def test_leftovers_are_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = Cache(tmp_path, layers=())
    cache.put(entry(key(1)))
    old, new = tmp_path / "tmp" / "old", tmp_path / "tmp" / "new"
    for folder in (old, new):
        folder.mkdir()
        (folder / "kernel.bin").write_bytes(b"half")
    os.utime(old, (time.time() - 2 * root_module.STALE_S,) * 2)
    cache.put(entry(key(2)))
    assert not old.exists()
    assert new.exists()


def hammer(root: str, seed: int) -> tuple[int, int]:
    rng = random.Random(seed)
    cache = Cache(Path(root), layers=())
    damaged = 0
    for _ in range(60):
        rows = rng.randint(1, 4)
        action = rng.choice(["put", "put", "get", "find", "items"])
        if action == "put":
            cache.put(entry(key(rows), best_us=rng.uniform(1, 100), binary=rng.randbytes(20_000)))
        elif action == "items":
            assert all(1 <= s.best_us <= 100 for s in cache.items("add"))
        else:
            found = getattr(cache, action)(key(rows))
            assert found is None or found.key == key(rows)
        damaged += cache.counters.quarantined
    cache.close()
    return damaged, cache.counters.hits


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_concurrent_writers_and_readers(tmp_path: Path, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(HERE), str(HERE.parents[1])]))
    with multiprocessing.get_context(method).Pool(4) as pool:
        results = pool.starmap(hammer, [(str(tmp_path), seed) for seed in range(4)])
    assert all(damaged == 0 for damaged, _ in results)
    assert sum(hits for _, hits in results) > 0
    cache = Cache(tmp_path, layers=())
    assert {s.key for s in cache.items()} == {key(rows) for rows in range(1, 5)}
    assert cache.rebuild() == 4
    assert not (tmp_path / "quarantine").exists()


def test_a_fork_does_not_keep_the_lock(tmp_path: Path) -> None:
    """Another thread forks while the lock is held: it is free at the end of the block, not with the child."""
    cache = Cache(tmp_path, layers=())
    with cache._own.lock():
        forked = os.fork()
        if forked == 0:
            time.sleep(600)
            os._exit(0)
    try:
        writer = multiprocessing.get_context("fork").Process(target=lambda: cache.put(entry(key(1))))
        writer.start()
        writer.join(60)
        assert writer.exitcode == 0
    finally:
        os.kill(forked, signal.SIGKILL)
        os.waitpid(forked, 0)


def test_one_cache_object_survives_a_fork(tmp_path: Path) -> None:
    cache = Cache(tmp_path, layers=())
    cache.put(entry(key(1)))
    child = multiprocessing.get_context("fork").Process(target=lambda: cache.put(entry(key(2))))
    child.start()
    child.join()
    assert child.exitcode == 0
    assert cache.find(key(2)) == entry(key(2))
    assert len(list(cache.items())) == 2
