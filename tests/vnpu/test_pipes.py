"""TPipe objects one after another, and queues into L1 (asc-devkit, kernel_tpipe_impl.h and its documents)."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_cube import clean, default_options, device, launch

from ascendopt_tune.device.acl import Binary
from ascendopt_tune.errors import DeviceError

__all__ = ["default_options"]
SOURCE = Path(__file__).resolve().parent / "kernels" / "pipes.cpp"
COUNT = 512


@cache
def kernels() -> Binary:
    return device().load(device().compile(SOURCE.read_text(), SOURCE.name, ["--cce-auto-sync=off"]))


def run(name: str, *numbers: int) -> tuple[np.ndarray[Any, Any], dict[str, Any]]:
    x, y = np.arange(COUNT, dtype=np.float32), np.zeros(COUNT, np.float32)
    report = launch(name, [x], y, *map(ctypes.c_uint32, numbers), binary=kernels())
    return y - x, report


@pytest.mark.parametrize("ends", [0, 1], ids=["destructor", "Destroy"])
@pytest.mark.parametrize("many", [1, 2, 5])
def test_each_has_all_of_the_memory_and_waits_for_all_pipes(many: int, ends: int) -> None:
    added, report = run("steps", many, ends)
    clean(report)
    assert report["errors"] == []
    assert (added == many).all()


def test_without_all_pipes_what_follows_is_not_ordered() -> None:
    """What was freed is waited for, so that the buffers are free; what was stored may still be on its way."""
    _, report = run("steps", 2, 2)
    assert {(h["first"]["pipe"], h["second"]["pipe"], h["memory"]) for h in report["hazards"]} >= {
        ("MTE3", "MTE2", "GM")
    }


def test_what_an_end_costs_is_seen_where_something_follows() -> None:
    """The last one's end is the kernel's: as long as without a destructor. Between two there is what Destroy takes."""
    times = {(many, ends): run("steps", many, ends)[1]["profile"]["aiv_time_us"] for many in (1, 3) for ends in (0, 1)}
    assert times[1, 0] <= times[1, 1]
    assert times[3, 0] - times[1, 0] == pytest.approx(times[3, 1] - times[1, 1], abs=0.03)


def test_two_that_are_there_at_once_share_the_memory() -> None:
    """CANN allows one at a time; here a second one has what the first one leaves."""
    with pytest.raises(DeviceError, match="InitBuffer was asked for 327680 B in all"):
        run("together")


def test_a_new_one_begins_with_the_whole_mask() -> None:
    added, report = run("afresh")
    clean(report)
    assert (added == 1).all()


def test_a_queue_into_l1() -> None:
    added, report = run("scm")
    clean(report)
    assert (added == 0).all()


def test_a_vector_core_has_no_l1() -> None:
    with pytest.raises(DeviceError, match="which is the cube core's: copies to TSCM that a vector core asks"):
        run("scm_of_a_vector_core")


def test_the_flags_of_the_matrix_unit_are_each_ones_own() -> None:
    _, report = run("matrix_flags", 0)
    assert report["errors"] == []
    with pytest.raises(DeviceError, match="nobody has raised it again"):
        run("matrix_flags", 1)


@pytest.mark.parametrize("ends", [1, 2], ids=["Destroy", "the kernel's end"])
def test_flags_that_the_kernel_has_raised_stay_beside_a_tpipes(ends: int) -> None:
    _, report = run("late_pipe", ends, 1)
    assert report["errors"] == []
    with pytest.raises(DeviceError, match="M_MTE1> on event 0 has no WaitFlag"):
        run("late_pipe", ends, 0)


def test_a_tpipes_flags_are_not_the_kernels() -> None:
    with pytest.raises(DeviceError, match="event 0"):  # Destroy has taken its own: there is one
        run("late_pipe", 1, 2)
    with pytest.raises(DeviceError, match="nobody has raised it again"):
        run("late_pipe", 2, 2)
