"""Quotients of integers that a scalar loop makes: no vector instruction divides those."""

from __future__ import annotations

import pytest
from motif_example import kernel

from ascendopt_tune.search.kernel.motifs import find
from ascendopt_tune.search.kernel.reading.kernel_program import KernelProgram


def _found(kind: str, value: str) -> list[str]:
    lines = f"LocalTensor<{kind}> w = workBuf.Get<{kind}>(), v = workBuf.Get<{kind}>();\n"
    loop = f"for (uint32_t i = 0; i < n; i++) {{ w.SetValue(i, {value}); }}"
    before = KernelProgram(kernel(compute=lines + loop))
    return [r.kernel(before)["op_kernel/kernel.cpp"] for r in find("scalar-loop").optimize(before)]


@pytest.mark.parametrize("value", ["v.GetValue(i) / size", "v.GetValue(i) / w.GetValue(i)"])
def test_quotients_are_vectors_of_floats_only(value: str) -> None:
    assert _found("float", value)
    assert not _found("int32_t", value)


def test_products_of_integers_are_vectors() -> None:
    (text,) = _found("int32_t", "v.GetValue(i) * size")
    assert "Muls(w, v, size, n);" in text
