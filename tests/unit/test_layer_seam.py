"""What every layer of the cache promises, whoever wrote it and however it is kept: the same answers, damage a miss."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import cache_examples as examples
import pytest

from ascendopt_tune import settings
from ascendopt_tune.store import archive
from ascendopt_tune.store.bundle import open_bundle, write_bundle
from ascendopt_tune.store.cache import Cache, CacheWarning

KEY, OTHER = examples.key(64), examples.key(128)


def _folder(entries: Path, tmp: Path) -> Path:
    return entries


def _bundle(entries: Path, tmp: Path) -> Path:
    write_bundle(tmp / "bundle", [f for op in (entries / "entries").iterdir() for f in op.iterdir()])
    return tmp / "bundle"


def _unpacked(entries: Path, tmp: Path) -> Path:
    archive.make(tmp / "bundle.tar.gz", [f for op in (entries / "entries").iterdir() for f in op.iterdir()])
    archive.unpack(tmp / "bundle.tar.gz", tmp / "unpacked")
    return tmp / "unpacked"


KINDS: dict[str, Callable[[Path, Path], Path]] = {
    "another machine's cache": _folder,
    "a bundle": _bundle,
    "an archive, unpacked": _unpacked,
}


@pytest.fixture(params=KINDS, ids=list(KINDS))
def layer(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    written = Cache(tmp_path / "written", ())
    written.put(examples.entry(KEY))
    written.close()
    made = KINDS[request.param](tmp_path / "written", tmp_path)
    trust = f"sha256:{open_bundle(made).digest}" if (made / "bundle.json").exists() else None
    with settings.override(trust=trust):
        yield made


def test_a_layer_answers_as_the_cache_that_it_was(layer: Path, tmp_path: Path) -> None:
    store = Cache(tmp_path / "own", (layer,))
    entry = store.get(KEY)
    assert entry == examples.entry(KEY)
    assert store.find(KEY) == entry
    assert [s.key for s in store.items("add")] == [KEY]
    assert store.get(OTHER) is None
    assert not store.explain(OTHER).hit


def test_what_is_nearer_goes_first_and_a_layer_is_never_written(layer: Path, tmp_path: Path) -> None:
    before = {f: f.stat().st_mtime_ns for f in layer.rglob("*") if f.is_file()}
    store = Cache(tmp_path / "own", (layer,))
    mine = examples.entry(KEY, best_us=3.0)
    assert store.put(mine)
    assert store.get(KEY) == mine
    assert {f: f.stat().st_mtime_ns for f in layer.rglob("*") if f.is_file()} == before


def test_a_damaged_layer_is_a_miss_with_a_warning(layer: Path, tmp_path: Path) -> None:
    binary = next(layer.rglob("kernel.bin"))
    binary.chmod(0o600)
    binary.write_bytes(b"\x7fELF and something else")
    store = Cache(tmp_path / "own", (layer,))
    with pytest.warns(CacheWarning):
        assert store.get(KEY) is None
    assert binary.exists(), "a layer is somebody else's"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make a layer another user's")
def test_a_layer_of_somebody_else_is_left_out(layer: Path, tmp_path: Path) -> None:
    if (layer / "bundle.json").exists():
        with settings.override(trust=None), pytest.warns(CacheWarning):
            assert Cache(tmp_path / "own", (layer,)).get(KEY) is None
        return
    for path in (layer, *layer.rglob("*")):
        os.chown(path, 12345, 12345)
    with pytest.warns(CacheWarning):
        assert Cache(tmp_path / "own", (layer,)).get(KEY) is None
