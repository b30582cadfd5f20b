# ruff: noqa: E501, PT012
"""What is malformed is told in one paragraph, or left out with a word, whatever it is: never a traceback, never a wait.

Every border that reads what somebody else has written is given documents that differ from a right one: a value of
another kind, a field too much or too few, bits flipped, cut off, nested without end, something else in its place.
CI runs a sample; ``make fuzz-battery`` runs all.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import signal
import sys
import tarfile
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import cache_examples as examples
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ascendopt_tune import cli
from ascendopt_tune.bank import exchange
from ascendopt_tune.bank.bank import read_records
from ascendopt_tune.cli import bank_build
from ascendopt_tune.deploy import manifest, upkeep
from ascendopt_tune.device import msprof
from ascendopt_tune.errors import AscendOptError
from ascendopt_tune.nouns import chip
from ascendopt_tune.search.journal import read_journal
from ascendopt_tune.sources import arguments, cmake_lists, project, registry
from ascendopt_tune.store import archive
from ascendopt_tune.store.bundle import MANIFEST, open_bundle, write_bundle
from ascendopt_tune.store.cache import Cache, CacheWarning
from ascendopt_tune.store.entry import ENTRY_FILE, Entry, canonical, sha256

DEEP = "[" * 100_000
_WORDS = st.sampled_from(
    ["", "x", "add", "float16", "float32[8]", "x=float16[8]", "../..", "/dev/zero", "ascend910b2", "virtual", "\0", "é",
     "{rows}", "nan", "-1", "1e999", "[" * 5000, "9" * 5000, "x" * 70_000]
)  # fmt: skip
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from([2**31, -(2**63), 2**200, 1e308, 0.5]) | _WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_WORDS, inner, max_size=3),
    max_leaves=6,
)


@st.composite
def changed(draw: st.DrawFn, document: Any) -> Any:
    """The document with something else in one to three places, or without what stood there."""
    document = json.loads(json.dumps(document))
    for _ in range(draw(st.integers(1, 3))):
        place, where = None, document
        while isinstance(where, dict | list) and where and (place is None or draw(st.integers(0, 3))):
            key = draw(st.sampled_from(sorted(where) if isinstance(where, dict) else range(len(where))))
            place, where = (where, key), where[key]
        if place is None or draw(st.integers(0, 19)) == 0:
            return draw(ANYTHING)
        holder, key = place
        if draw(st.booleans()):
            holder[key] = draw(ANYTHING)
        elif isinstance(holder, dict) and draw(st.booleans()):
            holder[draw(_WORDS)] = holder.pop(key)
        else:
            del holder[key]
    return document


@st.composite
def damaged(draw: st.DrawFn, data: bytes) -> bytes:
    """The bytes with one bit or more flipped, cut off, doubled or replaced."""
    how = draw(st.integers(0, 5))
    at = draw(st.integers(0, max(0, len(data) - 1)))
    if how == 0:
        return data[:at]
    if how == 1:
        return data[:at] + data[at // 2 :]
    if how == 2:
        return draw(st.binary(max_size=64))
    if how == 3:
        return data[:at] + DEEP.encode() + data[at:]
    changed_bytes = bytearray(data or b"\0")
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(changed_bytes) - 1))
        changed_bytes[place] ^= 1 << draw(st.integers(0, 7))
    return bytes(changed_bytes)


def toml(value: Any) -> str:
    """A value as TOML; what TOML can't hold becomes text."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, list):
        return f"[{', '.join(map(toml, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {toml(v)}" for k, v in value.items()) + "}"
    return json.dumps(value)


def toml_document(document: Any) -> str:
    if not isinstance(document, dict):
        return toml(document)
    return "".join(f"{json.dumps(name)} = {toml(value)}\n" for name, value in document.items())


@contextmanager
def refused() -> Iterator[None]:
    """What comes is an error that is told, or none; within seconds."""
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CacheWarning)
        try:
            yield
        except (AscendOptError, OSError):
            pass
    assert time.process_time() - started < 20


