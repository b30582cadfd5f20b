"""Rows that are stored many times, each with a twin where the same would be wrong or useless."""

from __future__ import annotations

import pytest
from motif_rewrites import after

STORED = """class K {{
 public:
  __aicore__ inline void Run() {{ for (int j = 0; j < rows; j++) {{ One(j); }} }}
  __aicore__ inline void One(int j) {{
    LocalTensor<half> row = q.DeQue<half>();
    for ({head}) {{ {turn} }}
  }}
 private:
  GlobalTensor<half> gm;
  DataCopyExtParams params;
}};
__global__ void k() {{ K op; op.Run(); }}"""
HEAD, TURN = "int k = first; k < last; k++", "DataCopyPad(gm[(j * last + k) * n], row, params);"


def stored(head: str = HEAD, turn: str = TURN, around: str = "for (int j = 0; j < rows; j++) { One(j); }") -> str:
    return STORED.format(head=head, turn=turn).replace("for (int j = 0; j < rows; j++) { One(j); }", around)


@pytest.mark.parametrize(
    "turn",
    [
        TURN,
        "uint64_t at = j * m + k * n; DataCopyPad(gm[at], row, params);",
        "DataCopy(gm[k * n], row[8 * j], n);",
        "DataCopyPad(gm[k * n], row, {1, static_cast<uint32_t>(n * sizeof(half)), 0, 0, 0});",
    ],
)
def test_a_row_that_is_stored_many_times_leaves_at_once(turn: str) -> None:
    (text,) = after("repeated-stores", stored(turn=turn))
    assert "spreadRow0.Store(gm[" in text
    assert "SpreadRow spreadRow0;" in text
    assert f"}} else {{ for ({HEAD}) {{ {turn} }} }} }}" in text


@pytest.mark.parametrize(
    "changed",
    [
        {"turn": "DataCopyPad(gm[k * n], row[k * n], params);"},  # rows of a tile: strided-copy
        {"turn": "DataCopyPad(gm[k * k], row, params);"},  # not evenly apart
        {"turn": "DataCopyPad(gm[j * n], row, params);"},  # to one place
        {"turn": "DataCopyPad(row, gm[k * n], params, pad);"},  # a load
        {"turn": f"Adds(row, row, 1, n); {TURN}"},  # another row each time
        {"turn": "params.blockCount = 2; DataCopyPad(gm[k * n], row, params);"},
        {"around": "One(3);"},  # done once
    ],
)
def test_stores_stay_where_they_are_no_repetition(changed: dict[str, str]) -> None:
    assert after("repeated-stores", stored(**changed)) == []
