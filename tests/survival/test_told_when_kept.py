"""Nothing is told, or known in memory, before it is on the disk: failures are put where writing happens, not timed."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import tarfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from cache_examples import entry, key

from ascendopt_tune.bench import mkb, runner, scaled, stand_ins
from ascendopt_tune.bench.subject import EvaluationStore
from ascendopt_tune.calibrate import silicon
from ascendopt_tune.calibrate.measure import Measured, Measurements
from ascendopt_tune.cli import options
from ascendopt_tune.errors import CacheError, CaseError
from ascendopt_tune.files import read_plain
from ascendopt_tune.store import bundle as bundles
from ascendopt_tune.store import lines
from ascendopt_tune.store import root as roots
from ascendopt_tune.store.bundle import write_bundle
from ascendopt_tune.store.cache import Cache, CacheWarning
from ascendopt_tune.store.claim import claim
from ascendopt_tune.store.lines import LineLog, append_lines, read_lines

Patch = pytest.MonkeyPatch
FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def raising(error: BaseException) -> Callable[..., Any]:
    def call(*_: Any, **__: Any) -> Any:
        raise error

    return call


class _Half:
    """A file whose next write takes half of the bytes and then fails."""

    def __init__(self, file: Any, error: BaseException) -> None:
        self._file, self._error, self._written = file, error, False

    def write(self, data: bytes) -> int:
        if self._written:
            raise self._error
        self._written = True
        return int(self._file.write(data[: len(data) // 2]))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


# -- lines ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [FULL, KeyboardInterrupt()])
def test_half_a_line_is_not_the_beginning_of_the_next_one(tmp_path: Path, error: BaseException) -> None:
    file = tmp_path / "log.jsonl"
    with LineLog(file) as log:
        log.append("one")
        whole = log._file
        log._file = cast(Any, _Half(whole, error))
        with pytest.raises(type(error)):
            log.append("a line that is lost")
        assert read_lines(file) == [b"one"]
        log._file = whole
        log.append("two")
    assert file.read_bytes() == b"one\ntwo\n"


def test_half_a_line_that_cannot_even_be_taken_back_goes_with_the_next(tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    with LineLog(file) as log:
        log.append("one")
        whole = log._file
        half = _Half(whole, FULL)
        half.truncate = raising(FULL)  # type: ignore[attr-defined]
        log._file = cast(Any, half)
        with pytest.raises(OSError, match="No space"):
            log.append("a line that is lost")
        assert file.read_bytes() != b"one\n"
        assert read_lines(file) == [b"one"]
        log._file = whole
        log.append("two")
    assert file.read_bytes() == b"one\ntwo\n"


@pytest.mark.parametrize("error", [FULL, KeyboardInterrupt()])
def test_a_line_that_was_not_flushed_is_no_line(tmp_path: Path, monkeypatch: Patch, error: BaseException) -> None:
    with LineLog(tmp_path / "log.jsonl") as log:
        monkeypatch.setattr(lines.os, "fsync", raising(error))
        with pytest.raises(type(error)):
            log.append("one")
        assert read_lines(tmp_path / "log.jsonl") == []
        monkeypatch.undo()
        log.append("two")
    assert read_lines(tmp_path / "log.jsonl") == [b"two"]


# -- the benchmark ----------------------------------------------------------------------------------------------------


def test_an_answer_that_could_not_be_kept_is_not_known(tmp_path: Path, monkeypatch: Patch) -> None:
    store = EvaluationStore(tmp_path / "add.jsonl")
    monkeypatch.setattr(lines.os, "fsync", raising(FULL))
    with pytest.raises(CacheError, match=r"add\.jsonl: No space left on device. Free space"):
        store.ask("outcome", "pair", lambda: 1)
    monkeypatch.undo()
    assert store.known("outcome", "pair") is None
    assert store.ask("outcome", "pair", lambda: 2) == 2
    store.close()
    again = EvaluationStore(tmp_path / "add.jsonl")
    assert again.ask("outcome", "pair", lambda: 3) == 2
    again.close()


def test_a_damaged_line_of_the_benchmark_is_named(tmp_path: Path) -> None:
    for name, read in {
        "runs.jsonl": lambda: runner.read_runs(tmp_path),
        "failures.jsonl": lambda: runner.read_failures(tmp_path),
        "add.jsonl": lambda: EvaluationStore(tmp_path / "add.jsonl"),
    }.items():
        (tmp_path / name).write_text('{"operator": 1}\n')
        with pytest.raises(CacheError, match=rf"{name}, line 1 can't be read"):
            read()
    (tmp_path / "add.jsonl").unlink()
    EvaluationStore(tmp_path / "add.jsonl").close()  # the damaged one doesn't hold the file


def test_a_run_that_cannot_be_kept_says_where(tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.setattr(lines.os, "fsync", raising(FULL))
    with pytest.raises(CacheError, match=r"runs\.jsonl: No space left on device. Free space"):
        runner.keep_in(tmp_path)("runs", {})
    assert read_lines(tmp_path / "runs.jsonl") == []


@pytest.mark.parametrize(
    ("of", "record"),
    [
        (mkb.records, '{"task": "%s", "category": "math"}'),
        (scaled.records, '{"task": "%s"}'),
        (stand_ins.baselines, '{"task": "%s"}'),
    ],
)
def test_a_record_after_one_that_was_torn(tmp_path: Path, of: Callable[[Path], Any], record: str) -> None:
    """Killed while it wrote a task's line, the next run writes a line of its own, not the rest of that one."""
    file = tmp_path / "records.jsonl"
    file.write_text(record % "first" + "\n" + (record % "torn")[:9])
    assert [r.task for r in of(file)] == ["first"]
    append_lines(file, [record % "third"])
    assert [r.task for r in of(file)] == ["first", "third"]


