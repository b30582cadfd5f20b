"""``run --trace``: a file in the Chrome trace event format: what each core and pipe did, when, and from which line."""

from __future__ import annotations

import itertools
import json
import re
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Cli = Callable[..., subprocess.CompletedProcess[str]]
Document = Callable[..., dict[str, Any]]
Event = dict[str, Any]

# Two tiles with a buffer each way: every tile waits for the one before it.
KERNEL = """\
#include "kernel_operator.h"
using namespace AscendC;
extern "C" __global__ __aicore__ void twice(GM_ADDR x, GM_ADDR y, uint32_t rounds) {
  TPipe pipe;
  TQue<QuePosition::VECIN, 1> in;
  TQue<QuePosition::VECOUT, 1> out;
  pipe.InitBuffer(in, 1, 1024);
  pipe.InitBuffer(out, 1, 1024);
  GlobalTensor<float> from, to;
  from.SetGlobalBuffer((__gm__ float*)x + GetBlockIdx() * 512, 512);
  to.SetGlobalBuffer((__gm__ float*)y + GetBlockIdx() * 512, 512);
  for (int tile = 0; tile < 2; tile++) {
    LocalTensor<float> a = in.AllocTensor<float>();
    DataCopy(a, from[tile * 256], 256);
    in.EnQue(a);
    a = in.DeQue<float>();
    LocalTensor<float> b = out.AllocTensor<float>();
    for (uint32_t i = 0; i < rounds; i++) {
      Add(b, a, a, 256);
    }
    out.EnQue(b);
    in.FreeTensor(a);
    b = out.DeQue<float>();
    DataCopy(to[tile * 256], b, 256);
    out.FreeTensor(b);
  }
}
"""
CORES = 3


@pytest.fixture
def arguments(tmp_path: Path) -> list[str]:
    (tmp_path / "twice.cpp").write_text(KERNEL)
    tensors = ["--input", f"x=float32[{512 * CORES}]", "--output", f"y=float32[{512 * CORES}]"]
    return ["run", "--kernel", str(tmp_path / "twice.cpp"), "--entry", "twice", "--block-dim", str(CORES), *tensors]


def tracks(events: list[Event]) -> dict[tuple[int, int], list[Event]]:
    """Slices by (process, thread), in the order of time."""
    found: dict[tuple[int, int], list[Event]] = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            found[event["pid"], event["tid"]].append(event)
    for slices in found.values():
        slices.sort(key=lambda e: float(e["ts"]))
    return found


def names(events: list[Event], what: str) -> dict[tuple[int, int], str]:
    return {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == f"{what}_name"}


def in_nanoseconds(us: float) -> int:
    whole = round(us * 1000)
    assert abs(us * 1000 - whole) < 1e-3, "viewers round to nanoseconds"
    return whole


def test_the_trace_is_one_that_viewers_read(cli: Cli, arguments: list[str], tmp_path: Path) -> None:
    out = tmp_path / "trace.json"
    done = cli(*arguments, "--attr", "rounds=2", "--trace", str(out))
    assert "timeline (modelled)" in done.stdout
    document = json.loads(out.read_text())
    events = document["traceEvents"]
    assert document["otherData"]["time"] == "modelled"
    assert {e["ph"] for e in events} == {"M", "X", "s", "f"}
    assert all(type(e["pid"]) is int and type(e["tid"]) is int for e in events)
    by_track = tracks(events)

    # A process per core, a thread per pipe, all of them named.
    processes = {pid: name for (pid, _), name in names(events, "process").items()}
    assert sorted(processes.values()) == [*(f"core {i}" for i in range(CORES)), "task (modelled time)"]
    threads = names(events, "thread")
    assert {pid for pid, _ in by_track} == processes.keys()
    for pid in (p for p, name in processes.items() if name.startswith("core")):
        assert {n.split()[0] for (p, _), n in threads.items() if p == pid} == {"block", "S", "V", "MTE2", "MTE3"}

    # Slices of a thread don't overlap, and lie within the task.
    (task,) = (e for e in events if e.get("cat") == "task")
    for slices in by_track.values():
        spans = [(in_nanoseconds(e["ts"]), in_nanoseconds(e["ts"]) + in_nanoseconds(e["dur"])) for e in slices]
        assert all(a[1] <= b[0] for a, b in itertools.pairwise(spans))
        assert all(0 <= begin <= end <= in_nanoseconds(task["dur"]) for begin, end in spans)

    # Every arrow begins and ends inside a slice, and leads forward.
    arrows: dict[int, dict[str, Event]] = defaultdict(dict)
    for e in events:
        if e["ph"] in "sf":
            assert e["ph"] not in arrows[e["id"]]
            arrows[e["id"]][e["ph"]] = e
            inside = [x for x in by_track[e["pid"], e["tid"]] if x["ts"] <= e["ts"] < x["ts"] + x["dur"] - 1e-6]
            assert len(inside) == 1
    assert all(a["s"]["ts"] < a["f"]["ts"] and a["f"]["bp"] == "e" for a in arrows.values())
    edges = {a["s"]["name"].split()[0] for a in arrows.values()}
    assert edges >= {"MTE2_V", "V_MTE3", "V_MTE2", "MTE3_V"}, "data forward, buffers back"


