"""Hazards and memory errors: racy and race-free twins with the verdict as a formula, and misuse by kind."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ascendopt_tune.build import toolkit
from ascendopt_tune.device.acl import Acl, Binary
from ascendopt_tune.device.options import LaunchOptions
from ascendopt_tune.errors import DeviceError
from ascendopt_tune.evaluate.protocol import Habits
from ascendopt_tune.evaluate.verdict import failure_of
from ascendopt_tune.nouns.chip import DEFAULT_CHIP, load_chip
from ascendopt_tune.nouns.outcome import Hazard

SOURCE = Path(__file__).resolve().parent / "kernels" / "hazards.cpp"
COUNT = 256  # floats a tile, as in the kernels
TILES = 4


@cache
def device() -> Acl:
    return Acl(toolkit.virtual())


@cache
def binary(auto_sync: str) -> bytes:
    return device().compile(SOURCE.read_text(), SOURCE.name, [f"--cce-auto-sync={auto_sync}"])


@cache
def kernels(auto_sync: str) -> Binary:
    return device().load(binary(auto_sync))


@pytest.fixture(autouse=True)
def default_options() -> Iterator[None]:
    yield
    device().options = LaunchOptions()


def run(
    name: str, number: int, cores: int = 1, auto_sync: str = "off", written: int = TILES * COUNT
) -> tuple[np.ndarray[Any, Any], dict[str, Any]]:
    """(what the kernel wrote, the report). ``written``: elements of the output somebody has written before."""
    acl = device()
    x = np.arange(TILES * COUNT, dtype=np.float32)
    y = np.full_like(x, -1)
    px, py = acl.malloc(x.nbytes), acl.malloc(y.nbytes)
    try:
        acl.memcpy_h2d(px, x)
        acl.memcpy_h2d(py, y)
        acl.unwritten(py + 4 * written, y.nbytes - 4 * written)
        acl.launch(kernels(auto_sync).function(name), cores, [px, py, ctypes.c_uint32(number)])
        acl.synchronize()
        acl.memcpy_d2h(y, py)
        return y, acl.report()
    finally:
        acl.free(px)
        acl.free(py)


@pytest.mark.parametrize("bits", range(8))
def test_cores_that_store_the_same_bytes_need_no_order_until_one_stores_others_or_loads(bits: int) -> None:
    with device().with_options(writes=True):
        _, report = run("cleared", bits, cores=3)
    assert bool(report["hazards"]) == (bits != 1)
    assert run("cleared", bits, cores=3)[1]["hazards"]  # without a look at the bytes all of them are


@pytest.mark.parametrize("bits", range(2))
def test_sums_are_ordered_behind_what_they_add_to(bits: int) -> None:
    """Though the core that clears adds, too, and to more."""
    _, report = run("added", bits, cores=3)
    assert bool(report["hazards"]) == (bits == 0)


def edges(report: dict[str, Any]) -> set[tuple[str, str]]:
    return {(h["first"]["pipe"], h["second"]["pipe"]) for h in report["hazards"]}


@pytest.mark.parametrize("fences", range(16))
def test_pipeline_twins(fences: int) -> None:
    y, report = run("pipeline", fences)
    missing = set()
    if not fences & 1:
        missing.add(("MTE2", "V"))
    if not fences & 2:
        missing.add(("V", "MTE3"))
    # The buffer is used again: without its flag the second load may come before the first computation.
    if not fences & 4:
        missing.add(("V", "MTE2"))
    if not fences & 8:
        missing.add(("MTE3", "V"))
    assert missing <= edges(report)
    assert (not report["hazards"]) == (fences == 15)
    np.testing.assert_array_equal(y[: 2 * COUNT], 2 * np.arange(2 * COUNT))  # program order hides every race


@pytest.mark.parametrize(("kernel", "edge"), [("dependent", ("V", "V")), ("overwrite", ("MTE2", "MTE2"))])
@pytest.mark.parametrize("fences", [0, 1])
def test_same_pipe_twins(kernel: str, edge: tuple[str, str], fences: int) -> None:
    _, report = run(kernel, fences)
    assert edges(report) == (set() if fences & 1 else {edge})
    if not fences & 1:
        assert "PipeBarrier" in report["hazards"][0]["missing"]


@pytest.mark.parametrize("fences", range(4))
def test_scalar_twins(fences: int) -> None:
    _, report = run("scalars", fences)
    assert (("MTE2", "S") in edges(report)) == (not fences & 1)
    assert (("S", "V") in edges(report)) == (not fences & 2)


@pytest.mark.parametrize("cores", [1, 2, 3])
@pytest.mark.parametrize("fences", [0, 1])
@pytest.mark.parametrize("auto_sync", ["on", "off"])
def test_cores_that_share_global_memory(cores: int, fences: int, auto_sync: str) -> None:
    """The compiler can't order cores, so automatic synchronization makes no difference."""
    _, report = run("shared", fences, cores, auto_sync)
    racy = cores >= 2 and not fences & 1
    assert bool(report["hazards"]) == racy
    if racy:
        hazard = report["hazards"][0]
        assert hazard["memory"] == "GM"
        assert {hazard["first"]["core"], hazard["second"]["core"]} == {0, 1}
        assert "SyncAll" in hazard["missing"]


