"""The data cache between the scalar unit and everybody else, as asc-devkit documents DataCacheCleanAndInvalid and
GlobalTensor's SetValue and GetValue: lines of 64 bytes that stay until they are written back."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ascendopt_tune.build import toolkit
from ascendopt_tune.device.acl import Acl, Binary

SOURCE = Path(__file__).resolve().parent / "kernels" / "data_cache.cpp"
FLOATS = 1024


@cache
def device() -> Acl:
    return Acl(toolkit.virtual())


@cache
def kernels(auto_sync: str) -> Binary:
    return device().load(device().compile(SOURCE.read_text(), SOURCE.name, [f"--cce-auto-sync={auto_sync}"]))


def hazards(name: str, one: int, two: int = 0, cores: int = 1, auto_sync: str = "off") -> list[dict[str, Any]]:
    acl = device()
    x = np.zeros(FLOATS, np.float32)
    px, py = acl.malloc(x.nbytes), acl.malloc(x.nbytes)
    try:
        acl.memcpy_h2d(px, x)
        acl.memcpy_h2d(py, x)
        args = [px, py, ctypes.c_uint32(one), ctypes.c_uint32(two)]
        acl.launch(kernels(auto_sync).function(name), cores, args)
        acl.synchronize()
    finally:
        acl.free(px)
        acl.free(py)
    report = acl.report()
    assert report["errors"] == []
    told: list[dict[str, Any]] = report["hazards"]
    return told


@pytest.mark.parametrize("auto_sync", ["on", "off"])
@pytest.mark.parametrize("how", range(4))
@pytest.mark.parametrize(("what", "edge"), [*enumerate([("S", "MTE2"), ("S", "MTE3"), ("MTE3", "S"), ("MTE3", "S")])])
def test_copies_pass_the_cache_by(what: int, edge: tuple[str, str], how: int, auto_sync: str) -> None:
    """Flags don't help, and the compiler's neither: the line has to go."""
    told = hazards("alone", what, how, auto_sync=auto_sync)
    assert [(h["first"]["pipe"], h["second"]["pipe"]) for h in told] == ([edge] if how in (0, 3) else [])
    assert all("DataCacheCleanAndInvalid" in h["missing"] for h in told)


@pytest.mark.parametrize("what", [4, 5])
def test_what_the_line_has_no_part_in(what: int) -> None:
    assert hazards("alone", what) == []


@pytest.mark.parametrize("bits", range(8))
def test_another_core_sees_what_is_written_back_before_they_meet(bits: int) -> None:
    told = hazards("handed_on", bits, cores=2)
    assert len(told) == (bits & 3 != 3)
    assert all("DataCacheCleanAndInvalid" in h["missing"] for h in told)


@pytest.mark.parametrize("how", range(3))
@pytest.mark.parametrize("stride", [1, 8, 15, 16, 17, 32])
def test_cores_that_store_to_one_line_overwrite_each_other(stride: int, how: int) -> None:
    """Three cores, each an element of its own."""
    shared = len({core * stride // 16 for core in range(3)}) < 3
    assert bool(hazards("neighbours", stride, how, cores=3)) == shared


@pytest.mark.parametrize("before", [0, 1])
@pytest.mark.parametrize("how", range(4))
def test_a_line_that_was_loaded_stays_as_old_as_it_is(how: int, before: int) -> None:
    assert bool(hazards("kept", how, before, cores=2)) == (before == 1 and how in (0, 3))


@pytest.mark.parametrize(("what", "told"), [(0, False), (1, True), (2, True), (3, False)])
def test_a_reference_is_a_load_or_a_store_by_what_is_done_with_it(what: int, told: bool) -> None:
    """asc-devkit: operator() gives a reference to the element. Two cores that load one do nothing to each other."""
    found = hazards("referred", what, 64, cores=2)
    assert bool(found) == told
    assert all("GlobalTensor::operator()" in str(h) for h in found)


@pytest.mark.parametrize(("what", "waits"), [(0, False), (1, True), (2, True)])
@pytest.mark.parametrize("fenced", [0, 1])
def test_a_reference_into_local_memory_waits_for_what_it_meets(what: int, waits: bool, fenced: int) -> None:
    """A load of what a vector instruction reads needs no flag; a store there, and a load of what it writes, do."""
    first = hazards("referred_locally", what, fenced)
    assert bool(first) == (waits and not fenced)
