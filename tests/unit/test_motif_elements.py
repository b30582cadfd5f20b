"""Single elements, fetched, stored, moved or set: places in other people's spelling, each with a twin."""

from __future__ import annotations

import re

import pytest
from motif_rewrites import after

# -- single values -----------------------------------------------------------------------------------------------------

FETCH = """class K {{
  void CopyIn(int i) {{
    LocalTensor<int32_t> id = ids.AllocTensor<int32_t>();
    LocalTensor<float> row = rows.AllocTensor<float>();
    DataCopyExtParams one{{{params}}};
    DataCopyPad(id, idGm[first + i], one, pad);
    {behind}
    rows.EnQue(row);
  }}
  void Compute() {{
    LocalTensor<int32_t> taken = ids.DeQue<int32_t>();
    {use}
    ids.FreeTensor(taken);
  }}
  void Run() {{ for (int i = 0; i < n; i++) {{ CopyIn(i); Compute(); }} }}
  GlobalTensor<int32_t> idGm;
  GlobalTensor<float> rowGm, outGm;
}};"""
ONE = "1, static_cast<uint32_t>(sizeof(int32_t)), 0, 0, 0"
HERE = "DataCopy(row, rowGm[id.GetValue(0) * n], n); ids.FreeTensor(id);"


@pytest.mark.parametrize(
    ("params", "behind", "use", "found"),
    [
        (ONE, HERE, "", "const auto copiedValue0 = idGm.GetValue(first + i);"),
        ("1, sizeof(uint32_t), 0, 0, 0", HERE, "", "rowGm[copiedValue0 * n]"),
        (ONE, f"SetFlag<HardEvent::MTE2_S>(e); WaitFlag<HardEvent::MTE2_S>(e); {HERE}", "", "const auto copiedValue0"),
        (ONE, "ids.EnQue(id);", "int k = taken.GetValue(0); Help(k);", "id.SetValue(0, idGm.GetValue(first + i));"),
        (ONE, "ids.EnQue(id);", "Adds(y, x, taken(0), n);", "id.SetValue(0, idGm.GetValue(first + i));"),
        (ONE, "ids.EnQue(id);", "Cast(x, taken, RoundMode::CAST_NONE, 8);", ""),  # a vector instruction reads it
        (ONE, "ids.EnQue(id);", "int k = taken.GetValue(1);", ""),  # so it can't be a copy of one
        ("1, 8 * sizeof(int32_t), 0, 0, 0", HERE, "", ""),  # several values
        ("n, sizeof(int32_t), 0, 0, 0", HERE, "", ""),  # a block each
        (ONE, f"{HERE} DataCopyPad(idGm[i], x, one);", "", ""),  # the tensor is stored to
        (ONE, f"{HERE} Help(id);", "", ""),  # whatever that does
    ],
)
def test_a_single_value_for_the_scalar_unit_needs_no_copy(params: str, behind: str, use: str, found: str) -> None:
    rewritten = after("single-value", FETCH.format(params=params, behind=behind, use=use))
    assert len(rewritten) == bool(found)
    for text in rewritten:
        assert found in text
        assert "DataCopyPad(id," not in text
        assert "MTE2_S" not in text


# -- elements of global memory -----------------------------------------------------------------------------------------

ELEMENTS = """class K {{
  void Run(int begin) {{
    int cnt = begin, last = 0;
    for (int row = 0; row < rows; row++) {{
      int k = 0;
      {loop}
    }}
  }}
  {more}
  GlobalTensor<T> xGm, yGm;
  LocalTensor<T> ub;
  LocalTensor<half> other;
  int rows, n;
}};"""