@pytest.mark.parametrize("tiles", [1, 2, 4])
@pytest.mark.parametrize("auto_sync", ["on", "off"])
def test_queues_order_their_users(tiles: int, auto_sync: str) -> None:
    y, report = run("queues", tiles, auto_sync=auto_sync)
    assert report["hazards"] == []
    np.testing.assert_array_equal(y[: tiles * COUNT], 2 * np.arange(tiles * COUNT))


@pytest.mark.parametrize("fences", [0, 5, 15])
def test_automatic_synchronization_orders_one_core_and_costs_time(fences: int) -> None:
    _, ordered = run("pipeline", fences, auto_sync="on")
    assert ordered["hazards"] == []
    _, explicit = run("pipeline", 15)
    # What the compiler would have inserted takes at least as long as nothing, and no longer than a flag everywhere.
    fastest = run("pipeline", 0)[1]["profile"]["task_duration_us"]
    assert fastest < ordered["profile"]["task_duration_us"] <= explicit["profile"]["task_duration_us"] + 0.01


@pytest.mark.parametrize("bits", range(8))
def test_what_fills_global_memory_leaves_its_copies_on_their_way(bits: int) -> None:
    """asc-devkit, Fill, constraints: MTE3_MTE2 before UB is used, MTE3_V before another value."""
    y, report = run("filled", bits)
    missing = set()
    if not bits & 1:
        missing |= {("V", "MTE2"), ("MTE3", "MTE2")}
    if bits & 4 and not bits & 2:
        missing |= {("V", "V"), ("MTE3", "V")}
    assert edges(report) == missing
    expected = np.repeat(np.float32([7, 8 if bits & 4 else 7]), COUNT)
    np.testing.assert_array_equal(y[: 3 * COUNT], np.concatenate([np.arange(COUNT), expected]))


@pytest.mark.parametrize("kind", range(6))
def test_select_orders_what_comes_before_it(kind: int) -> None:
    """It sets the compare mask register first, behind a barrier; the count form of modes 0 and 2 ends with one
    (asc-devkit, dav_c220, kernel_operator_vec_cmpsel_impl.h)."""
    y, report = run("chosen", kind)
    assert edges(report) == (set() if kind in (0, 2) else {("V", "V")})
    np.testing.assert_array_equal(y[:COUNT], 2 * np.arange(COUNT) + 1)


@pytest.mark.parametrize("mode", range(3))
def test_select_takes_a_part_of_the_unified_buffer(mode: int) -> None:
    """AscendC reference, Select, constraints: modes 1 and 2 need 8 KB of it."""
    y, report = run("reserved", mode)
    assert not report["hazards"]
    lost = 32 if mode else 0
    address = np.uint32(16384).view(np.float32)  # of the selection's bits
    assert (y[:lost] == (-100 if mode == 1 else address)).all()
    np.testing.assert_array_equal(y[lost:COUNT], np.arange(lost, COUNT))
    uses = report["unwritten"]
    assert len(uses) == (1 if mode else 0)
    assert all("Select" in str(u) for u in uses)


