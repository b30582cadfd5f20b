"""Bundles: what is in them, whom they are believed, what is refused; no compiler, no device."""

from __future__ import annotations

import gzip
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import cache_examples as examples
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from ascendopt_tune import settings
from ascendopt_tune.deploy import importing, upkeep
from ascendopt_tune.errors import CacheError, OperatorError
from ascendopt_tune.store import archive, trust
from ascendopt_tune.store.bundle import MANIFEST, SIGNATURE, Bundle, open_bundle, write_bundle
from ascendopt_tune.store.cache import Cache, CacheWarning
from ascendopt_tune.store.claim import claim

KEYS = [examples.key(rows) for rows in (64, 128, 256)] + [examples.key(64, name="mul")]


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    store = Cache(tmp_path / "cache", ())
    for key in KEYS:
        store.put(examples.entry(key))
    return store


@pytest.fixture
def bundle(cache: Cache, tmp_path: Path) -> Bundle:
    return write_bundle(tmp_path / "bundle", [s.folder for s in cache.items()])


@pytest.fixture
def keys(tmp_path: Path) -> tuple[Path, Path]:
    return key_pair(tmp_path / "key.pem")


def key_pair(private: Path) -> tuple[Path, Path]:
    """An Ed25519 pair in PEM: private, public."""
    key = Ed25519PrivateKey.generate()
    public = private.with_suffix(".pub")
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    public.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return private, public


def layered(tmp_path: Path, root: Path, trusted: str = "") -> Cache:
    os.environ["ASCENDOPT_TRUST"] = trusted  # monkeypatch restores the environment
    return Cache(tmp_path / "empty", (root,))


