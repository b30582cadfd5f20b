"""Prebuilding a bundle on the command line, and what it takes to use one: the whole way, on the virtual NPU."""

from __future__ import annotations

import dataclasses
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from stopping import interrupted

from ascendopt_tune.build.toolkit import find
from ascendopt_tune.deploy import importing
from ascendopt_tune.deploy.manifest import Wish, read_manifest
from ascendopt_tune.deploy.prebuild import prebuild, resolve
from ascendopt_tune.errors import CaseError, OperatorError
from ascendopt_tune.evaluate.evaluator import Evaluator
from ascendopt_tune.sources.registry import load_operator
from ascendopt_tune.store.bundle import open_bundle
from ascendopt_tune.store.cache import Cache, Key

MANIFEST = """
budget = 2
target = "virtual"
[[operator]]
source = "add"
[[operator.case]]
inputs = { x = "{dtype}[{rows},96]", y = "{dtype}[{rows},96]" }
grid = { dtype = ["float32"], rows = [8, 16] }
"""
CASE = '[[operator]]\nsource = "add"\n[[operator.case]]\n'


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    path = tmp_path / "manifest.toml"
    path.write_text(MANIFEST)
    return path


def cli(*args: object, code: int = 0) -> Any:
    command = [sys.executable, "-m", "ascendopt_tune", *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return json.loads(done.stdout) if "--json" in args else done.stdout


def test_prebuild_ship_and_serve(manifest: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bundle = tmp_path / "bundle"
    first = cli("prebuild", manifest, "-o", bundle, "--json", "--workers", 2)
    assert [e["result"] for e in first["entries"]] == ["tuned", "tuned"]
    again = cli("prebuild", manifest, "-o", bundle, "--json", "--record", tmp_path / "prebuild.json")
    assert [e["result"] for e in again["entries"]] == ["cached", "cached"]
    assert json.loads((tmp_path / "prebuild.json").read_text()) == again
    page = cli("report", tmp_path / "prebuild.json", "--json")
    assert page == {"kind": "prebuild", "page": str(tmp_path / "prebuild.html")}
    assert (tmp_path / "prebuild.html").exists()
    assert again["digest"] == first["digest"] == f"sha256:{open_bundle(bundle).digest}"

    # Elsewhere: an empty cache, the bundle as a layer.
    monkeypatch.setenv("ASCENDOPT_CACHE_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("ASCENDOPT_CACHE_LAYERS", str(bundle))
    monkeypatch.setenv("ASCENDOPT_TRUST", first["digest"])
    call = ["add", "--input", "x=float32[8,96]", "--input", "y=float32[8,96]", "--json"]
    assert cli("cache", "explain", *call)["hit"]
    assert cli("tune", *call)["cached"]

    # Without trust nothing of it is used: it is rebuilt from source, checked and measured here.
    monkeypatch.setenv("ASCENDOPT_TRUST", "")
    monkeypatch.setenv("ASCENDOPT_CACHE_LAYERS", "")
    done = cli("cache", "import", bundle, "--json")
    assert [e["result"] for e in done["entries"]] == ["rebuilt", "rebuilt"]
    listed = cli("cache", "list", "--json")["entries"]
    assert {e["best_us"] for e in listed} == {e["best_us"] for e in first["entries"]}
    assert cli("cache", "show", listed[0]["key"][:12], "--json")["key"]["operator"] == "add"
    assert "no difference" in cli("cache", "diff", bundle)
    assert "2 entries, signed" in cli("cache", "export", tmp_path / "all.tar.gz", "--sign", _key(tmp_path))


def _key(folder: Path) -> Path:
    """A private Ed25519 key in PEM."""
    key = Ed25519PrivateKey.generate()
    path = folder / "key.pem"
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return path


def test_an_altered_binary_is_never_run_but_rebuilt(manifest: Path, tmp_path: Path) -> None:
    """Sources alone decide what an untrusted result is: its binary, whatever it is, isn't looked at."""
    wish = read_manifest(manifest)[0]
    store = Cache(tmp_path / "store", ())
    (done,) = prebuild([wish], store, workers=1)
    assert done.result == "tuned"
    toolkit = find(wish.options.target)
    with Evaluator(toolkit, wish.options.chip, workers=1) as evaluator:
        operator, case = resolve(wish, evaluator)
    key = Key.of(operator, case, chip=wish.options.chip, target=toolkit.target, toolkit=toolkit.version)
    entry = store.get(key)
    assert entry is not None
    hostile = dataclasses.replace(entry, binary=b"not a kernel at all")
    rebuilt = importing.rebuild(hostile, operator, case)
    assert rebuilt.binary[:4] == b"\x7fELF"
    assert rebuilt.best.task_duration_us == entry.best.task_duration_us
    kernel = entry.pair.kernel[operator.kernel_main].replace("Add(", "Sub(")
    wrong = dataclasses.replace(entry, pair=entry.pair.with_kernel(operator.kernel_main, kernel))
    with pytest.raises(importing.CacheError, match="the best pair doesn't pass the gate here"):
        importing.rebuild(wrong, operator, case)
    with pytest.raises(importing.CacheError, match="another baseline pair"):
        importing.rebuild(entry, load_operator("silu"), case)


def test_a_worker_that_is_killed_is_replaced_and_its_job_goes_on(manifest: Path, tmp_path: Path) -> None:
    wishes = read_manifest(manifest)
    killed: list[int] = []

    def kill_first(wish: Wish) -> None:
        if not killed:
            (worker,) = multiprocessing.active_children()
            killed.append(int(worker.pid or 0))
            os.kill(killed[0], signal.SIGKILL)

    done = list(prebuild(wishes, Cache(tmp_path / "store", ()), workers=1, started=kill_first))
    assert killed
    assert sorted(d.result for d in done) == ["tuned", "tuned"]


def test_ctrl_c_makes_a_bundle_of_what_is_done(manifest: Path, tmp_path: Path) -> None:
    # Cases of this test alone: other tests, which share the cache folder, may be at work at the same time.
    manifest.write_text(MANIFEST.replace("rows = [8, 16]", "rows = [24, 40, 48, 56, 64, 72, 80, 88]"))
    bundle = tmp_path / "bundle"
    arguments = ["prebuild", str(manifest), "-o", str(bundle), "--workers", "1"]
    done = interrupted(["\n2/8"], arguments, env={**os.environ, MARK: str(tmp_path)})
    assert done.returncode == 130, done.stderr
    assert "the bundle holds what is done" in done.stderr
    assert len(open_bundle(bundle)) == 2
    deadline = time.monotonic() + 120  # a machine may be busy
    while _running(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert _running(tmp_path) == []


MARK = "PREBUILD_THAT_IS_TESTED"


def _running(folder: Path) -> list[str]:
    """Processes of the command that was marked with the folder: all that were started inherit its environment.

    Without multiprocessing's own resource tracker, which ends by itself when the last of them has.
    """
    mark = f"{MARK}={folder}".encode()
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if process.name != str(os.getpid()) and mark in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_text())
        except OSError:
            continue
    return [line for line in found if "resource_tracker" not in line]


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("operator = 1", OperatorError, "operator = 1 is not a list"),
        ("operator = [1]", OperatorError, "operator 1: 1 is no table"),
        ("", OperatorError, "asks for nothing"),
        ("nonsense = 1", OperatorError, "unknown key 'nonsense'.*Known keys: accept_unfinished, budget"),
        ("[[operator]]", OperatorError, "operator 1: no source"),
        ('[[operator]]\nsource = "nope"', OperatorError, "no operator 'nope'.*rms_norm"),
        ('budget = 0\n[[operator]]\nsource = "add"', CaseError, "budget = 0"),
        ('chips = ["h100"]\n[[operator]]\nsource = "add"', CaseError, "h100"),
        ('[[operator]]\nsource = "add"\ncases = "all"', CaseError, 'The one value is "registry"'),
        (
            '[[operator]]\nsource = "add"\n[[operator.case]]\ninputs = {x = "float32[{n}]"}',
            CaseError,
            "n.*The grid has",
        ),
        (
            '[[operator]]\nsource = "add"\n[[operator.case]]\ngrid = {n = [1]}\n'
            'inputs = {x = "float32[{n.__class__}]", y = "float32[1]"}',
            CaseError,
            "{n.__class__} names nothing. The grid has n",
        ),
        (CASE + "grid = {n = 1}", CaseError, "a list of values"),
        (CASE + "grid = 1", OperatorError, "grid = 1 is not a table"),
        ('recorded = ["gone.json"]', CaseError, "gone.json"),
        ("[[", OperatorError, "is no TOML"),
    ],
)
def test_a_manifest_that_is_wrong_says_where(text: str, error: type[Exception], words: str, manifest: Path) -> None:
    manifest.write_text(text)
    with pytest.raises(error, match=words):
        read_manifest(manifest)


def test_a_manifest_lists_every_combination_once(manifest: Path, tmp_path: Path) -> None:
    calls = {"calls": [{"operator": "silu", "inputs": {"x": "float16[4,64]"}, "count": 3}]}
    (tmp_path / "calls.json").write_text(json.dumps(calls))
    manifest.write_text(
        'chips = ["ascend910b1", "ascend910b3"]\nrecorded = ["calls.json"]\nbudget = 7\n'
        + MANIFEST.replace("budget = 2", "")
        + 'attrs = { p = "{rows}" }\n[[operator]]\nsource = "registry/rms_norm"\nchips = ["ascend910b4"]\nbudget = 9\n'
    )
    wishes = read_manifest(manifest)
    adds = [w for w in wishes if w.source == "add"]
    assert {(w.options.chip, w.call.inputs["x"], w.call.attrs["p"]) for w in adds} == {
        (chip, f"float32[{rows},96]", rows) for chip in ("ascend910b1", "ascend910b3") for rows in (8, 16)
    }
    assert {w.options.budget for w in adds} == {7}
    norms = [w for w in wishes if w.source == "rms_norm"]
    assert {(w.options.chip, w.options.budget) for w in norms} == {("ascend910b4", 9)}
    assert len(norms) == 3  # the operator's own cases
    assert [w.options.chip for w in wishes if w.source == "silu"] == ["ascend910b1", "ascend910b3"]