@pytest.mark.parametrize("bits", range(4))
def test_numbers_begin_with_stores_of_the_scalar_unit(bits: int) -> None:
    """Nothing waits for vector instructions before (asc-devkit, kernel_operator_vec_createvecindex_impl.h)."""
    y, report = run("numbered", bits)
    assert edges(report) == (set() if bits & 1 else {("V", "S"), ("MTE2", "S")})
    n = 8 if bits & 2 else COUNT
    np.testing.assert_array_equal(y[:n], 3 * np.arange(n))


#: By call of kernels/hazards.cpp: whether it ends with a barrier (asc-devkit, impl/adv_api/detail, architecture 2201).
BARRIERS = {
    "Tanh": True,
    "Sigmoid": True,
    "Log": False,
    "Floor": False,
    "BroadCast": True,
    "Sum of several steps": True,
    "Sum of one step": False,
}


@pytest.mark.parametrize(("kind", "ordered"), list(enumerate(BARRIERS.values())), ids=list(BARRIERS))
def test_calls_made_of_others_end_with_their_barrier(kind: int, ordered: bool) -> None:
    _, report = run("followed", kind)
    assert edges(report) == (set() if ordered else {("V", "V")})


def test_a_report_names_both_accesses() -> None:
    _, report = run("pipeline", 14)
    hazard = report["hazards"][0]
    assert hazard["memory"] == "UB"
    assert (hazard["begin"], hazard["end"]) == (0, COUNT * 4)
    assert (hazard["first"]["api"], hazard["first"]["access"]) == ("DataCopy", "write")
    assert (hazard["second"]["api"], hazard["second"]["access"]) == ("Add", "read")
    assert hazard["missing"].startswith("SetFlag<HardEvent::MTE2_V> / WaitFlag<HardEvent::MTE2_V>")


def test_a_report_in_words(tmp_path: Path) -> None:
    """Pipe, API, source line, buffer, bytes and core of both accesses, and the missing edge."""
    lines = SOURCE.read_text().splitlines()
    load = next(i for i, text in enumerate(lines, 1) if "DataCopy(t.a, global(x, i * kCount), kCount);" in text)
    _, report = run("pipeline", 14)
    file = tmp_path / "kernel.o"
    file.write_bytes(binary("off"))
    trial = {"report": report, "error": "", "damage": []}
    failure = failure_of(trial, file, [toolkit.virtual().include], "trial")
    assert isinstance(failure, Hazard)
    assert "The read by Add on pipe V at " in failure.reason
    assert f"{SOURCE.name}:{load} (pipeline)" in failure.reason
    assert "is not ordered after the write by DataCopy on pipe MTE2 at " in failure.reason
    assert f"both touch UB bytes [0, {COUNT * 4}) on core 0" in failure.reason
    assert "Missing: SetFlag<HardEvent::MTE2_V>" in failure.reason


def test_an_order_that_the_original_does_not_leave_to_the_compiler_is_told_with_its_place(tmp_path: Path) -> None:
    """The compiler is documented to order vector instructions and scalar accesses, nothing else."""
    lines = SOURCE.read_text().splitlines()
    load = next(i for i, text in enumerate(lines, 1) if "DataCopy(t.a, global(x, i * kCount), kCount);" in text)
    _, report = run("pipeline", 14, auto_sync="on")
    file = tmp_path / "kernel.o"
    file.write_bytes(binary("on"))
    trial = {"report": report, "error": "", "damage": []}
    foreign = [toolkit.virtual().include]
    failure = failure_of(trial, file, foreign, "trial", Habits())
    assert isinstance(failure, Hazard)
    assert "relies on more than the original does, none of it documented: MTE2_V order. The read by" in failure.reason
    assert "is not ordered after the write by DataCopy on pipe MTE2 at " in failure.reason
    assert f"{SOURCE.name}:{load} (pipeline)" in failure.reason
    assert "Missing: SetFlag<HardEvent::MTE2_V>" in failure.reason
    assert "documented to order vector instructions with each other" in failure.reason
    assert failure_of(trial, file, foreign, "trial", Habits(relies_on=("MTE2_V order",))) is None
    assert not run("pipeline", 15, auto_sync="on")[1]["leaned_on"]