#: A border: examples of its battery, and what makes one case from drawn data in a folder.
Case = Callable[[st.DataObject, Path], None]
BORDERS: dict[str, tuple[int, Case]] = {}


def border(cases: int) -> Callable[[Case], Case]:
    def keep(case: Case) -> Case:
        BORDERS[case.__name__] = (cases, case)
        return case

    return keep


ENTRY = examples.entry()
FILES = ENTRY.to_files()


@border(300)
def entry(data: st.DataObject, folder: Path) -> None:
    """With a right digest: a hostile bundle has that as well."""
    document = json.loads(FILES[ENTRY_FILE])
    del document["digest"]
    document = data.draw(changed(document))
    if isinstance(document, dict):
        document["digest"] = sha256(canonical(document).encode())
    files = {**FILES, ENTRY_FILE: json.dumps(document).encode()}
    with refused():
        found = Entry.from_files(lambda name: files[name])
        assert found.speedup > 0
        assert str(found.case)


@border(100)
def entry_bytes(data: st.DataObject, folder: Path) -> None:
    name = data.draw(st.sampled_from(sorted(FILES)))
    files = {**FILES, name: data.draw(damaged(FILES[name]))}
    with refused():
        assert Entry.from_files(lambda n: files[n]) == ENTRY  # a flip may be undone by another


@border(150)
def cache_folder(data: st.DataObject, folder: Path) -> None:
    """A result with something else in a file's place is a miss for lookups, and a finding for verify."""
    cache = Cache(folder / "cache", layers=())
    cache.put(ENTRY)
    place = cache.root / "entries" / "add" / ENTRY.key.hash / data.draw(st.sampled_from(sorted(FILES)))
    whole = place.read_bytes()
    place.unlink()
    what = data.draw(st.sampled_from(["nothing", "pipe", "zeros", "loop", "folder", "damaged", "socket"]))
    if what == "pipe":
        os.mkfifo(place)
    elif what in ("zeros", "loop"):
        place.symlink_to("/dev/zero" if what == "zeros" else place)
    elif what == "folder":
        place.mkdir()
    elif what == "socket":
        os.mknod(place, 0o140600)
    elif what == "damaged":
        place.write_bytes(data.draw(damaged(whole)))
    same = what == "damaged" and place.read_bytes() == whole
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CacheWarning)
        other = Cache(cache.root, layers=())
        if data.draw(st.booleans()):
            assert list(upkeep.verify(other)) == [] or not same
            assert other.get(ENTRY.key) in ((ENTRY,) if same else (None,))
        else:
            list(other.items())
            assert other.get(ENTRY.key) in ((ENTRY,) if same else (None,))
            assert list(upkeep.verify(other)) == []
        cache.close()
        other.close()