@pytest.fixture(autouse=True)
def _trust(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASCENDOPT_TRUST", "")


def test_a_trusted_bundle_serves_what_it_was_made_of(bundle: Bundle, tmp_path: Path) -> None:
    store = layered(tmp_path, bundle.root, f"sha256:{bundle.digest}")
    for key in KEYS:
        assert store.get(key) == examples.entry(key)
        assert store.find(key) == examples.entry(key)
    assert store.get(examples.key(999)) is None
    assert {s.key for s in store.items()} == set(KEYS)


def test_the_same_entries_make_the_same_bundle(bundle: Bundle, cache: Cache, tmp_path: Path) -> None:
    other = write_bundle(tmp_path / "other", reversed([s.folder for s in cache.items()]))
    assert other.digest == bundle.digest
    one, two = (archive.make(tmp_path / f"{n}.tar.gz", [s.folder for s in cache.items()]) for n in "ab")
    assert one.digest == two.digest == bundle.digest
    assert (tmp_path / "a.tar.gz").read_bytes() == (tmp_path / "b.tar.gz").read_bytes()


def test_only_what_changed_is_copied_and_what_is_gone_is_removed(bundle: Bundle, cache: Cache) -> None:
    before = {p: p.stat().st_ino for p in bundle.root.rglob("entry.json")}
    cache.put(examples.entry(KEYS[0], best_us=2.0))
    left = [s.folder for s in cache.items() if s.key != KEYS[3]]
    after = write_bundle(bundle.root, left)
    assert len(after) == 3
    assert not (bundle.root / "entries" / "mul").exists()
    same = [p for p, inode in before.items() if p.exists() and p.stat().st_ino == inode]
    assert len(same) == 2
    archive.check(after)


def test_a_bundle_nobody_vouches_for_is_left_out_with_the_way_out(bundle: Bundle, tmp_path: Path) -> None:
    store = layered(tmp_path, bundle.root)
    with pytest.warns(CacheWarning, match=f"not signed.*ASCENDOPT_TRUST=sha256:{bundle.digest}.*cache import"):
        assert store.get(KEYS[0]) is None


def test_a_signature_is_believed_by_those_who_trust_the_key(
    bundle: Bundle, keys: tuple[Path, Path], tmp_path: Path
) -> None:
    private, public = keys
    trust.sign(bundle.root, private)
    assert layered(tmp_path, bundle.root, str(public)).get(KEYS[0]) is not None
    _, other = key_pair(tmp_path / "others.pem")
    with pytest.warns(CacheWarning, match="no key of ASCENDOPT_TRUST made its signature"):
        assert layered(tmp_path, bundle.root, str(other)).get(KEYS[0]) is None


def test_a_changed_manifest_is_not_what_was_signed(bundle: Bundle, keys: tuple[Path, Path]) -> None:
    private, public = keys
    trust.sign(bundle.root, private)
    assert trust.why_untrusted(open_bundle(bundle.root), [str(public)]) is None
    document = json.loads((bundle.root / MANIFEST).read_text())
    document["about"]["chips"] = ["ascend910b1"]
    (bundle.root / MANIFEST).write_text(json.dumps(document))
    assert trust.why_untrusted(open_bundle(bundle.root), [str(public)]) is not None
    again = write_bundle(bundle.root, list((bundle.root / "entries").glob("*/*")))
    assert again.signature is None  # a signature for another manifest is not kept


@pytest.mark.parametrize(
    "text", ["", "{}", '{"algorithm":"rsa","signature":""}', '{"algorithm":"ed25519","signature":"?"}']
)
def test_a_damaged_signature_is_an_error(bundle: Bundle, keys: tuple[Path, Path], text: str) -> None:
    (bundle.root / SIGNATURE).write_text(text)
    with pytest.raises(CacheError, match=SIGNATURE):
        trust.why_untrusted(open_bundle(bundle.root), [str(keys[1])])


def _alter_binary(root: Path) -> None:
    next(root.rglob("kernel.bin")).write_bytes(b"other")


def _alter_entry(root: Path) -> None:
    path = next(root.rglob("entry.json"))
    path.write_text(path.read_text().replace('"speedup": 2.0', '"speedup": 9.0'))


def _remove_source(root: Path) -> None:
    next(root.rglob("op_kernel/add.cpp")).unlink()


def _swap_entries(root: Path) -> None:
    one, two = sorted((root / "entries" / "add").iterdir())[:2]
    shutil.rmtree(one)
    shutil.copytree(two, one)


def _add_entry(root: Path) -> None:
    one = next((root / "entries" / "add").iterdir())
    shutil.copytree(one, one.with_name("0" * 64))


@pytest.mark.parametrize("harm", [_alter_binary, _alter_entry, _remove_source, _swap_entries, _add_entry])
def test_a_bundle_that_was_tampered_with_is_found_out(bundle: Bundle, harm: Callable[[Path], None]) -> None:
    harm(bundle.root)
    with pytest.raises(CacheError):
        archive.check(open_bundle(bundle.root))


@pytest.mark.parametrize("harm", [_alter_binary, _alter_entry, _remove_source, _swap_entries])
def test_a_tampered_entry_of_a_trusted_bundle_is_a_miss(
    bundle: Bundle, harm: Callable[[Path], None], tmp_path: Path
) -> None:
    harm(bundle.root)
    store = layered(tmp_path, bundle.root, f"sha256:{bundle.digest}")
    with pytest.warns(CacheWarning, match="ignored"):
        found = [store.get(key) for key in KEYS]
    assert sum(f is None for f in found) == 1
    assert all(f == examples.entry(k) for f, k in zip(found, KEYS, strict=True) if f is not None)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"schema":1}',
        '{"schema":2,"about":{},"entries":{}}',
        '{"schema":1,"about":{},"entries":{"../x":[]}}',
        '{"schema":1,"about":{},"entries":{"add":[["../../etc/passwd","","",1,1]]}}',
        '{"schema":1,"about":{},"entries":{"add":[["a"]]}}',
    ],
)
def test_a_manifest_that_is_none_is_refused(bundle: Bundle, text: str) -> None:
    (bundle.root / MANIFEST).write_text(text)
    opened = open_bundle(bundle.root)  # its digest can be asked for before anything is believed
    with pytest.raises(CacheError, match=MANIFEST):
        _ = opened.rows


def test_folders_others_can_write_to_are_not_used(bundle: Bundle, cache: Cache, tmp_path: Path) -> None:
    bundle.root.chmod(0o777)
    with pytest.warns(CacheWarning, match="written by everybody.*chmod o-w"):
        assert layered(tmp_path, bundle.root, f"sha256:{bundle.digest}").get(KEYS[0]) is None
    (cache.root / "entries").chmod(0o757)
    with pytest.warns(CacheWarning, match="written by everybody"):
        assert layered(tmp_path, cache.root).get(KEYS[0]) is None