@pytest.mark.parametrize("n", [1, 3, 7, 8])
@pytest.mark.parametrize("j", range(8))
@pytest.mark.parametrize("after", [0, 1])
def test_bytes_of_one_block_are_told_apart(n: int, j: int, after: int) -> None:
    _, report = run("neighbours", n | j << 8 | after << 16)
    edge = ("V", "S") if after else ("S", "V")
    assert edges(report) == ({edge} if j < n else set())
    for hazard in report["hazards"]:
        assert (hazard["begin"], hazard["end"]) == (4 * j, 4 * j + 4)


@pytest.mark.parametrize("fences", [0, 1])
@pytest.mark.parametrize("auto_sync", ["on", "off"])
def test_results_in_registers(fences: int, auto_sync: str) -> None:
    _, report = run("registers", fences, auto_sync=auto_sync)
    assert edges(report) == (set() if fences or auto_sync == "on" else {("V", "S")})


@pytest.mark.parametrize("fences", range(8))
@pytest.mark.parametrize("auto_sync", ["on", "off"])
def test_the_compiler_does_not_order_copies_through_global_memory(fences: int, auto_sync: str) -> None:
    _, report = run("through_global", fences, auto_sync=auto_sync)
    expected = set()
    if not fences & 1:
        expected.add(("MTE3", "MTE2"))
    if not fences & 2:
        expected.add(("MTE3", "MTE3"))
    assert edges(report) == expected
    assert all(h["memory"] == "GM" and "kernel parameter 1" in h["buffer"] for h in report["hazards"])


@pytest.mark.parametrize("loaded", [8, 16, 32])
@pytest.mark.parametrize("computed", [8, 16, 32])
@pytest.mark.parametrize("stored", [8, 16, 32])
@pytest.mark.parametrize("again", [0, 1])
def test_unwritten_bytes_matter_where_they_reach_an_output(loaded: int, computed: int, stored: int, again: int) -> None:
    """In blocks of 8 elements. Padding may be loaded, computed and stored, as long as it is not what remains."""
    _, report = run("unwritten", loaded | computed << 8 | stored << 16 | again << 24)
    clean = min(loaded, computed)
    assert not report["hazards"]
    assert bool(report["unwritten"]) == (stored > clean and not again)
    for use in report["unwritten"]:
        assert (use["sink"]["api"], use["sink"]["pipe"]) == ("DataCopy", "MTE3")
        assert (use["sink_begin"], use["sink_end"]) in ((clean * 32, stored * 32), (clean * 32, computed * 32))
        assert use["first"]["api"] == ("Add" if loaded < min(computed, stored) else "DataCopy")


@pytest.mark.parametrize("loaded", [8, 16, 24, 32])
@pytest.mark.parametrize("asked", range(0, 32, 5))
@pytest.mark.parametrize("how", ["scalar", "repeats", "sum", "atomic", "blocks"])
def test_unwritten_bytes_in_other_instructions(loaded: int, asked: int, how: str) -> None:
    number = {"scalar": 0, "repeats": 1, "sum": 2, "atomic": 3, "blocks": 5}[how]
    if how == "scalar":
        asked *= 8
    elif how == "repeats":
        asked %= 4
    elif how == "sum":
        asked += 1
    elif how == "blocks":
        asked %= 16
    _, report = run("unwritten_use", loaded | asked << 8 | number << 16, written=asked * 8 if how == "atomic" else 1024)
    racy = {"scalar": asked >= loaded * 8, "repeats": (asked + 1) * 8 > loaded, "sum": asked > loaded,
            "atomic": asked < loaded, "blocks": 56 + asked >= loaded * 8}[how]  # fmt: skip
    assert bool(report["unwritten"]) == racy