@pytest.mark.parametrize(
    ("loop", "found"),
    [
        (
            "while (k < n && k - row <= d) { T v = xGm.GetValue(cnt); yGm.SetValue(cnt, v); k++; cnt++; }",
            ".Copy(yGm[cnt]",
        ),
        ("for (k = 0; k < n; k++) { yGm.SetValue(k + cnt, T(0)); }", ""),  # what k is in the first turn isn't declared
        ("for (; k < n; ++k) { yGm.SetValue(begin + k, 0); }", ".Fill(yGm[begin + k], 0, turnsAtOnce);"),
        ("for (; k < n; ++k) { yGm.SetValue(k * (n + 1), 1); }", ".Fill(yGm[k * (n + 1)], 1, turnsAtOnce, (n + 1));"),
        ("for (int i = 0; i < n; i++) { if (i < row) yGm.SetValue(i, 0); }", "turned = turnsAtOnce < turned"),
        (
            "for (int i = 0; i < n; i++) { if (cnt > last) { break; } yGm.SetValue(cnt, 0); cnt += 2; }",
            "turnsAtOnce * (2)",
        ),
        ("for (int i = 0; i < n; i++) { last = i * n + row; yGm.SetValue(last, 0); }", ".Fill(yGm[(i * n + row)], 0"),
        ("for (int i = 0; i < n; i++) { last = i * n; yGm.SetValue(last, 0); } Help(last);", ""),  # needed behind it
        ("for (int i = 0; i < n; i++) { yGm.SetValue(i, i); }", ""),  # another value each turn
        ("for (int i = 0; i < n; i++) { yGm.SetValue(i * i, 0); }", ""),
        ("for (int i = 0; i < n; i++) { yGm.SetValue(ids.GetValue(i), 0); }", ""),  # wherever that is
        ("for (int i = 0; i < n; i++) { yGm.SetValue(i, xGm.GetValue(2 * i)); }", ""),  # every other element
        ("for (int i = 0; i < n; i++) { yGm.SetValue(i, yGm.GetValue(i + n)); }", ""),  # through the data cache
        ("for (int i = 0; i < n; i++) { yGm.SetValue(i, 0); } yGm.SetValue(n, 1);", ""),  # and so
        ("for (int i = 0; i < n; i++) { yGm.SetValue(i, 0); if (i == row) { continue; } }", ""),
        (
            "for (int i = 0; i < n; i++) { ub.SetValue(i, xGm.GetValue(row * n + i)); }",
            "DataCopyPad(ub[i], xGm[row * n + i]",
        ),
        (
            "for (int i = r; i < n; i++) { ub.SetValue(i, xGm.GetValue(i)); }",
            "static_cast<int64_t>(i) * sizeof(T)) % 32 == 0",
        ),
        ("for (int i = 0; i < n; i++) { xGm.SetValue(i, ub.GetValue(i)); }", "DataCopyPad(xGm[i], ub[i]"),
        ("for (int i = 0; i < n; i++) { other.SetValue(i, xGm.GetValue(i)); }", ""),  # of another type
        ("for (int i = 0; i < n; i++) { ub.SetValue(i, (half)xGm.GetValue(i)); }", ""),  # rounded on the way
        ("for (int i = 0; i < n; i++) { ub.SetValue(i, xGm.GetValue(i)); sum += i; Help(i); }", ""),
    ],
)
def test_elements_of_global_memory_are_moved_by_copies(loop: str, found: str) -> None:
    rewritten = after("copied-elements", ELEMENTS.format(loop=loop, more=""))
    assert len(rewritten) == bool(found)
    assert all(found in text for text in rewritten)
    if ".SetValue(cnt, v)" in loop:  # not where the class reads the tensor by the scalar unit elsewhere
        assert not after("copied-elements", ELEMENTS.format(loop=loop, more="T Last() { return yGm.GetValue(n); }"))


# -- elements that each turn reads and sets ----------------------------------------------------------------------------

KEPT = """void f(LocalTensor<float>& x, LocalTensor<float>& y) {{
  for (int row = 0; row < rows; row++) {{
    int last = row;
    for (int i = 1; i < n; i++) {{ {turn} }}
  }}
}}"""