def test_a_folder_of_somebody_else_is_not_used(bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.geteuid() == 0:
        os.chown(bundle.root, 12345, -1)
    else:
        monkeypatch.setattr(trust.os, "geteuid", lambda: 12345)
        monkeypatch.setattr(trust, "__file__", "/dev/null")
    with pytest.warns(CacheWarning, match=f"belongs to user {bundle.root.stat().st_uid}, not to user"):
        assert layered(tmp_path, bundle.root, f"sha256:{bundle.digest}").get(KEYS[0]) is None


def _member(name: str, data: bytes = b"x", **fields: object) -> tuple[tarfile.TarInfo, bytes]:
    member = tarfile.TarInfo(name)
    member.size = len(data)
    for field, value in fields.items():
        setattr(member, field, value)
    return member, data


MANIFEST_ONLY = _member(MANIFEST, b'{"schema":1,"about":{"chips":[],"targets":[],"toolkits":[]},"entries":{}}')
HOSTILE = {
    "leaves the bundle's folder": _member("../../outside"),
    "leaves the bundle's folder ": _member("/etc/passwd"),
    "leaves the bundle's folder  ": _member("entries/../../x"),
    "is a link": _member("entries/add/link", b"", type=tarfile.SYMTYPE, linkname="/etc/passwd"),
    "is a link ": _member("entries/add/link", b"", type=tarfile.LNKTYPE, linkname="bundle.json"),
    "not a plain file": _member("entries/pipe", b"", type=tarfile.FIFOTYPE),
    "belongs to no bundle": _member("setup.py"),
    "twice": MANIFEST_ONLY,
}


def _archive(path: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as made:
        for member, data in members:
            made.addfile(member, io.BytesIO(data))
    return path


@pytest.mark.parametrize("reason", HOSTILE)
def test_a_hostile_archive_is_refused_by_name(reason: str, tmp_path: Path) -> None:
    path = _archive(tmp_path / "a.tar.gz", MANIFEST_ONLY, HOSTILE[reason])
    with pytest.raises(CacheError, match=reason.strip()):
        archive.unpack(path, tmp_path / "out")
    assert sorted(p.name for p in tmp_path.iterdir() if p.name != "cache") == ["a.tar.gz"]


def test_an_archive_that_is_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _archive(tmp_path / "a.tar.gz", MANIFEST_ONLY, _member("entries/add/x/big", b"0" * 5000))
    monkeypatch.setattr(archive, "MAX_FILE_BYTES", 4999)
    with pytest.raises(CacheError, match="has 5000 bytes, more than 4999"):
        archive.unpack(path, tmp_path / "out")
    monkeypatch.setattr(archive, "MAX_FILE_BYTES", 5000)
    monkeypatch.setattr(archive, "MAX_FILES", 1)
    with pytest.raises(CacheError, match="too large"):
        archive.unpack(path, tmp_path / "out")


def test_a_truncated_archive_is_refused(cache: Cache, tmp_path: Path) -> None:
    path = tmp_path / "a.tar.gz"
    archive.make(path, [s.folder for s in cache.items()])
    whole = path.read_bytes()
    for length in (0, 10, len(whole) // 2, len(whole) - 9):
        path.write_bytes(whole[:length])
        with pytest.raises(CacheError):
            archive.unpack(path, tmp_path / f"out{length}")
        assert not (tmp_path / f"out{length}").exists()
    path.write_bytes(gzip.compress(b"\0" * 1024))
    with pytest.raises(CacheError, match="is empty"):
        archive.unpack(path, tmp_path / "none")


def test_an_archive_comes_back_as_it_was(cache: Cache, tmp_path: Path, keys: tuple[Path, Path]) -> None:
    made = archive.make(tmp_path / "a.tar.gz", [s.folder for s in cache.items()], keys[0])
    found = archive.unpack(tmp_path / "a.tar.gz", tmp_path / "out")
    assert found.digest == made.digest
    assert trust.why_untrusted(found, [str(keys[1])]) is None
    with pytest.raises(CacheError, match="exists"):
        archive.unpack(tmp_path / "a.tar.gz", tmp_path / "out")


def _none(name: str) -> None:
    raise OperatorError(f"no sources of {name}.")


def test_a_trusted_bundle_is_imported_as_it_is(bundle: Bundle, tmp_path: Path) -> None:
    store = Cache(tmp_path / "mine", ())
    store.put(examples.entry(KEYS[1]))
    rows = list(importing.import_bundle(bundle.root, store, trusted=(f"sha256:{bundle.digest}",), operators=_none))
    assert sorted(r.result for r in rows) == ["imported", "imported", "imported", "present"]
    assert all(store.get(key) == examples.entry(key) for key in KEYS)


def test_of_an_untrusted_bundle_nothing_is_taken_without_sources(bundle: Bundle, tmp_path: Path) -> None:
    store = Cache(tmp_path / "mine", ())
    rows = list(importing.import_bundle(bundle.root, store, trusted=(), operators=_none))
    assert [r.result for r in rows] == ["refused"] * 4
    assert {r.reason for r in rows} == {"no sources of add.", "no sources of mul."}
    assert list(store.items()) == []


def test_a_tampered_entry_is_refused_and_the_others_are_imported(bundle: Bundle, tmp_path: Path) -> None:
    _alter_binary(bundle.root)
    store = Cache(tmp_path / "mine", ())
    rows = list(importing.import_bundle(bundle.root, store, trusted=(f"sha256:{bundle.digest}",), operators=_none))
    assert sorted(r.result for r in rows) == ["imported", "imported", "imported", "refused"]
    (refused,) = (r for r in rows if r.result == "refused")
    assert "kernel.bin is altered" in refused.reason


def test_verify_names_what_is_damaged_and_quarantines_it(cache: Cache, bundle: Bundle) -> None:
    assert list(upkeep.verify(cache)) == []
    _alter_binary(cache.root / "entries" / "mul")
    with pytest.warns(CacheWarning, match="quarantine"):
        (found,) = upkeep.verify(cache)
    assert "kernel.bin is altered" in found.problem
    assert list(upkeep.verify(cache)) == []
    _alter_entry(bundle.root)
    (found,) = upkeep.verify(Cache(cache.root, (bundle.root,)))
    assert "entry.json is altered" in found.problem


def test_merge_keeps_the_faster_of_two(cache: Cache, tmp_path: Path) -> None:
    mine = Cache(tmp_path / "mine", ())
    mine.put(examples.entry(KEYS[0], best_us=1.0))
    mine.put(examples.entry(KEYS[1], best_us=9.0))
    assert upkeep.merge(cache.root, mine) == (3, 1)
    assert [mine.get(k).best.task_duration_us for k in KEYS] == [1.0, 5.0, 5.0, 5.0]  # type: ignore[union-attr]
    assert upkeep.merge(cache.root, mine) == (0, 4)


def test_diff_shows_each_side(cache: Cache, bundle: Bundle) -> None:
    assert upkeep.diff(cache.root, bundle.root) == []
    cache.put(examples.entry(KEYS[0], best_us=1.0))
    cache.put(examples.entry(examples.key(7)))
    changes = upkeep.diff(cache.root, bundle.root)
    assert {(c.one.best_us if c.one else None, c.other.best_us if c.other else None) for c in changes} == {
        (1.0, 5.0),
        (5.0, None),
    }


def test_garbage_is_what_no_call_can_hit(cache: Cache) -> None:
    assert list(upkeep.garbage(cache, toolkits=["vnpu-1"])) == []
    found = list(upkeep.garbage(cache, toolkits=["vnpu-2"]))
    assert {g.reason for g in found} == {"made for toolkit vnpu-1"}
    assert len(found) == len(KEYS)
    old = cache.root / "build" / "kernel" / "old.so"
    old.parent.mkdir(parents=True)
    old.write_bytes(b"1234")
    os.utime(old, (0, 0))
    (item,) = upkeep.garbage(cache, toolkits=["vnpu-1"])
    assert (item.path, item.bytes) == (old, 4)
    upkeep.remove(cache, item)
    assert not old.exists()


def test_garbage_beside_the_results(cache: Cache) -> None:
    """Remarks about results that are gone, locks of the dead, toolkits out of use, once they are old."""
    results = [s.key.hash for s in cache.items()]
    files = {
        "remarks/kept.json": json.dumps({"entry": results[0]}),
        "remarks/gone.json": json.dumps({"entry": "0" * 64}),
        "remarks/torn.json": '{"ent',
        "locks/left": "",
        "locks/held": "",
        "toolkit/1-abc/complete": "",
        "toolkit/2-abc/complete": "",
    }
    for name, text in files.items():
        path = cache.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert list(upkeep.garbage(cache, toolkits=["vnpu-1"])) == []
    for name in files:
        for path in (cache.root / name, (cache.root / name).parent):
            os.utime(path, (0, 0))
    with claim(cache.root, "held", False):
        for item in upkeep.garbage(cache, toolkits=["vnpu-1"]):
            upkeep.remove(cache, item)
        left = {
            str(p.relative_to(cache.root)) for name in files for p in (cache.root / name.partition("/")[0]).iterdir()
        }
    assert left == {"remarks/kept.json", "locks/held", "toolkit/1-abc"}


def test_a_trust_setting_is_checked_when_it_is_read() -> None:
    with pytest.raises(settings.SettingsError, match="64 hexadecimal digits"):
        settings.settings({"ASCENDOPT_TRUST": "sha256:abc"})
    digest = "0" * 64
    assert settings.settings({"ASCENDOPT_TRUST": f"sha256:{digest}, /k.pem"}).trust == (f"sha256:{digest}", "/k.pem")


def test_the_benchmark_prints_its_ratio() -> None:
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "benchmarks/bundle.py", "--entries", "500"],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )
    numbers = {line[:37].strip(): float(line[37:].split()[0]) for line in done.stdout.splitlines()}
    assert numbers["opening a bundle of 500 entries"] < 100  # ms of processor time; on any machine
    assert numbers["lookup / diskcache get"] < 15