def test_a_task_is_told_when_its_record_is_kept(tmp_path: Path, monkeypatch: Patch) -> None:
    class Worker:
        def __init__(self, *_: object) -> None: ...

        def run(self, file: Path, seconds: float) -> mkb.Record:
            return mkb.Record(file.stem, "math")

        def close(self) -> None: ...

    monkeypatch.setattr(mkb, "_Worker", Worker)
    monkeypatch.setattr(lines.os, "fsync", raising(FULL))
    told: list[mkb.Record] = []
    with pytest.raises(OSError, match="No space"):
        mkb.execute([Path("a.py")], tmp_path / "r.jsonl", jobs=1, evaluations=0, chip="", seconds=1, say=told.append)
    assert told == []
    assert list(mkb.records(tmp_path / "r.jsonl")) == []


# -- calibration ------------------------------------------------------------------------------------------------------

DEVICE = {"soc": "a", "target": "virtual", "toolkit": "t", "chip": "c"}


def test_a_measurement_that_could_not_be_kept_is_not_done(tmp_path: Path, monkeypatch: Patch) -> None:
    kept = Measurements(tmp_path / "m.jsonl", DEVICE)
    monkeypatch.setattr(lines.os, "fsync", raising(FULL))
    with pytest.raises(CaseError, match=r"m\.jsonl can't be read or written: No space left on device. Free"):
        kept.add(Measured("one", "digest", 1.0, 0.1, 3))
    assert kept.done == {}
    monkeypatch.undo()
    assert Measurements(tmp_path / "m.jsonl", DEVICE).done == {}


def test_two_that_begin_to_measure_at_once(tmp_path: Path, monkeypatch: Patch) -> None:
    """The second finds the first line that the first has written meanwhile, and writes none."""
    file, opened = tmp_path / "m.jsonl", lines.hold

    def meanwhile(descriptor: int, wait: bool) -> None:
        if not file.read_bytes():
            file.write_text(json.dumps({"device": DEVICE}) + "\n")
        opened(descriptor, wait)

    monkeypatch.setattr(lines, "hold", meanwhile)
    Measurements(file, DEVICE).add(Measured("one", "digest", 1.0, 0.1, 3))
    assert set(Measurements(file, DEVICE).done) == {"one"}


def test_a_step_of_the_silicon_check_is_kept_for_its_own_words(tmp_path: Path, monkeypatch: Patch) -> None:
    """Another check in the same folder, a reduced one before the whole one, doesn't answer for it."""
    runs: list[object] = []

    def run(command: list[str], **_: object) -> Any:
        runs.append(command)
        return silicon.subprocess.CompletedProcess(command, 0, f'{{"run": {len(runs)}}}', "")

    monkeypatch.setattr(silicon.subprocess, "run", run)
    reduced, whole = silicon.CheckStep("calibrate", ("a", "--reduced")), silicon.CheckStep("calibrate", ("a",))
    for step, expected in ((reduced, 1), (reduced, 1), (whole, 2), (whole, 2)):
        done = silicon.run(step, tmp_path)
        assert (done.document, len(runs)) == ({"run": expected}, expected)
    (tmp_path / "calibrate.json").write_text('{"torn')
    assert silicon.run(whole, tmp_path).document == {"run": 3}


def test_the_bundle_of_a_silicon_check_is_whole_or_as_it_was(tmp_path: Path, monkeypatch: Patch) -> None:
    (tmp_path / "check").mkdir()
    (tmp_path / "check" / "a.json").write_text("{}")
    archive = tmp_path / "check.tar.gz"
    silicon.bundle(tmp_path / "check", archive)
    before = archive.read_bytes()
    monkeypatch.setattr(tarfile.TarFile, "add", raising(FULL))
    with pytest.raises(OSError, match="No space"):
        silicon.bundle(tmp_path / "check", archive)
    assert archive.read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["check", "check.tar.gz"]


# -- the store, where two folders can't be swapped in one step (NFS) ---------------------------------------------------