@pytest.mark.parametrize(("kind", "expected"), [(0, [0.0] * 8), (1, [0.0] + [5.0] * 7), (2, None)])
def test_what_stands_beside_a_copied_piece(kind: int, expected: list[float] | None) -> None:
    """Without a padding value the device repeats the first element, or leaves random values next to padding."""
    y, report = run("unwritten_use", 8 | kind << 8 | 4 << 16)
    assert bool(report["unwritten"]) == (expected is None)
    if expected is not None:
        np.testing.assert_array_equal(y[:8], expected)


@pytest.mark.parametrize(
    ("kind", "error", "says"),
    [
        (0, "out_of_bounds", "a tensor of"),
        (1, "out_of_bounds", "its buffer"),
        (2, "misuse", "not aligned"),
        (3, "misuse", "every buffer of the queue is taken"),
        (4, "deadlock", "no SetFlag"),
        (5, "deadlock", "1 of 2 cores"),
        (6, "misuse", "empty: CANN's CPU debugging stops here"),
        (7, "out_of_bounds", "UB overflow"),
        (8, "misuse", "freed already"),
        (9, "misuse", "event ids"),
        (10, "misuse", "no WaitFlag"),
        (11, "deadlock", "twice with no WaitFlag"),
        (12, "out_of_bounds", "a tensor of"),
    ],
)
@pytest.mark.parametrize("auto_sync", ["on", "off"])
def test_misuse_ends_the_launch_and_says_why(kind: int, error: str, says: str, auto_sync: str) -> None:
    x = np.zeros(2 * COUNT, np.float32)  # kind 0 copies two tiles from the second of two
    acl = device()
    px, py = acl.malloc(x.nbytes), acl.malloc(x.nbytes)
    try:
        acl.launch(kernels(auto_sync).function("misuse"), 2, [px, py, ctypes.c_uint32(kind)])
        with pytest.raises(DeviceError) as caught:
            acl.synchronize()
    finally:
        acl.free(px)
        acl.free(py)
    report = acl.report()
    assert report["errors"][0]["kind"] == error
    assert says in report["errors"][0]["message"]
    assert says in str(caught.value)
    assert run("queues", 2)[1]["status"] == 0  # the next launch is not affected


@pytest.mark.parametrize("bits", range(4))
def test_a_queue_s_flag_is_no_pair_with_a_kernel_s(bits: int) -> None:
    if bits & 1:
        assert run("freed", bits, written=0)[1]["status"] == 0
    else:
        with pytest.raises(DeviceError, match="SetFlag<MTE3_V> on event 0 has no WaitFlag"):
            run("freed", bits, written=0)


@pytest.mark.parametrize("option", ["hazards", "timing"])
def test_observers_never_change_values(option: str) -> None:
    on, report = run("queues", 4)
    with device().with_options(**{option: False}):
        off, silent = run("queues", 4)
    assert on.tobytes() == off.tobytes()
    if option == "timing":
        assert silent["profile"]["task_duration_us"] == 0
    else:
        assert silent["profile"] == report["profile"]


def test_modelled_time_repeats_exactly() -> None:
    first = run("queues", 4)[1]["profile"]
    keep = [device().malloc(12345) for _ in range(3)]  # other addresses
    try:
        assert run("queues", 4)[1]["profile"] == first
    finally:
        for p in keep:
            device().free(p)


def test_more_blocks_than_cores_run_one_after_another() -> None:
    """Modelled: twice the blocks of one core each take a second wave, they are not free."""
    one = run("queues", 4, cores=48)[1]["profile"]
    two = run("queues", 4, cores=96)[1]["profile"]
    values = load_chip(DEFAULT_CHIP).values
    floor = float(values["vector.counter_floor_cycles"]) / float(
        values["core.clock_mhz"]
    )  # of the counter, once a core
    assert two["aiv_vec_time_us"] - floor == pytest.approx(2 * (one["aiv_vec_time_us"] - floor))
    assert two["aiv_time_us"] > one["aiv_time_us"]
    assert two["task_duration_us"] > one["task_duration_us"]
