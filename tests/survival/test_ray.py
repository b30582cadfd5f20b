"""On Ray clusters that are started on this machine: the same results, and what a kill costs.

A task on a cluster of one node; as a battery (`make ray-battery`) tuning, prebuild and benchmark on three nodes, one of
which is killed in the middle.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from manifests import write_manifest
from ray_nodes import PATIENCE_S, RayCluster, nodes

from ascendopt_tune.deploy.prebuild import prebuild
from ascendopt_tune.errors import AscendOptError
from ascendopt_tune.store.cache import Cache
from ascendopt_tune.store.claim import FOLDER

pytest.importorskip("ray", reason="ray isn't installed")


def start(operator: Path, rows: list[int], *more: str) -> subprocess.Popen[str]:
    manifest = write_manifest(operator.parent / "manifest.toml", operator, rows, budget=5)
    command = [sys.executable, "-m", "ascendopt_tune", "prebuild", str(manifest), "-o", str(manifest.parent / "bundle")]
    return subprocess.Popen([*command, "--json", *more], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> list[dict[str, Any]]:
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
    entries: list[dict[str, Any]] = json.loads(out)["entries"]
    return entries


def test_a_task_that_is_killed_goes_on_and_only_what_changed_is_tuned(operator: Path, own_cache: Path) -> None:
    on_ray = ("--ray", "local", "--workers", "1")
    process = start(operator, [8], *on_ray)
    victim, journal, told = worker_at_its_third_line(process, own_cache)
    os.kill(victim, signal.SIGKILL)
    seen = told
    while process.poll() is None:  # every trial it had told of stays in the journal, which the next one goes on with
        try:
            seen = journal.read_bytes()
        except FileNotFoundError:
            break
        assert seen.startswith(told)
        time.sleep(0.05)
    assert len(seen) > len(told)
    first = finish(process)
    assert [e["result"] for e in first] == ["tuned"]

    more = finish(start(operator, [8, 16], *on_ray))
    assert sorted(e["result"] for e in more) == ["cached", "tuned"]
    assert first[0] | {"result": "cached"} in more
    again = finish(start(operator, [8, 16], "--workers", "1"))
    assert [e["best_us"] for e in again] == sorted(e["best_us"] for e in more)
    assert {e["result"] for e in again} == {"cached"}


def worker_at_its_third_line(process: subprocess.Popen[str], root: Path) -> tuple[int, Path, bytes]:
    """The process that holds the case's lock, once a trial is in its journal, the journal, and what it holds."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline and process.poll() is None:
        locks = {p.stat().st_ino for p in (root / FOLDER).glob("*")}
        rows = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
        holders = [int(r[4]) for r in rows if r[1] == "FLOCK" and int(r[5].rpartition(":")[2]) in locks]
        for journal in (root / "journals").glob("*.jsonl"):
            told = journal.read_bytes()
            if holders and told.endswith(b"\n") and told.count(b"\n") >= 3:
                return holders[0], journal, told
        time.sleep(0.02)
    raise AssertionError(process.communicate())


def test_a_cluster_that_is_not_there() -> None:
    with pytest.raises(AscendOptError, match=r"Ray at 'auto' can't be reached: .*ray status"):
        list(prebuild([], Cache(), workers=1, ray_address="auto"))


# -- three nodes ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], RayCluster]]:
    """A cluster of three nodes that are all there: started again where a test has killed one."""
    with contextlib.ExitStack() as stack:
        yield lambda: stack.enter_context(nodes(3, tmp_path_factory.mktemp("cluster")))


def run(
    *words: str, cache: Path, on: RayCluster | None = None, killing: Callable[[], None] | None = None, at: str = ""
) -> tuple[Any, str]:
    """The command's JSON and what it said on stderr. ``killing``: done at the first line that matches ``at``."""
    command = [sys.executable, "-m", "ascendopt_tune", *words, "--json", *(["--ray", on.address] if on else [])]
    environment = {**(on.environment if on else os.environ), "ASCENDOPT_CACHE_DIR": str(cache)}
    with (
        tempfile.TemporaryFile("w+") as out,
        subprocess.Popen(command, stdout=out, stderr=subprocess.PIPE, text=True, env=environment) as process,
    ):
        assert process.stderr is not None
        said = ""
        for line in process.stderr:
            said += line
            if killing is not None and re.search(at, line):
                killing()
                killing = None
        assert process.wait(PATIENCE_S) == 0, said
        assert killing is None, f"{at!r} was never said:\n{said}"
        out.seek(0)
        return json.loads(out.read()), said


@pytest.mark.battery
def test_a_run_is_the_same_on_a_cluster_that_loses_a_node(
    three: Callable[[], RayCluster], operator: Path, tmp_path: Path
) -> None:
    cluster = three()
    case = ("tune", str(operator), "--input", "x=float32[64,32]", "--input", "y=float32[64,32]", "--budget", "14")
    alone, _ = run(*case, cache=tmp_path / "alone")
    found, said = run(*case, cache=tmp_path / "c", on=cluster, killing=lambda: cluster.kill(1), at="^evaluation 5/")
    assert "a processor of the cluster is lost, 2 are left" in said
    for record in (alone, found):
        for name in ("seconds", "timings_s", "llm", "report"):  # the last tells when it was made
            del record[name]
    assert found == alone


@pytest.mark.battery
def test_a_prebuild_goes_on_without_a_node(three: Callable[[], RayCluster], operator: Path, tmp_path: Path) -> None:
    cluster = three()
    manifest = write_manifest(tmp_path / "manifest.toml", operator, [8, 16, 24, 32, 40, 48], budget=4)
    words = ("prebuild", str(manifest), "-o", str(tmp_path / "bundle"))
    document, _ = run(*words, cache=tmp_path / "c", on=cluster, killing=lambda: cluster.kill(2), at="^1/6 ")
    assert [entry["result"] for entry in document["entries"]] == ["tuned"] * 6


@pytest.mark.battery
def test_the_benchmark_goes_on_without_a_node(three: Callable[[], RayCluster], tmp_path: Path) -> None:
    cluster = three()
    words = ["bench", "search", "--list", "development", "--sizes", "decode", "--methods", "full,random"]
    words += ["--seeds", "1", "--budget", "4", "--results"]
    for name in ("add", "silu", "rope", "softmax"):
        words[2:2] = ["--operators", name]
    on_ray = [*words, str(tmp_path / "on-ray")]
    found, said = run(*on_ray, cache=tmp_path / "c", on=cluster, killing=lambda: cluster.kill(1), at="^1/8 ")
    assert len(found["runs"]) == 8, said
    alone, _ = run(*words, str(tmp_path / "alone"), cache=tmp_path / "alone-cache")
    traces = [{(r["operator"], r["method"]): r["trace"] for r in document["runs"]} for document in (found, alone)]
    assert traces[0] == traces[1]
    again, _ = run(*on_ray, cache=tmp_path / "c", on=cluster)
    assert len(again["runs"]) == 8
    lines = (tmp_path / "on-ray" / "runs.jsonl").read_text().splitlines()
    assert len(lines) == 8, "what is known is not run again"