@pytest.mark.parametrize(
    ("turn", "found"),
    [
        ("y.SetValue(row, y.GetValue(row) + x.GetValue(row * n + i));", "keptElement = keptElement + x.GetValue(row"),
        (
            "float a = y.GetValue(0); if (a < x.GetValue(i)) y.SetValue(0, x.GetValue(i));",
            "y.SetValue(0, keptElement); }",
        ),
        ("y.SetValue(n, y.GetValue(n) * y.GetValue(i));", "keptElement = keptElement * y.GetValue(i);"),
        ("y.SetValue(i, y.GetValue(i) + 1);", ""),  # another one each turn
        ("last = i; y.SetValue(last, y.GetValue(last) + 1);", ""),
        ("y.SetValue(0, y.GetValue(0) + 1); y.SetValue(i, 0);", ""),  # it may be the same
        ("y.SetValue(0, y.GetValue(0) + 1); Adds(y, y, s, n);", ""),  # which reads it
        ("y.SetValue(0, y.GetValue(0) + 1); if (x.GetValue(i) > 0) return;", ""),  # past the end
        ("y.SetValue(Slot(), y.GetValue(Slot()) + 1);", ""),  # wherever that is
    ],
)
def test_an_element_that_each_turn_sets_is_kept_over_the_loop(turn: str, found: str) -> None:
    rewritten = [text for text in after("kept-value", KEPT.format(turn=turn)) if "keptElement" in text]
    assert len(rewritten) == bool(found)
    assert all(found in text for text in rewritten)


# -- elements of the Unified Buffer set to a value ---------------------------------------------------------------------

FILLED = """void f(LocalTensor<float>& x, LocalTensor<T>& y, LocalTensor<uint32_t>& z, GlobalTensor<float>& out) {{
  int k = 0;
  {loop}
}}"""


@pytest.mark.parametrize(
    ("loop", "found"),
    [
        ("for (int i = 0; i < n; i++) { x.SetValue(i, 1.0f); }", "Duplicate(x, 1.0f, n);"),  # from the beginning
        ("for (int i = n; i < m; i++) { x.SetValue(i, s); }", "SetElements::Of(x, i, turnsAtOnce, s);"),
        (
            "for (int i = 0; i < n; i++) { x.SetValue(m - i - 1, s); }",
            "Of(x, m - i - 1 - (turnsAtOnce - 1), turnsAtOnce",
        ),
        ("while (k < n) { x.SetValue(k, s); k++; }", "k += turnsAtOnce;"),
        ("for (int i = 0; i < n; i++) { x.SetValue(i, 0); y.SetValue(i + m, 1); }", "Of(y, i + m, turnsAtOnce, 1);"),
        (
            "for (int i = n; i < m; i++) { if constexpr (B16) { y.SetValue(i, 1); } else { y.SetValue(i, 2); } }",
            "if constexpr (!(B16)) { SetElements::Of(y, i, turnsAtOnce, 2); }",
        ),
        ("for (int i = n; i < m; i++) { x.SetValue(2 * i, s); }", ""),  # every other one
        ("for (int i = n; i < m; i++) { x.SetValue(i, i); }", "Rising(x, i, turnsAtOnce, static_cast<int64_t>(i), "),
        ("for (int i = 0; i < m; i++) { z.SetValue(i, (n + i) * 4); }", "static_cast<int64_t>((n + i) * 4), "),
        ("for (int i = n; i < m; i++) { x.SetValue(i, 0.5f + i); }", ""),  # no integers
        ("for (int i = n; i < m; i++) { x.SetValue(i, i * i); }", ""),
        ("for (int i = n; i < m; i++) { if (i < k) { x.SetValue(i, s); } }", ""),  # from somewhere to somewhere
        ("for (int i = n; i < m; i++) { out.SetValue(i, s); }", ""),  # in global memory
        ("for (int i = n; i < m; i++) { if (Odd(i)) { x.SetValue(i, s); } }", ""),
    ],
)
def test_elements_are_set_to_a_value_at_once(loop: str, found: str) -> None:
    rewritten = after("scalar-loop", FILLED.format(loop=loop))
    assert len(rewritten) == bool(found)
    assert all(found in text for text in rewritten)