@pytest.fixture
def without_exchange(monkeypatch: Patch) -> None:
    monkeypatch.setattr(roots, "_exchange", lambda one, other: False)


@pytest.mark.usefixtures("without_exchange")
@pytest.mark.parametrize("error", [FULL, KeyboardInterrupt()])
def test_a_result_that_cannot_be_replaced_stays(tmp_path: Path, monkeypatch: Patch, error: BaseException) -> None:
    cache = Cache(tmp_path / "root", ())
    cache.put(entry(key(8), 5.0))
    rename, calls = os.rename, list[object]()

    def second_fails(*args: Any) -> None:
        calls.append(args)
        if len(calls) == 2:
            raise error
        rename(*args)

    monkeypatch.setattr(roots.os, "rename", second_fails)
    with pytest.raises(CacheError if error is FULL else KeyboardInterrupt):
        cache.put(entry(key(8), 3.0))
    assert len(calls) == 3
    found = cache.get(key(8))
    assert found is not None
    assert found.best.task_duration_us == 5.0
    assert cache.put(entry(key(8), 3.0))
    assert list((tmp_path / "root" / "tmp").iterdir()) == []
    cache.close()


class _Killed(BaseException):
    pass


@pytest.mark.usefixtures("without_exchange")
@pytest.mark.parametrize(("later", "served"), [(9.0, 5.0), (3.0, 3.0)])
def test_a_writer_that_dies_between_the_two_steps(
    tmp_path: Path, monkeypatch: Patch, later: float, served: float
) -> None:
    """The next writer gives the old result its name again before it decides whether its own is better."""
    cache = Cache(tmp_path / "root", ())
    cache.put(entry(key(8), 5.0))
    rename, calls = os.rename, list[object]()

    def dies(*args: Any) -> None:
        calls.append(args)
        if len(calls) > 1:
            raise _Killed
        rename(*args)

    monkeypatch.setattr(roots.os, "rename", dies)
    with pytest.raises(_Killed):
        cache.put(entry(key(8), 4.0))
    monkeypatch.undo()
    monkeypatch.setattr(roots, "_exchange", lambda one, other: False)
    assert cache.get(key(8)) is None
    assert cache.put(entry(key(8), later)) == (later < 5.0)
    found = cache.get(key(8))
    assert found is not None
    assert found.best.task_duration_us == served
    cache.remove(tmp_path / "root" / "entries" / "add" / key(8).hash)
    cache.close()


def test_what_a_manifest_names_is_flushed_before_it(tmp_path: Path, monkeypatch: Patch) -> None:
    cache = Cache(tmp_path / "root", ())
    cache.put(entry(key(8), 5.0))
    (folder,) = (tmp_path / "root" / "entries").glob("*/*")
    flushed, sync = list[str](), roots.sync

    def note(path: Path) -> None:
        flushed.append(path.name)
        sync(path)

    write = bundles.write_whole

    def manifest(path: Path, *rest: Any, **how: Any) -> None:
        flushed.append(path.name)
        write(path, *rest, **how)

    monkeypatch.setattr(roots, "sync", note)
    monkeypatch.setattr(bundles, "sync", note)
    monkeypatch.setattr(bundles, "write_whole", manifest)
    write_bundle(tmp_path / "bundle", [folder])
    names = {p.name for p in folder.rglob("*") if p.is_file()}
    assert names < set(flushed[: flushed.index("bundle.json")])
    assert flushed[-2:] == [folder.parent.name, "bundle.json"]
    cache.close()


# -- a file system without locks ---------------------------------------------------------------------------------------


@pytest.fixture
def without_locks(monkeypatch: Patch) -> None:
    monkeypatch.setattr(fcntl, "flock", raising(OSError(errno.ENOLCK, "No locks available")))


@pytest.mark.usefixtures("without_locks")
def test_a_file_system_without_locks_is_named(own_cache: Path) -> None:
    """Before anything is compiled, and wherever a lock is needed; one who can't lock alone is not kept from tuning."""
    with pytest.raises(CacheError, match=r"its file system gives no locks \(No locks available\)\. .*ASCENDOPT_CACHE"):
        options.check_cache_folder()
    cache = Cache(own_cache, ())
    with pytest.raises(CacheError, match="gives no locks"):
        cache.put(entry(key(8)))
    with warnings.catch_warnings():
        warnings.simplefilter("error", CacheWarning)
        assert cache.get(key(8)) is None
    with claim(own_cache, "case", wait=True) as mine:
        assert mine
    with pytest.raises(OSError, match="gives no locks"):
        append_lines(own_cache / "log.jsonl", ["one"])
    cache.close()


def test_a_folder_in_the_place_of_a_file_is_named_and_leaves_nothing_open(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    before = os.listdir("/proc/self/fd")
    for place in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(OSError, match="it is no plain file") as raised:
            read_plain(place, 10)
        assert raised.value.filename == str(place)
    assert os.listdir("/proc/self/fd") == before
