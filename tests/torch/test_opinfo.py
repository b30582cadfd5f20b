"""A sample of the operator sweep (opinfo.py): the first of each entry's samples, in processes that may crash."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("torch")
pytest.importorskip("torch_npu")
pytest.importorskip("expecttest")

from opinfo import Row, entries, shard, summary

from ascendopt_tune.torch_ops.device.runtime import is_virtual

#: Sparse results and operands raise: torch's sparse kernels are registered for devices of their own.
RAISE = {"sparse.mm.reduce", "sparse.sampled_addmm", "to_sparse"}


@pytest.mark.skipif(not is_virtual(), reason="a real CANN serves")
def test_operators_equal_the_cpus() -> None:
    names = list(entries())
    with ThreadPoolExecutor(2) as pool:
        rows: list[Row] = [row for part in pool.map(lambda i: list(shard(names[i::2], 1)), range(2)) for row in part]
    assert sorted(row.name for row in rows) == sorted(names)
    verdicts = Counter(row.verdict for row in rows)
    assert verdicts["crash"] == verdicts["different"] == 0, summary(rows)
    assert {row.name for row in rows if row.verdict == "raises"} <= RAISE, summary(rows)