@pytest.mark.parametrize(
    ("before", "behind", "waits"),
    [
        ("DataCopy(x, out, m);", "q.EnQue(x);", ["MTE2_V"]),
        ("", "DataCopy(out, x, m);", ["V_MTE3"]),
        ("", "q.EnQue(x); x = q.DeQue<float>(); DataCopy(out, x, m);", []),  # the queue's flag
        ("DataCopy(y, out, m);", "DataCopy(out, y, m);", []),
    ],
)
def test_copies_of_elements_that_are_set_at_once_are_waited_for(before: str, behind: str, waits: list[str]) -> None:
    loop = f"{before} for (int i = n; i < m; i++) {{ x.SetValue(i, s); }} {behind}"
    (rewritten,) = after("scalar-loop", FILLED.format(loop=loop), auto_sync=True)
    assert re.findall(r"SetElements::Wait<AscendC::HardEvent::(\w+)>\(\);", rewritten) == waits


# -- single values that are stored -------------------------------------------------------------------------------------

SLOTS = """class K {{
  void Run() {{
    LocalTensor<int32_t> one = q.AllocTensor<int32_t>();
    DataCopyExtParams params{{{params}}};
    for (int i = 0; i < n; i++) {{ {turn} }}
    q.FreeTensor(one);
  }}
  template <HardEvent event> void SetWait(HardEvent evt) {{
    event_t id = static_cast<event_t>(GetTPipePtr()->FetchEventID(evt)); SetFlag<event>(id); WaitFlag<event>(id);
  }}
  GlobalTensor<int32_t> outGm;
}};"""
SINGLE = "1, static_cast<uint32_t>(sizeof(int32_t)), 0, 0, 0"
PUT = "storesOfValues.Put(outGm[to[i]], i * n);"


@pytest.mark.parametrize(
    ("params", "turn", "found"),
    [
        (SINGLE, "one.SetValue(0, i * n); DataCopyPad(outGm[to[i]], one, params);", PUT),
        (
            SINGLE,
            "one.SetValue(0, i * n); SetWait<HardEvent::S_MTE3>(HardEvent::S_MTE3); "
            "DataCopyPad(outGm[to[i]], one, params); SetWait<HardEvent::MTE3_S>(HardEvent::MTE3_S);",
            PUT,
        ),
        (SINGLE, "one.SetValue(0, i * n); SetAtomicAdd<int>(); DataCopyPad(outGm[to[i]], one, params);", PUT),
        ("2, sizeof(int32_t), 0, 0, 0", "one.SetValue(0, i); DataCopyPad(outGm[to[i]], one, params);", ""),
        (SINGLE, "one.SetValue(1, i); DataCopyPad(outGm[to[i]], one, params);", ""),  # another element
        (SINGLE, "one.SetValue(0, i); DataCopyPad(outGm[i], one, params); Adds(x, one, 1, 8);", ""),  # needed again
        (SINGLE, "one.SetValue(0, i); Help(i); DataCopyPad(outGm[i], one, params);", ""),  # whatever that does
        (SINGLE, "one.SetValue(0, i); if (i > n) { DataCopyPad(outGm[i], one, params); }", ""),  # not in each turn
    ],
)
def test_single_values_are_stored_from_slots(params: str, turn: str, found: str) -> None:
    rewritten = after("single-store", SLOTS.format(params=params, turn=turn))
    assert len(rewritten) == bool(found)
    for text in rewritten:
        assert found in text
        assert "StoresOfValues storesOfValues;" in text
        assert "SetWait<HardEvent::" not in text