@pytest.fixture(scope="module", autouse=True)
def made_bundle(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A bundle of two results, and its archive, for all cases."""
    folder = tmp_path_factory.mktemp("bundle")
    cache = Cache(folder / "cache", layers=())
    for rows in (8, 16):
        cache.put(examples.entry(examples.key(rows)))
    bundle = write_bundle(folder / "bundle", [s.folder for s in cache.items()])
    archive.pack(bundle, folder / "b.tar.gz")
    cache.close()
    BUNDLE["manifest"], BUNDLE["archive"] = bundle.manifest_bytes, (folder / "b.tar.gz").read_bytes()


BUNDLE: dict[str, bytes] = {}


@border(200)
def bundle(data: st.DataObject, folder: Path) -> None:
    document = json.loads(BUNDLE["manifest"])
    text = json.dumps(data.draw(changed(document))).encode()
    (folder / MANIFEST).write_bytes(text if data.draw(st.booleans()) else data.draw(damaged(text)))
    with refused():
        opened = open_bundle(folder)
        for name in opened.rows:
            opened.calls(name)
        archive.check(opened)


@border(300)
def bundle_archive(data: st.DataObject, folder: Path) -> None:
    packed = BUNDLE["archive"]
    if data.draw(st.booleans()):
        packed = data.draw(damaged(packed))
    else:
        packed = gzip.compress(data.draw(damaged(gzip.decompress(packed))), 1)
    (folder / "b.tar.gz").write_bytes(packed)
    with refused():
        archive.unpack(folder / "b.tar.gz", folder / "out")
        assert len(open_bundle(folder / "out")) == 2
    assert sorted(p.name for p in folder.iterdir()) in (["b.tar.gz"], ["b.tar.gz", "out"])


@border(60)
def members_nobody_lists(data: st.DataObject, folder: Path) -> None:
    names = ["entries/add/" + "0" * 64 + "/x", "entries/x", "bundle.json/x", "entries/add", "x", "entries//x", ".", "é"]
    source, added = io.BytesIO(gzip.decompress(BUNDLE["archive"])), io.BytesIO()
    with tarfile.open(fileobj=source) as whole:
        listed = whole.getnames()
    source.seek(0)
    name = data.draw(st.sampled_from([*names, f"{Path(listed[-1]).parent}/extra", f"{listed[-1]}/x"]))
    with tarfile.open(fileobj=source) as old, tarfile.open(fileobj=added, mode="w") as new:
        source.seek(0)
        for member in old:
            new.addfile(member, old.extractfile(member))
        more = tarfile.TarInfo(name)
        more.type = data.draw(st.sampled_from([tarfile.REGTYPE, tarfile.FIFOTYPE, tarfile.SYMTYPE, tarfile.CHRTYPE]))
        new.addfile(more, io.BytesIO())
    (folder / "b.tar.gz").write_bytes(gzip.compress(added.getvalue(), 1))
    with pytest.raises(AscendOptError):
        archive.unpack(folder / "b.tar.gz", folder / "out")
    assert [p.name for p in folder.iterdir()] == ["b.tar.gz"]


JOURNAL = [
    {"schema": 2, "operator": "add", "case": {}, "budget": 3},
    {"fact": "seeds", "value": [1, 2]},
    {"id": 1, "pair": "ab", "outcome": {"kind": "CompileFailed", "reason": "x", "log": "", "part": "kernel"},
     "duplicate_of": None, "launch": "l", "spent": {"seconds": 1.0}, "tiling": {}, "kernel": {}},
]  # fmt: skip


@border(200)
def journal(data: st.DataObject, folder: Path) -> None:
    found = data.draw(changed(JOURNAL)) if data.draw(st.booleans()) else []
    lines = [json.dumps(line) for line in (found if isinstance(found, list) else [found])]
    text = "".join(f"{line}\n" for line in lines or map(json.dumps, JOURNAL)).encode()
    (folder / "journal").write_bytes(text if lines else data.draw(damaged(text)))
    with refused():
        read_journal(folder / "journal")


MANIFEST_TOML: dict[str, Any] = {
    "target": "virtual", "chips": ["ascend910b2"], "budget": 4, "seed": 1, "recorded": ["calls.json"],
    "operator": [{"source": "add", "case": [{"inputs": {"x": "float16[{n},8]"}, "attrs": {}, "grid": {"n": [1, 2]}}]}],
}  # fmt: skip
CALLS = {"calls": [{"operator": "add", "inputs": {"x": "float16[8]"}, "written": {}, "attrs": {}, "count": 2}]}


@border(200)
def prebuild_manifest(data: st.DataObject, folder: Path) -> None:
    calls = data.draw(changed(CALLS)) if data.draw(st.booleans()) else CALLS
    document = data.draw(changed(MANIFEST_TOML)) if calls is CALLS else MANIFEST_TOML
    (folder / "calls.json").write_text(json.dumps(calls))
    (folder / "m.toml").write_text(toml_document(document))
    with refused():
        manifest.read_manifest(folder / "m.toml")


SETTINGS = {"domain": {"x": {"low": -1.0, "high": 1.0}}, "tolerance": {"float16": [0.001, 0.001]}, "in_place": ["x"],
            "case": [{"inputs": {"x": "float16[8]", "y": "float16[8]"}, "attrs": {}}]}  # fmt: skip


@border(150)
def op_toml(data: st.DataObject, folder: Path) -> None:
    (folder / "op.toml").write_text(toml_document(data.draw(changed(SETTINGS))))
    with refused():
        registry.read_settings(folder / "op.toml")


@border(150)
def chip_file(data: st.DataObject, folder: Path) -> None:
    text = toml_document(
        data.draw(changed({"chip": {"inherits": "ascend910b2"}, "memory": {"x": [1, 0, 2], "y": {"value": 1}}}))
    )
    (folder / "own.toml").write_text(text)
    with refused():
        chip.load_chip(chip.chip_key(str(folder / "own.toml")))


@border(150)
def toml_bytes(data: st.DataObject, folder: Path) -> None:
    text = toml_document(data.draw(st.sampled_from([MANIFEST_TOML, SETTINGS]))).encode()
    if data.draw(st.booleans()):
        text = b"x = " + b"[" * 20_000
    (folder / "x.toml").write_bytes(data.draw(damaged(text)))
    read = data.draw(st.sampled_from([manifest.read_manifest, registry.read_settings, chip.load_chip]))
    with refused():
        read(folder / "x.toml" if read is not chip.load_chip else str(folder / "x.toml"))  # type: ignore[operator]


@border(200)
def arrays(data: st.DataObject, folder: Path) -> None:
    suffix = data.draw(st.sampled_from([".npz", ".safetensors"]))
    arguments.save_arrays(folder / f"a{suffix}", {"x": np.zeros((2, 8), np.float16), "y": np.ones(3, np.int32)})
    place = folder / f"a{suffix}"
    place.write_bytes(data.draw(damaged(place.read_bytes())))
    with refused():
        arguments.load_arrays(place)


@border(200)
def tensors_and_attributes(data: st.DataObject, folder: Path) -> None:
    words = st.sampled_from(
        ["x", "=", "float16", "[", "]", ",", "8", "-1", "99999999999999999999", ":", "NZ", " ", "é", ".0"]
    )
    text = "".join(data.draw(st.lists(words, max_size=8)))
    with refused():
        name, spec = arguments.parse_tensor(text)
        assert name
        assert spec.nbytes >= 0
    with refused():
        arguments.parse_attr(text + data.draw(_WORDS), None)


@border(150)
def bank_records(data: st.DataObject, folder: Path) -> None:
    shipped = Path("cache/bank/experience.jsonl").read_bytes().splitlines()
    line = json.loads(data.draw(st.sampled_from(shipped[:40])))
    text = json.dumps(data.draw(changed(line))).encode() if data.draw(st.booleans()) else data.draw(damaged(shipped[0]))
    (folder / "b.jsonl").write_bytes(text + b"\n")
    with refused():
        exchange.read_any(folder / "b.jsonl")


_COMMANDS = ["run", "tune", "profile", "explain", "prebuild", "cache list", "cache show", "cache import", "cache verify",
             "cache unpack", "cache gc", "cache diff", "cache merge", "bank show", "bank import", "bank list", "ops",
             "calibrate", "fidelity", "llm-check", "bench search", "silicon-check", "toolkit", "report",
             "completion", "nonsense"]  # fmt: skip
_OPTIONS = ["--input", "--output", "--attr", "--inputs", "--outputs", "--kernel", "--entry", "--block-dim", "--chip",
            "--target", "--budget", "--seed", "--json", "--operator", "--cases", "--report", "--record", "--plan",
            "--older-than", "--dry-run", "--no-such"]  # fmt: skip
_VALUES = ["", "x", "x=float16[8]", "x=float16[99999999999]", "x=float16[-1]", "dim=" + "[" * 3000, "/dev/zero", "-1",
           "pipe", "junk", "folder", "ascend310p", "nan", "\udcff", "9" * 400, "no_such_operator"]  # fmt: skip


@border(250)
def command_line(data: st.DataObject, folder: Path) -> None:
    """No operator is named that could be run: what is refused is what stands on the line."""
    os.mkfifo(folder / "pipe")
    (folder / "junk").write_bytes(DEEP.encode())
    (folder / "folder").mkdir()
    values = st.sampled_from(_VALUES).map(lambda v: str(folder / v) if v in ("pipe", "junk", "folder") else v)
    words = st.lists(st.sampled_from(_OPTIONS) | values, max_size=5)
    line = [*data.draw(st.sampled_from(_COMMANDS)).split(), *data.draw(words)]
    if line[0] in ("calibrate", "fidelity", "silicon-check", "toolkit", "bench", "cache", "llm-check"):
        line.append("--no-such-option")  # what they do without an error takes long, or is another test's
    out, said = io.StringIO(), io.StringIO()
    argv, sys.argv = sys.argv, ["ascendopt-tune", *line]
    try:
        with redirect_stdout(out), redirect_stderr(said), pytest.raises(SystemExit) as ended:
            cli.main()
            sys.exit(0)
    finally:
        sys.argv = argv
    assert ended.value.code in (0, 1, 2), line
    assert "Traceback" not in said.getvalue(), line


#: A file's name, and who reads it in a folder.
READERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "manifest": ("m.toml", lambda f: manifest.read_manifest(f / "m.toml")),
    "op.toml": ("op.toml", lambda f: registry.read_settings(f / "op.toml")),
    "chip": ("own.toml", lambda f: chip.load_chip(str(f / "own.toml"))),
    "plan": ("plan.toml", lambda f: bank_build._planned(f / "plan.toml")),
    "journal": ("journal", lambda f: read_journal(f / "journal")),
    "arrays": ("a.npz", lambda f: arguments.load_arrays(f / "a.npz")),
    "tensors": ("a.safetensors", lambda f: arguments.load_arrays(f / "a.safetensors")),
    "bank": ("b.jsonl", lambda f: exchange.read_any(f / "b.jsonl")),
    "bank's records": ("b.jsonl", lambda f: read_records(f / "b.jsonl")),
    "bundle": (MANIFEST, lambda f: open_bundle(f).rows),
    "archive": ("b.tar.gz", lambda f: archive.unpack(f / "b.tar.gz", f / "out")),
    "kernel": ("k.cpp", lambda f: project.load_direct(f / "k.cpp", "k", 1)),
    "CMake": ("CMakeLists.txt", lambda f: cmake_lists.read_build_rules(f)),
    "profile": ("OpBasicInfo.csv", lambda f: msprof.read(f)),
}


@pytest.mark.parametrize("what", ["pipe", "zeros", "folder", "loop", "socket", "deep"])
@pytest.mark.parametrize("reader", READERS)
def test_something_else_in_a_files_place(tmp_path: Path, reader: str, what: str) -> None:
    name, read = READERS[reader]
    place = tmp_path / name
    if what == "pipe":
        os.mkfifo(place)
    elif what in ("zeros", "loop"):
        place.symlink_to("/dev/zero" if what == "zeros" else place)
    elif what == "folder":
        place.mkdir()
    elif what == "socket":
        os.mknod(place, 0o140600)
    else:
        place.write_text(("x = " if name.endswith(".toml") else "") + DEEP)
    signal.alarm(60)  # nothing is waited for
    try:
        with refused():
            read(tmp_path)
    finally:
        signal.alarm(0)


def test_there_are_enough_cases() -> None:
    assert sum(cases for cases, _ in BORDERS.values()) >= 2000


_SAMPLE = 6  # cases of each border in CI


@pytest.mark.parametrize("part", ["sample", pytest.param("all", marks=pytest.mark.battery)])
@pytest.mark.parametrize("name", BORDERS)
def test_border(name: str, part: str) -> None:
    cases, case = BORDERS[name]

    @settings(
        max_examples=cases if part == "all" else _SAMPLE,
        derandomize=part == "sample",
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def run(data: st.DataObject) -> None:
        with tempfile.TemporaryDirectory() as folder:
            case(data, Path(folder))

    run()