def test_the_trace_tells_what_the_kernel_did(document: Document, arguments: list[str], tmp_path: Path) -> None:
    out = tmp_path / "trace.json"
    found = document(*arguments, "--attr", "rounds=3", "--trace", str(out))
    assert found["trace"] == {"file": str(out), "left_out": ""}
    events = json.loads(out.read_text())["traceEvents"]
    instructions = [e for e in events if e.get("cat") == "instruction"]
    moved = sum(e["args"].get("bytes", 0) for e in instructions)
    counters = found["profile"]["counters"]
    assert moved == counters["mte2_bytes"] + counters["mte3_bytes"] == 2 * 4 * 512 * CORES
    assert sum(e["name"] == "Add" for e in instructions) == 3 * 2 * CORES
    lines = KERNEL.splitlines()
    for event in instructions:
        place = re.fullmatch(r"(.*):(\d+) \(twice\)", event["args"]["source"])
        assert place is not None
        assert Path(place[1]) == tmp_path / "twice.cpp"
        assert event["name"] in lines[int(place[2]) - 1]
    # One buffer each way: the vector pipe waits for the copy of every tile.
    waits = [e for e in events if e.get("cat") == "wait" and e["name"].startswith("waits for MTE2")]
    assert len([e for e in waits if e["dur"] > 0]) == 2 * CORES
    (task,) = (e for e in events if e.get("cat") == "task")
    assert task["dur"] == pytest.approx(found["profile"]["task_duration_us"], abs=1e-3)

    first = out.read_bytes()
    document(*arguments, "--attr", "rounds=3", "--trace", str(out))
    assert out.read_bytes() == first, "the same run, the same trace"


def test_a_long_trace_says_what_it_leaves_out(cli: Cli, arguments: list[str], tmp_path: Path) -> None:
    out = tmp_path / "trace.json"
    done = cli(*arguments, "--attr", "rounds=30000", "--trace", str(out))
    note = f"what blocks 1 to {CORES - 1} of {CORES} did in detail"
    assert note in done.stdout
    document = json.loads(out.read_text())
    assert note in document["otherData"]["left_out"]
    bars = [e for e in document["traceEvents"] if e.get("cat") == "block"]
    assert len(bars) == CORES
    assert {e["pid"] for e in document["traceEvents"] if e.get("cat") == "instruction"} == {bars[0]["pid"]}


def test_ctrl_c_leaves_no_half_written_trace(cli: Cli, arguments: list[str], tmp_path: Path) -> None:
    out = tmp_path / "out" / "trace.json"
    out.parent.mkdir()
    out.write_text("what was there")
    command = [sys.executable, "-m", "ascendopt_tune", *arguments, "--attr", "rounds=30000", "--trace", str(out)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    process.stderr.readline()  # it works
    time.sleep(1.5)
    process.send_signal(signal.SIGINT)
    _, complaint = process.communicate(timeout=300)
    if process.returncode != 0:  # else it had ended by then
        assert process.returncode == 130
        assert "Traceback" not in complaint
        assert out.read_text() == "what was there"
    assert [p.name for p in out.parent.iterdir()] == ["trace.json"]


def test_a_trace_that_can_not_be_written_is_refused_before_anything_runs(
    refused: Callable[..., str], arguments: list[str], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    assert "--trace" in refused(*arguments, "--attr", "rounds=1", "--trace", str(tmp_path / "file" / "trace.json"))
