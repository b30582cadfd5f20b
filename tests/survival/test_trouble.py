"""Full disks, set clocks, damaged indexes, denied permissions: an error in words or a miss, never a wrong answer."""

from __future__ import annotations

import errno
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from cache_examples import entry, key

from ascendopt_tune.deploy import upkeep
from ascendopt_tune.errors import CacheError
from ascendopt_tune.search.journal import Journal, read_journal
from ascendopt_tune.store import cache as cache_module
from ascendopt_tune.store import lines
from ascendopt_tune.store.bundle import open_bundle, write_bundle
from ascendopt_tune.store.cache import Cache, CacheWarning
from ascendopt_tune.store.scratch import Scratch

YEARS_S = 10 * 365 * 86400.0
PLACES = [(os, "fsync"), (os, "rename"), (os, "chmod"), (os, "open"), (tempfile, "mkdtemp"), (Path, "mkdir")]


@contextmanager
def full(after: int, number: int = errno.ENOSPC) -> Iterator[list[str]]:
    """Every call that writes fails with this error but the first ``after`` of them; yields what failed."""
    failed: list[str] = []
    calls = 0

    def failing(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls > after:
                failed.append(name)
                raise OSError(number, os.strerror(number))
            return original(*args, **kwargs)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for place, name in PLACES:
            patch.setattr(place, name, failing(name, getattr(place, name)))
        yield failed


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_a_put_that_fails_anywhere(tmp_path: Path, number: int) -> None:
    """At every call that can fail: an error that names the folder, and the old or the new result, whole."""
    root = tmp_path / "root"
    Cache(root, ()).put(entry(key(1), 9.0))
    places = set()
    for after in range(100):
        cache, said = Cache(root, ()), ""
        with full(after, number) as failed, warnings.catch_warnings():
            warnings.simplefilter("ignore", CacheWarning)  # stored, but the index can't be told
            try:
                stored = cache.put(entry(key(1), 5.0))
            except CacheError as error:
                stored, said = False, str(error)
        assert stored or (str(root) in said and os.strerror(number) in said)
        found = Cache(root, ()).get(key(1))
        assert found in ((entry(key(1), 5.0),) if stored else (entry(key(1), 9.0), entry(key(1), 5.0)))
        assert [s.best_us for s in Cache(root, ()).items()] == [found.best.task_duration_us]
        assert "open" in failed or list((root / "tmp").iterdir()) == []  # without open nothing can be removed either
        assert list(upkeep.verify(Cache(root, ()))) == []
        places |= set(failed)
        if not failed:
            break
        shutil.rmtree(root)
        Cache(root, ()).put(entry(key(1), 9.0))
    assert not failed
    assert places >= {"fsync", "open", "mkdtemp"}


def no_space(descriptor: int) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_journal_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "journals" / "run.jsonl"
    with Journal(path, {"run": 1}) as log:
        log.fact("told", lambda: [1])
        with monkeypatch.context() as patch:
            patch.setattr(lines.os, "fsync", no_space)
            with pytest.raises(CacheError, match=r"can't write .*No space left"):
                log.fact("more", lambda: "x" * 100_000)
    with open(path, "ab") as file:
        file.write(b'{"torn": ')
    with Journal(path, {"run": 1}) as log:
        assert log.recorded.facts["told"] == [1]
        log.fact("after", lambda: 2)
    assert read_journal(path).facts["after"] == 2
    with pytest.raises(CacheError, match=r"can't write the journal .*Is a directory"):
        Journal(tmp_path, {})


@pytest.mark.parametrize("step", [YEARS_S, -YEARS_S], ids=["set back", "set forward"])
def test_a_clock_that_is_set(tmp_path: Path, step: float) -> None:
    """Every file is from the future, or from long ago: nothing is wrong, nothing stays."""
    root = tmp_path / "root"
    cache = Cache(root, ())
    cache.put(entry(key(1), 9.0))
    assert cache.find(key(1)) is not None
    (root / "tmp" / "left").mkdir()
    (root / "journals").mkdir()
    (root / "journals" / "run.jsonl").write_text("")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    left = Path(tempfile.mkdtemp(prefix="ascendopt-evaluation-", dir=scratch))
    for path in (*tmp_path.rglob("*"), left):
        os.utime(path, (time.time() + step,) * 2)
    assert cache.find(key(1)) == entry(key(1), 9.0)
    assert "left by a writer that died" in {g.reason for g in upkeep.garbage(cache, toolkits=["vnpu-1"])}
    assert all("entries" not in g.path.parts for g in upkeep.garbage(cache, toolkits=["vnpu-1"]))
    assert cache.put(entry(key(1), 5.0))
    assert cache.put(entry(key(2)))
    assert cache.find(key(1)) == entry(key(1), 5.0)
    assert cache.find(key(2)) == entry(key(2))
    assert sorted(s.best_us for s in cache.items()) == [5.0, 5.0]
    assert list((root / "tmp").iterdir()) == []
    assert list(upkeep.verify(cache)) == []
    with (
        Scratch(prefix="ascendopt-evaluation-", parent=scratch) as mine,
        Scratch(prefix="ascendopt-evaluation-", parent=scratch),
    ):
        assert not left.exists()
        os.utime(mine, (time.time() + step,) * 2)
        Scratch(prefix="ascendopt-evaluation-", parent=scratch).close()
        assert mine.exists(), "its owner lives"
        os.utime(mine)


DAMAGES: dict[str, Callable[[Path], object]] = {
    **{f"cut to {n}/8": lambda p, n=n: os.truncate(p, p.stat().st_size * n // 8) for n in range(8)},
    "text": lambda p: p.write_text("this is no database\n" * 500),
    "zeros": lambda p: p.write_bytes(bytes(p.stat().st_size)),
    "a folder": lambda p: (p.unlink(), p.mkdir()),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_index(tmp_path: Path, damage: str) -> None:
    root = tmp_path / "root"
    cache = Cache(root, ())
    for rows in range(1, 20):
        cache.put(entry(key(rows)))
    cache.close()
    DAMAGES[damage](root / "index" / "cache.db")
    for name in ("cache.db-wal", "cache.db-shm"):
        (root / "index" / name).unlink(missing_ok=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CacheWarning)
        for each in (cache, Cache(root, ())):
            assert {s.key for s in each.items()} == {key(rows) for rows in range(1, 20)}
            assert each.find(key(7)) == entry(key(7))
        assert cache.put(entry(key(20)))
        assert Cache(root, ()).find(key(20)) == entry(key(20))
    assert Cache(root, ()).rebuild() == 20
    assert len(list(Cache(root, ()).items())) == 20


def test_a_writer_that_dies_before_the_index_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = Cache(tmp_path, ())
    cache.put(entry(key(1), 9.0))
    monkeypatch.setattr(cache_module.Cache, "_announce", lambda self, folder: None)
    cache.put(entry(key(1), 5.0))
    assert [s.best_us for s in cache.items()] == [5.0]


def test_a_folder_that_is_deleted_while_in_use(tmp_path: Path) -> None:
    root = tmp_path / "root"
    cache = Cache(root, ())
    for _ in range(3):
        cache.put(entry(key(1)))  # no warning: the index is opened anew
        assert cache.find(key(1)) == entry(key(1))
        shutil.rmtree(root)
        assert cache.find(key(1)) is None
        assert list(cache.items()) == []


def test_permission_denied(tmp_path: Path) -> None:
    """Another user's folder: lookups miss, writing says why. Root drops its rights for that."""
    root = tmp_path / "root"
    Cache(root, ()).put(entry(key(1)))

    def other_user() -> None:
        if os.geteuid() == 0:
            os.setuid(65534)
        else:
            root.chmod(0)
        cache = Cache(root, ())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CacheWarning)
            assert cache.get(key(1)) is None
            assert cache.find(key(1)) is None
            assert list(cache.items()) == []
        for write in (lambda: cache.put(entry(key(2))), cache.rebuild):
            with pytest.raises(CacheError, match="Permission denied"):
                write()
        (finding,) = upkeep.verify(cache)
        assert "Permission denied" in finding.problem

    process = multiprocessing.get_context("fork").Process(target=other_user)
    process.start()
    process.join()
    if os.geteuid() != 0:
        root.chmod(0o755)
    assert process.exitcode == 0


@pytest.mark.parametrize("trouble", ["a file in its place", "a damaged index"])
def test_the_command_line_says_it_in_words(tmp_path: Path, trouble: str) -> None:
    root = tmp_path / "root"
    Cache(root, ()).put(entry(key(1)))
    expect = 0
    command = ["cache", "list"]
    if trouble == "a file in its place":
        shutil.rmtree(root)
        root.write_text("")
        command, expect = ["cache", "merge", str(tmp_path / "other")], 2
        Cache(tmp_path / "other", ()).put(entry(key(1)))
    else:
        (root / "index" / "cache.db").write_text("no database")
    env = {**os.environ, "ASCENDOPT_CACHE_DIR": str(root)}
    done = subprocess.run(
        [sys.executable, "-m", "ascendopt_tune", *command], capture_output=True, text=True, check=False, env=env
    )
    assert done.returncode == expect, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert expect == 0 or "error: " in done.stderr


# -- layers ------------------------------------------------------------------------------------------------------------


def layer(folder: Path, store: Path, best_us: float) -> str:
    """A bundle of one result; its digest."""
    cache = Cache(store, ())
    cache.put(entry(key(1), best_us))
    return write_bundle(folder, [s.folder for s in cache.items()]).digest


def test_a_layer_that_is_replaced_and_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The old one until it is gone, then the new one if it is trusted, then nothing; never a mixture."""
    place, new, foreign = tmp_path / "layer", tmp_path / "new", tmp_path / "foreign"
    digests = [layer(place, tmp_path / "a", 9.0), layer(new, tmp_path / "b", 5.0)]
    layer(foreign, tmp_path / "c", 3.0)
    monkeypatch.setenv("ASCENDOPT_TRUST", ",".join(f"sha256:{d}" for d in digests))
    cache = Cache(tmp_path / "root", [place])
    assert cache.find(key(1)) == entry(key(1), 9.0)
    place.rename(tmp_path / "old")
    new.rename(place)
    with pytest.warns(CacheWarning, match="is altered"):
        assert cache.find(key(1)) is None
    assert cache.find(key(1)) == entry(key(1), 5.0)
    place.rename(tmp_path / "older")
    foreign.rename(place)
    with pytest.warns(CacheWarning, match="is altered"):
        assert cache.find(key(1)) is None
    with pytest.warns(CacheWarning, match="not trusted"):
        assert cache.find(key(1)) is None
    removed = Cache(tmp_path / "root", [tmp_path / "old"])
    assert removed.find(key(1)) == entry(key(1), 9.0)
    shutil.rmtree(tmp_path / "old")
    assert removed.find(key(1)) is None
    assert removed.get(key(1)) is None


def test_a_layer_is_only_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "layer"
    monkeypatch.setenv("ASCENDOPT_TRUST", f"sha256:{layer(place, tmp_path / 'a', 9.0)}")
    before = {p: p.stat().st_mtime_ns for p in place.rglob("*")}
    for path in (place, *place.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    cache = Cache(tmp_path / "root", [place])
    assert cache.find(key(1)) == entry(key(1), 9.0)
    assert cache.put(entry(key(1), 5.0))
    assert cache.find(key(1)) == entry(key(1), 5.0)
    assert list(upkeep.verify(cache)) == []
    assert {p: p.stat().st_mtime_ns for p in place.rglob("*")} == before
    assert len(open_bundle(place)) == 1
    for path in (place, *place.rglob("*")):
        path.chmod(0o755)
