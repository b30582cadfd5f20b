"""Cube cores: every synchronization of a chain is missed when it is left out, and every limit is kept."""

from __future__ import annotations

import ctypes
import re

import numpy as np
import pytest
from test_cube import ProductCase, clean, default_options, launch, operands, word

from ascendopt_tune.errors import DeviceError

__all__ = ["default_options"]

#: What the kernel `chain` leaves out -> the memory in which it is missed.
EDGES = {
    1: ("MTE2_MTE1", "L1"),
    2: ("MTE1_M", "L0A"),
    3: ("M_FIX", "L0C"),
    4: ("MTE1_MTE2", "L1"),
    5: ("M_MTE1", "L0A"),
    6: ("FIX_M", "L0C"),
    7: ("PIPE_M", "L0C"),
    8: ("MTE2_FIX", "L1"),
    9: ("PIPE_FIX", "FB"),
    10: ("FIX_MTE2", "L1"),
    11: ("PIPE_MTE2", "L1"),
    12: ("PIPE_MTE1", "L0A"),
}
#: Each alone where nothing else orders the same: 4, 5 and 6 follow from 10 in the next round, 8 from 1, 2 and 3, and 9
#: is what Fixpipe to global memory begins with (asc-devkit, fixpipe_v2_impl.h).
ALONE = ((), (1,), (2,), (3,), (7,), (10,), (11,), (12,))
IMPLIED = ((4,), (5,), (6,), (8,), (9,))
#: 4 and 10 left out, copies of both rounds to one place have no order, either: 11's, which is between other copies.
TOGETHER = ((4, 10, 11), (5, 10), (6, 10), (8, 3))


@pytest.mark.parametrize("left_out", [*ALONE, *IMPLIED, *TOGETHER], ids=str)
def test_what_is_left_out_is_what_is_missed(left_out: tuple[int, ...]) -> None:
    a, b, _ = operands("int8", 32, 32, 32)
    words = np.full(32, word(0.01), np.uint64)
    out = np.zeros((2, 32, 32), np.float16)
    mask = ctypes.c_uint32(sum(1 << i for i in left_out))
    report = launch("chain", [a, np.ascontiguousarray(b.T), words], out, mask)
    found = {(re.findall(r"PIPE_\w+|HardEvent::(\w+)", h["missing"])[0] or re.findall(r"PIPE_\w+", h["missing"])[0])
             for h in report["hazards"]}  # fmt: skip
    assert found == (set() if left_out in IMPLIED else {EDGES[i][0] for i in left_out})
    memories = {h["memory"] for h in report["hazards"]}
    assert left_out in IMPLIED or {EDGES[i][1] for i in left_out} <= memories


def test_queues_order_all_of_it() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((5, 32, 32)).astype(np.float16) for _ in range(2))
    out = np.zeros((5, 32, 32), np.float32)
    clean(launch("queues", [a, b], out))
    np.testing.assert_allclose(out, a.astype(np.float64) @ b.astype(np.float64).transpose(0, 2, 1), atol=1e-4)


@pytest.mark.parametrize("wrong", [0, 1, 2])
def test_unit_flags_hand_results_over(wrong: int) -> None:
    m, n, k = 32, 48, 32
    a, b, bias = operands("float16", m, n, k)
    out = np.zeros((2, m, n), np.float32)
    arguments = ([a, np.ascontiguousarray(b.T), bias], out, ctypes.c_uint32(wrong),
                 ProductCase(m, n, k, 0, 1, 0, 0, 0, n, 0, 0))  # fmt: skip
    if wrong:
        with pytest.raises(DeviceError, match=("are not set" if wrong == 1 else "are set: the core would wait")):
            launch("unit_flags", *arguments)
        return
    clean(launch("unit_flags", *arguments))
    exact = 2 * (a.astype(np.float64) @ b.astype(np.float64))
    np.testing.assert_allclose(out, [exact, exact], atol=1e-3)


@pytest.mark.parametrize("left_out", [0, 1])
def test_unit_flags_order_what_the_product_waited_for(left_out: int) -> None:
    """Fixpipe writes over what MTE2 has read: MTE2 before MTE1 before M, which raised the flags."""
    report = launch("through_unit_flags", [], np.ones((32, 32), np.float32), ctypes.c_uint32(left_out))
    assert {(h["memory"], h["missing"].split("HardEvent::")[-1].split(">")[0]) for h in report["hazards"]} == (
        {("L0A", "MTE1_M"), ("L0B", "MTE1_M"), ("GM", "MTE2_FIX")} if left_out else set()
    )


