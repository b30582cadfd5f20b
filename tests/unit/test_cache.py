"""The cache: keys, round trips, layers, damage, explanations, errors."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import pickle
import shutil
import sqlite3
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
from cache_examples import PAIR, SIGNATURE, case, cases, entries, entry, key, operator
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings

from ascendopt_tune.errors import CacheError
from ascendopt_tune.nouns.case import Case
from ascendopt_tune.nouns.clocks import Interval
from ascendopt_tune.nouns.operator import DirectLaunch, Pair
from ascendopt_tune.store import root as root_module
from ascendopt_tune.store.cache import Cache, CacheWarning, Entry, Key
from ascendopt_tune.store.entry import canonical

SLOW_DISK = hypothesis_settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


def folder_of(cache: Cache, of: Key) -> Path:
    return cache._folder(cache.root, of)


def files_below(folder: Path) -> set[str]:
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "root", layers=())


# -- keys --------------------------------------------------------------------------------------------------------------


@given(cases)
def test_key_round_trips(made: Case) -> None:
    one = Key.of(operator(), made, chip="c", target="npu", toolkit="t")
    again = Key.from_json(json.loads(canonical(one.to_json())))
    assert (again, again.hash, again.call) == (one, one.hash, one.call)


def test_every_part_of_the_key_counts(tmp_path: Path) -> None:
    (tmp_path / "shared.h").write_text("int a;")
    base = operator()

    def of(op: Any = base, c: Case | None = None, chip: str = "a", target: str = "virtual", toolkit: str = "t") -> str:
        return Key.of(op, c or case(), chip=chip, target=target, toolkit=toolkit).hash

    def changed(**fields: Any) -> Any:
        return dataclasses.replace(base, **fields)

    hashes = [
        of(),
        of(operator("other")),
        of(operator(pair=PAIR.with_kernel("op_kernel/add.cpp", "// other\n"))),
        of(operator(pair=PAIR.with_tiling("op_host/add.cpp", "int t;"))),
        of(c=case(1025)),
        of(c=case(dtype="float32")),
        of(c=case(eps=1.0)),
        of(c=case(eps=float("inf"))),
        of(c=dataclasses.replace(case(), outputs=())),
        of(chip="b"),
        of(target="npu"),
        of(toolkit="u"),
        of(changed(kernel_options=("-DN=1",))),
        of(changed(entry="other")),
        of(changed(direct=DirectLaunch(8))),
        of(changed(direct=DirectLaunch(9))),
        of(changed(direct=DirectLaunch(8, (("N", "1"),)))),
        of(changed(kernel_include_dirs=(tmp_path,))),
    ]
    (tmp_path / "shared.h").write_text("int b;")
    hashes.append(of(changed(kernel_include_dirs=(tmp_path,))))
    assert len(set(hashes)) == len(hashes)


def test_the_operators_place_does_not_count() -> None:
    moved = dataclasses.replace(operator(), root=Path("/elsewhere"), settings={"torch_op": "x"})
    assert Key.of(moved, case(), chip="a", target="npu", toolkit="t") == Key.of(
        operator(), case(), chip="a", target="npu", toolkit="t"
    )


def test_call_leaves_out_the_outputs_only() -> None:
    full = key()
    without = Key.of(
        operator(), dataclasses.replace(case(), outputs=()), chip="ascend910b2", target="virtual", toolkit="vnpu-1"
    )
    assert full.call == without.call != key(1025).call
    assert full.hash != without.hash


# -- round trips -------------------------------------------------------------------------------------------------------


@given(entries())
@SLOW_DISK
def test_an_entry_round_trips(tmp_path_factory: pytest.TempPathFactory, made: Entry) -> None:
    cache = Cache(tmp_path_factory.mktemp("root"), layers=())
    assert cache.get(made.key) is None
    assert cache.put(made)
    assert cache.get(made.key) == made
    assert cache.find(made.key) == made
    assert (cache.counters.hits, cache.counters.misses, cache.counters.quarantined) == (2, 1, 0)


def test_layout_and_readable_json(cache: Cache) -> None:
    made = entry()
    cache.put(made)
    folder = cache.root / "entries" / "add" / made.key.hash
    assert files_below(folder) == {
        "entry.json",
        "kernel.bin",
        "tiling.bin",
        "tiling/op_host/add.cpp",
        "tiling/op_host/add_tiling.h",
        "kernel/op_kernel/add.cpp",
    }
    document = json.loads((folder / "entry.json").read_text())
    assert document["speedup"] == 2.0
    assert document["key"]["case"]["inputs"] == ["float16[1024,64]", None]
    assert document["provenance"]["outcomes"] == {"Timed": 10, "Hazard": 2}
    assert (folder / "kernel/op_kernel/add.cpp").read_text() == "// é\n"
    assert set(document["files"]) == files_below(folder) - {"entry.json"}


def test_improved_and_speedup() -> None:
    assert entry().improved
    assert entry().speedup == 2.0
    assert not dataclasses.replace(entry(), pair=PAIR).improved


def test_a_listing_tells_the_interval_where_there_is_one(cache: Cache) -> None:
    made = entry()
    cache.put(made)
    cache.put(dataclasses.replace(entry(key(7)), interval=Interval(1.5, 2.5, 1.0)))
    by_rows = {s.case: s for s in cache.items()}
    assert by_rows[case(7)].speedup_text == "2.00x (1.50 to 2.50 over plausible clocks)"
    assert by_rows[case()].speedup_text == "2.00x"
    document = json.loads(made.to_files()["entry.json"])
    assert not {"speedup_low", "speedup_high", "wins"} & document.keys(), "as entries were before there were intervals"
    assert cache.get(made.key) == made


def test_the_faster_of_two_stays(cache: Cache) -> None:
    assert cache.put(entry(best_us=5.0))
    assert not cache.put(entry(best_us=6.0))
    assert not cache.put(entry(best_us=5.0))
    found = cache.get(key())
    assert found is not None
    assert found.best.task_duration_us == 5.0
    assert cache.put(entry(best_us=4.0))
    assert cache.get(key()) == entry(best_us=4.0)
    assert [s.best_us for s in cache.items()] == [4.0]
    assert not any((cache.root / "tmp").iterdir())


def test_a_faster_one_that_was_judged_by_something_else_goes(cache: Cache) -> None:
    def judged(best_us: float, by: str) -> Entry:
        made = entry(best_us=best_us)
        return dataclasses.replace(made, provenance=dataclasses.replace(made.provenance, specification=by))

    assert cache.put(judged(4.0, "a"))
    assert cache.put(judged(5.0, "b"))
    assert cache.get(key()) == judged(5.0, "b")
    assert not cache.put(judged(6.0, "b"))
    assert cache.put(judged(3.0, "")), "an older version's"
    assert not cache.put(judged(6.0, "b"))


def test_replacing_without_an_atomic_exchange(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(root_module, "_exchange", lambda one, other: False)
    for best_us in (5.0, 4.0):
        assert cache.put(entry(best_us=best_us))
        assert cache.get(key()) == entry(best_us=best_us)
    assert not (folder_of(cache, key()) / "replaced").exists()
    assert not any((cache.root / "tmp").iterdir())


def test_a_path_that_leaves_the_folder_is_refused(cache: Cache) -> None:
    for path in ("../x.cpp", "/etc/x.cpp", "a/../../x.cpp"):
        bad = dataclasses.replace(entry(), pair=Pair({path: ""}, {}))
        with pytest.raises(CacheError, match="leaves the entry's folder"):
            cache.put(bad)
    assert not cache.root.exists()


# -- find, items, layers -----------------------------------------------------------------------------------------------


def test_find_does_not_need_the_outputs(cache: Cache) -> None:
    cache.put(entry())
    asked = dataclasses.replace(key(), case=canonical({**json.loads(key().case), "outputs": []}))
    assert cache.get(asked) is None
    assert cache.find(asked) == entry()
    assert cache.find(key(7)) is None


def test_find_declines_when_outputs_are_ambiguous(cache: Cache) -> None:
    other = dataclasses.replace(key(), case=canonical({**json.loads(key().case), "outputs": ["float16[1]"]}))
    cache.put(entry())
    cache.put(entry(other))
    assert cache.find(key()) is None
    assert cache.get(key()) == entry()


def test_find_sees_what_another_process_puts(cache: Cache) -> None:
    assert cache.find(key()) is None
    other = Cache(cache.root, layers=())
    other.put(entry())
    assert cache.find(key()) == entry()
    other.put(entry(key(2)))
    assert cache.find(key(2)) == entry(key(2))


def test_layers_are_read_in_order_and_never_written(tmp_path: Path) -> None:
    for name, best_us in (("first", 4.0), ("second", 3.0)):
        Cache(tmp_path / name, layers=()).put(entry(best_us=best_us))
    Cache(tmp_path / "second", layers=()).put(entry(key(2)))
    before = files_below(tmp_path)
    layered = Cache(tmp_path / "root", layers=(tmp_path / "missing", tmp_path / "first", tmp_path / "second"))
    with pytest.warns(CacheWarning, match=f"there is no cache layer {tmp_path / 'missing'}"):
        assert layered.get(key()) == entry(best_us=4.0)  # told once
    assert layered.find(key(2)) == entry(key(2))
    assert sorted(s.best_us for s in layered.items("add")) == [4.0, 5.0]
    assert files_below(tmp_path) == before
    layered.put(entry(best_us=4.5))
    assert layered.get(key()) == entry(best_us=4.5)


def test_default_folders(own_cache: Path) -> None:
    Cache().put(entry())
    assert (own_cache / "entries" / "add" / key().hash).is_dir()
    assert Cache().get(key()) == entry()


def test_items_of_one_operator(cache: Cache) -> None:
    for k in (key(1), key(2), key(1, name="sub")):
        cache.put(entry(k))
    assert {s.key for s in cache.items("add")} == {key(1), key(2)}
    assert len(list(cache.items())) == 3
    assert {s.signature for s in cache.items()} == {SIGNATURE}
    assert {s.speedup for s in cache.items()} == {2.0}


# -- damage ------------------------------------------------------------------------------------------------------------

FILES = ["entry.json", "kernel.bin", "tiling.bin", "tiling/op_host/add.cpp", "kernel/op_kernel/add.cpp"]
DAMAGE = {
    "truncated": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "emptied": lambda path: path.write_bytes(b""),
    "one bit flipped": lambda path: path.write_bytes(bytes([path.read_bytes()[0] ^ 1]) + path.read_bytes()[1:]),
    "removed": lambda path: path.unlink(),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
}


@pytest.mark.parametrize("lookup", ["get", "find"])
@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_entry_is_quarantined(cache: Cache, file: str, damage: str, lookup: str) -> None:
    cache.put(entry())
    folder = folder_of(cache, key())
    DAMAGE[damage](folder / file)
    with pytest.warns(CacheWarning, match=file) as caught:
        assert getattr(cache, lookup)(key()) is None
    assert len(caught) == 1
    assert str(folder) in str(caught[0].message)
    assert (cache.counters.misses, cache.counters.quarantined) == (1, 1)
    assert not folder.exists()
    assert len(list((cache.root / "quarantine").iterdir())) == 1
    assert cache.get(key()) is None  # and no second warning
    assert cache.put(entry(best_us=9.0))
    assert cache.get(key()) == entry(best_us=9.0)


def test_an_edited_entry_is_noticed(cache: Cache) -> None:
    cache.put(entry())
    file = folder_of(cache, key()) / "entry.json"
    file.write_text(file.read_text().replace('"block_dim": 40', '"block_dim": 41'))
    with pytest.warns(CacheWarning, match=r"entry\.json is altered"):
        assert cache.get(key()) is None


def test_an_entry_under_another_name_is_noticed(cache: Cache) -> None:
    cache.put(entry())
    folder_of(cache, key()).rename(folder_of(cache, key(2)))
    with pytest.warns(CacheWarning, match="belongs to another key"):
        assert cache.get(key(2)) is None


def test_a_damaged_entry_of_a_layer_is_ignored_and_left(tmp_path: Path) -> None:
    layer = Cache(tmp_path / "layer", layers=())
    layer.put(entry())
    (folder_of(layer, key()) / "kernel.bin").write_bytes(b"")
    before = files_below(tmp_path)
    layered = Cache(tmp_path / "root", layers=(layer.root,))
    with pytest.warns(CacheWarning, match=r"kernel\.bin"):
        assert layered.get(key()) is None
    assert files_below(tmp_path) == before


def test_put_replaces_a_damaged_entry(cache: Cache) -> None:
    cache.put(entry(best_us=1.0))
    (folder_of(cache, key()) / "kernel.bin").unlink()
    with pytest.warns(CacheWarning, match=r"kernel\.bin"):
        assert cache.put(entry(best_us=2.0))
    assert cache.get(key()) == entry(best_us=2.0)


# -- the index ---------------------------------------------------------------------------------------------------------


def test_the_index_holds_json_text_only(cache: Cache) -> None:
    cache.put(entry())
    with sqlite3.connect(cache.root / "index" / "cache.db") as database:
        rows = database.execute("SELECT key, raw, mode, filename, value FROM Cache").fetchall()
    assert len(rows) == 1
    name, raw, mode, filename, value = rows[0]
    assert (name, raw, mode, filename) == (key().hash, 1, 1, None)
    assert json.loads(value)["best_us"] == 5.0


def test_a_pickle_in_the_index_is_never_loaded(cache: Cache) -> None:
    class Bomb:
        def __reduce__(self) -> tuple[Any, ...]:
            return (pytest.fail, ("the pickle was loaded",))

    cache.put(entry())
    cache.close()
    with sqlite3.connect(cache.root / "index" / "cache.db") as database:
        database.execute("UPDATE Cache SET mode = 4, value = ?", (pickle.dumps(Bomb()),))
    fresh = Cache(cache.root, layers=())
    assert [s.best_us for s in fresh.items()] == [5.0]
    assert fresh.find(key()) == entry()


@pytest.mark.parametrize("damage", [b"this is not a database" * 100, b"", None])
def test_nothing_is_lost_with_the_index(cache: Cache, damage: bytes | None) -> None:
    for rows in (1, 2, 3):
        cache.put(entry(key(rows)))
    cache.close()
    database = cache.root / "index" / "cache.db"
    database.unlink() if damage is None else database.write_bytes(damage)
    fresh = Cache(cache.root, layers=())
    assert len(list(fresh.items())) == 3
    assert fresh.find(key(2)) == entry(key(2))
    assert fresh.put(entry(key(2), best_us=1.0))
    assert fresh.rebuild() == 3
    assert sorted(s.best_us for s in fresh.items()) == [1.0, 5.0, 5.0]
    with sqlite3.connect(database) as connection:
        assert connection.execute("SELECT count(*) FROM Cache").fetchone() == (3,)


def test_lookups_go_on_when_the_index_cannot_be_opened(cache: Cache) -> None:
    cache.put(entry())
    cache.close()
    for file in (cache.root / "index").iterdir():
        file.unlink()
    (cache.root / "index").rmdir()
    (cache.root / "index").write_text("a file is in the way")
    fresh = Cache(cache.root, layers=())
    assert fresh.find(key()) == entry()
    with pytest.warns(CacheWarning, match="index can't be written"):
        assert fresh.put(entry(key(2)))
    assert fresh.get(key(2)) == entry(key(2))


# -- explain -----------------------------------------------------------------------------------------------------------


def test_explain(cache: Cache) -> None:
    nothing = cache.explain(key())
    assert not nothing.hit
    assert "nothing is cached for this operator" in str(nothing)
    for k in (key(512, dtype="float32"), key(512), key(512, chip="ascend910b4")):
        cache.put(entry(k))
    hit = cache.explain(key(512))
    assert hit.hit
    assert not hit.differences
    miss = cache.explain(key(1024))
    assert miss.closest is not None
    assert miss.closest.name == key(512).hash
    assert [(d.field, d.wanted, d.found) for d in miss.differences] == [
        ("case.inputs[0].shape", "[1024,64]", "[512,64]"),
        ("case.outputs[0].shape", "[1024,64]", "[512,64]"),
    ]
    assert "case.inputs[0].shape: wanted '[1024,64]', cached '[512,64]'" in str(miss)
    missing = cache.explain(key(512, eps=1.0))
    assert [(d.field, d.wanted, d.found) for d in missing.differences] == [("case.attrs.eps", 1.0, None)]
    assert cache.counters.hits == cache.counters.misses == 0


# -- errors ------------------------------------------------------------------------------------------------------------


def test_a_full_disk_leaves_nothing(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.put(entry(key(1)))
    before = files_below(cache.root / "entries")
    fsync = os.fsync
    left = 0

    def full(descriptor: int) -> None:
        nonlocal left
        if left == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        left -= 1
        fsync(descriptor)

    for after in range(6):
        left = after
        with monkeypatch.context() as patch:
            patch.setattr(root_module.os, "fsync", full)
            with pytest.raises(CacheError, match=r"No space left on device\. Free some space .*ASCENDOPT_CACHE_DIR"):
                cache.put(entry(key(2)))
        assert files_below(cache.root / "entries") == before
        assert not list((cache.root / "tmp").iterdir())
        assert cache.get(key(2)) is None
        assert cache.get(key(1)) == entry(key(1))


def test_a_file_that_cannot_grow(tmp_path: Path) -> None:
    """The system itself refuses a write in the middle of a file, and the result is the same."""
    script = (
        "import resource, signal, sys; sys.path.insert(0, sys.argv[2])\n"
        "from pathlib import Path\n"
        "from cache_examples import entry, key\n"
        "from ascendopt_tune.store.cache import Cache, CacheError\n"
        "cache = Cache(Path(sys.argv[1]), layers=())\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))\n"
        "try: cache.put(entry())\n"
        "except CacheError as error: print(error)\n"
        "assert cache.get(key()) is None\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "root"), str(Path(__file__).parent)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stderr
    assert "can't be written: File too large" in done.stdout
    assert files_below(tmp_path / "root") == {"lock"}


def test_a_read_only_root(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.put(entry())
    damaged = Cache(cache.root, layers=())

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    # Simulated, because permissions mean nothing to root, who may run these tests.
    for name in ("rename", "mkdir", "chmod"):
        monkeypatch.setattr(root_module.os, name, refuse)
    open_any = os.open

    def open_to_read(path: Any, flags: int, *mode: int, **place: int) -> int:
        return refuse() if flags & (os.O_WRONLY | os.O_RDWR) else open_any(path, flags, *mode, **place)

    monkeypatch.setattr(root_module.os, "open", open_to_read)
    monkeypatch.setattr(Path, "mkdir", refuse)
    assert cache.get(key()) == entry()
    with pytest.raises(CacheError, match=r"Read-only file system\. .* make it writable"):
        cache.put(entry(key(2)))
    with pytest.raises(CacheError, match="Read-only file system"):
        cache.rebuild()
    (folder_of(cache, key()) / "kernel.bin").write_bytes(b"")
    with pytest.warns(CacheWarning, match="it can't be read"):
        assert damaged.get(key()) is None


def test_a_file_in_place_of_the_root(tmp_path: Path) -> None:
    (tmp_path / "root").write_text("")
    cache = Cache(tmp_path / "root", layers=())
    assert cache.get(key()) is None
    assert cache.find(key()) is None
    assert list(cache.items()) == []
    with pytest.raises(CacheError, match="File exists"):
        cache.put(entry())


def test_a_folder_that_vanishes_while_serving(cache: Cache) -> None:
    cache.put(entry())
    assert cache.find(key()) == entry()
    shutil.rmtree(cache.root)
    assert cache.get(key()) is None
    assert cache.find(key()) is None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CacheWarning)  # the index was deleted under an open connection
        assert cache.put(entry())
    assert cache.get(key()) == entry()
