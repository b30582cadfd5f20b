"""What an earlier version wrote is served as before: a cache folder and a bundle, both of version 0.1.0 as of b26d1a0.

The binary is without its debug sections, which held paths of the machine it was made on.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ascendopt_tune import settings
from ascendopt_tune.store import archive
from ascendopt_tune.store.bundle import open_bundle
from ascendopt_tune.store.cache import Cache

DATA = Path(__file__).parent / "data"
KEY = "bcc1e5275edef184bb570a72988dfd0fdf212e173fdd671ce6137658a41d984c"


def check(store: Cache) -> None:
    (summary,) = store.items("add")
    assert summary.key.hash == KEY
    assert (summary.key.chip, summary.key.target) == ("ascend910b2", "virtual")
    assert str(summary.case).count("float16[8,256]") >= 2
    for entry in (store.get(summary.key), store.find(summary.key)):
        assert entry is not None
        assert entry.binary[:4] == b"\x7fELF"
        assert entry.tiling.block_dim == 8
        assert entry.best.task_duration_us < entry.baseline.task_duration_us
        assert entry.pair.hash != entry.key.baseline
        assert entry.signature is not None
        assert [p.name for p in entry.signature.inputs] == ["x", "y"]
        assert entry.provenance.evaluations == entry.provenance.budget == 6
        assert entry.provenance.finished(6)


def test_a_folder_of_an_earlier_version_is_served(tmp_path: Path) -> None:
    shutil.copytree(DATA / "earlier_cache", tmp_path / "cache")
    store = Cache(tmp_path / "cache", ())
    assert store.rebuild() == 1, "an index is made where there is none"
    check(store)


def test_a_bundle_of_an_earlier_version_is_a_layer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive.unpack(DATA / "earlier_bundle.tar.gz", tmp_path / "bundle")
    digest = open_bundle(tmp_path / "bundle").digest
    assert digest == "c50ad311a21a3bd07e39b792a5db4bf32557abc7de05587996a84f66b932513e"
    with settings.override(trust=f"sha256:{digest}"):
        check(Cache(tmp_path / "cache", (tmp_path / "bundle",)))