def test_unit_flags_are_those_of_whole_tiles() -> None:
    """20 rows are two rows of tiles, and the next round's product finds all of their flags taken."""
    m, n, k = 20, 48, 32
    a, b, bias = operands("float16", m, n, k)
    out = np.zeros((2, m, n), np.float32)
    case = ProductCase(m, n, k, 0, 1, 0, 0, 0, n, 0, 0)
    clean(launch("unit_flags", [a, np.ascontiguousarray(b.T), bias], out, ctypes.c_uint32(0), case))
    exact = 2 * (a.astype(np.float64) @ b.astype(np.float64))
    np.testing.assert_allclose(out, [exact, exact], atol=1e-3)


WRONG = {
    1: r"covers L1 bytes \[523776, 525824\), past the end of L1 at 524288",
    2: r"covers L1 bytes \[0, 2048\), past the end of its buffer at 1024",
    3: "starts at L0A byte 32, which is not aligned to 512 B",
    4: "Mmad: the destination is not in L0C",
    5: "Mmad: the destination is not in L0C",
    6: "Adds needs a vector core, and this kernel runs on cube cores alone",
    7: "past the end of L0A .L0A overflow.: InitBuffer was asked for 66560 B in all, there are 65536 B",
    8: "needs a vector core",
    9: "DataCopyPad needs a vector core",
    10: "Mmad: the left matrix is not in L0A",
    11: "a bias has to be in the table of biases",
}


@pytest.mark.parametrize("what", [0, *WRONG])
def test_no_memory_is_left_and_none_is_mistaken_for_another(what: int) -> None:
    a, out = np.ones(1024, np.float16), np.zeros((16, 16), np.float32)
    if what:
        with pytest.raises(DeviceError, match=WRONG[what]):
            launch("wrong", [a], out, ctypes.c_uint32(what))
        return
    clean(launch("wrong", [a], out, ctypes.c_uint32(0)))
    assert (out == 16).all()


def test_the_compilers_synchronization_orders_a_cube_kernel_too() -> None:
    """What the twin above misses becomes a dependence that costs time; values are right."""
    from test_cube import SOURCE, device

    acl = device()
    text = SOURCE.read_text()
    kernel = acl.load(acl.compile(text, SOURCE.name, ["--cce-auto-sync=on"])).function("chain")
    a, b, _ = operands("int8", 32, 32, 32)
    words, out = np.full(32, word(0.01), np.uint64), np.zeros((2, 32, 32), np.float16)
    pointers = [acl.malloc(x.nbytes) for x in (a, b, words, out)]
    for p, x in zip(pointers, (a, np.ascontiguousarray(b.T), words, out), strict=True):
        acl.memcpy_h2d(p, x.view(np.uint8))
    acl.launch(kernel, 1, [*pointers, ctypes.c_uint32(1 << 2)])
    acl.synchronize()
    assert not acl.report()["hazards"]
    assert "MTE1_M order" in acl.report()["relies_on"]
    for p in pointers:
        acl.free(p)


@pytest.mark.parametrize("rows", [3, 16])
def test_rows_that_nobody_wrote_are_told_when_they_leave(rows: int) -> None:
    """A product of 16 rows of which the copy to L1 brought fewer; of 16 it is clean."""
    a, b, bias = operands("float16", 16, 16, 16)
    from test_cube import device

    acl = device()
    out = np.zeros((16, 16), np.float32)
    pointers = [acl.malloc(x.nbytes) for x in (a, b, bias, out)]
    for p, x in zip(pointers, (a, b, bias, out), strict=True):
        acl.memcpy_h2d(p, x.view(np.uint8))
    acl.unwritten(pointers[0] + rows * 32, (16 - rows) * 32) if rows < 16 else None
    from test_cube import kernels

    acl.launch(kernels().function("float16_float32"), 1, [*pointers, ProductCase(16, 16, 16, 0, 1, 0, 0, 0, 16, 0, 0)])
    acl.synchronize()
    report = acl.report()
    for p in pointers:
        acl.free(p)
    assert bool(report["unwritten"]) == (rows < 16)
    if rows < 16:
        use = report["unwritten"][0]
        assert (use["first"]["pipe"], use["sink"]["api"], use["sink_begin"]) == ("MTE2", "Fixpipe", rows * 64)
