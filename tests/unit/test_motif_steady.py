"""What is the same in each turn: places in other people's spelling, each with a twin where it isn't."""

from __future__ import annotations

import pytest
from motif_rewrites import after

# -- what is the same in each turn -------------------------------------------------------------------------------------

ROWS = """class K {{
  void Run() {{
    LocalTensor<half> scale = scaleBuf.Get<half>();
    {before}
    for (int i = 0; i < rows; i++) {{ {again} Load(i); Row(i, scale); }}
  }}
  void Load(int i) {{ LocalTensor<half> x = q.AllocTensor<half>(); DataCopy(x, xGm[i * n], n); q.EnQue(x); }}
  void Row(int i, LocalTensor<half>& scale) {{
    LocalTensor<float> work = workBuf.Get<float>();
    LocalTensor<half> x = q.DeQue<half>();
    {cast}
    {behind}
    q.FreeTensor(x);
  }}
  TQue<QuePosition::VECIN, 1> q;
  TBuf<TPosition::VECCALC> workBuf, scaleBuf;
  GlobalTensor<half> xGm, scaleGm;
  uint32_t n, rows;
}};"""


@pytest.mark.parametrize(
    ("holes", "found"),
    [
        (
            {},
            "{ Cast(keptTensor0At, scale, RoundMode::CAST_NONE, n); } Mul(y, y, keptTensor0At, n); Exp(work, y, n);",
        ),
        ({"cast": "Cast(work, x, RoundMode::CAST_NONE, n);"}, ""),  # another row
        ({"again": "DataCopy(scale, scaleGm[i * n], n);"}, ""),  # loaded in each turn
        ({"again": "Exp(scale, scale, n);"}, ""),
        ({"again": "auto part = scale[8]; Exp(part, part, n);"}, ""),
        ({"behind": "Axpy(work, x, s, n);"}, ""),  # adds to what was cast
        ({"behind": "for (int k = 0; k < 2; k++) { Mul(y, y, work, n); Exp(work, y, n); }"}, ""),
        ({"behind": "Help(work);"}, ""),  # nobody knows who reads it
        (
            {"cast": "Duplicate(work, 1.0f, n);", "behind": "Div(y, work, y, n);"},
            "if (keptTensor0.anew) { Duplicate(keptTensor0At, 1.0f, n); } Div(y, keptTensor0At, y, n);",
        ),
        ({"cast": "Duplicate(work, 1.0f, n);"}, ""),  # Muls is better
        ({"cast": "Duplicate(work, (float)i, n);"}, ""),  # another number
        ({"cast": "Muls(work, scale, factor, n);"}, "if (keptTensor0.anew) { Muls(keptTensor0At, scale, factor, n); }"),
        ({"cast": "Muls(work, scale, (float)i, n);"}, ""),
        ({"cast": "Mul(work, scale, x, n);"}, ""),  # another row
        ({"cast": "Mul(work, scale, work, n);"}, ""),
        ({"cast": "if (odd) { Cast(work, scale, RoundMode::CAST_NONE, n); }"}, ""),  # who reads it without
        (
            {"cast": "DataCopy(half0, scaleGm, n); Cast(work, half0, RoundMode::CAST_NONE, n);"},
            "if (keptTensor0.anew) { DataCopy(half0, scaleGm, n); } if (keptTensor0.anew) { Cast(keptTensor0At,",
        ),
        (
            {"cast": "DataCopy(half0, scaleGm, n); Cast(work, half0, mode, n); Exp(y, half0, n);"},  # two who read it
            "Cast(work, keptTensor0At, mode, n); Exp(y, keptTensor0At, n);",
        ),
        ({"before": "for (;;) { pipe->Reset(); }"}, ""),  # memory is dealt out anew
    ],
)
def test_what_is_the_same_in_each_turn_is_done_once(holes: dict[str, str], found: str) -> None:
    given = {
        "before": "DataCopy(scale, scaleGm, n);",
        "again": "",
        "cast": "Cast(work, scale, RoundMode::CAST_NONE, n);",
        "behind": "Mul(y, y, work, n); Exp(work, y, n);",
    }
    rewritten = [" ".join(t.split()) for t in after("done-once", ROWS.format(**{**given, **holes}))]
    assert len(rewritten) == bool(found)
    assert all(found in text and text.count("KeptTensor keptTensor0;") == 1 for text in rewritten)


def test_it_is_done_again_where_an_outer_loop_brings_something_new() -> None:
    code = ROWS.replace("{before}", "for (int j = 0; j < groups; j++) {{ DataCopy(scale, scaleGm[j * n], n);")
    code = code.replace("Row(i, scale); }}", "Row(i, scale); }} }}", 1)
    given = {"again": "", "cast": "Cast(work, scale, RoundMode::CAST_NONE, n);", "behind": "Mul(y, y, work, n);"}
    (rewritten,) = after("done-once", code.format(**given))
    assert "DataCopy(scale, scaleGm[j * n], n);\n    keptTensor0.Forget();" in rewritten


HELD = """class K {{
  void Init(TPipe* pipe) {{ pipe->InitBuffer(q, 2, n * 4); pipe->InitBuffer(list, 2, n * 4); {made} }}
  void Run() {{ for (int i = 0; i < rows; i++) {{ Load(i); Use(i); }} }}
  void Load(int i) {{
    LocalTensor<float> x = q.AllocTensor<float>(); DataCopy(x, xGm[i * n], n); q.EnQue(x);
    if (some) {{ LocalTensor<float> all = list.AllocTensor<float>(); {fill} list.EnQue(all); }}
  }}
  void Use(int i) {{
    LocalTensor<float> x = q.DeQue<float>(), all = list.DeQue<float>();
    {use} DataCopy(yGm[i * n], x, n);
    list.FreeTensor(all); q.FreeTensor(x);
  }}
  TQue<QuePosition::VECIN, 1> q, list;
  GlobalTensor<float> xGm, yGm, listGm;
  uint32_t n, rows, at;
}};"""


@pytest.mark.parametrize(
    ("holes", "found"),
    [
        ({}, "if (list.Wants(0, n)) { DataCopy(all, listGm, n); }"),
        ({"fill": "DataCopy(all, listGm[at], n);"}, "if (list.Wants(0, n)) { DataCopy(all, listGm[at], n); }"),
        ({"fill": "Duplicate(all, 1.0f, n);"}, "if (list.Wants(0, n)) { Duplicate(all, 1.0f, n); }"),
        ({"fill": "DataCopy(all, listGm, n); Muls(all, all, s, n);"}, ""),
        ({"fill": "DataCopy(all, listGm[at], n); at += n;"}, ""),  # moves on
        ({"fill": "DataCopy(all, listGm[i * n], n);"}, ""),
        ({"fill": "DataCopy(all, yGm, n);"}, ""),  # somebody stores there
        ({"use": "Mul(all, all, x, n);"}, ""),  # written by who takes it
        ({"use": "auto part = all[8]; Mul(part, part, x, n);"}, ""),
        ({"fill": "auto part = all[8]; DataCopy(all, listGm, n); DataCopy(part, xGm[i * n], n);"}, ""),
        ({"use": "if (list.HasTensorInQue()) { return; }"}, ""),
        ({"use": "Help(list);"}, ""),
    ],
)
def test_a_queue_that_is_given_the_same_each_turn_is_filled_once(holes: dict[str, str], found: str) -> None:
    given = {"made": "", "fill": "DataCopy(all, listGm, n);", "use": "Mul(x, x, all, n);"}
    rewritten = [" ".join(t.split()) for t in after("held-tile", HELD.format(**{**given, **holes}))]
    assert len(rewritten) == bool(found)
    for text in rewritten:
        assert found in text
        assert "HeldTile<TQue<QuePosition::VECIN, 1>, 1> list;" in text
        assert "list.Begin(2, n * 4)" in text
        assert "TQue<QuePosition::VECIN, 1> q;" in text


KNOWN = """class K {{
  void Run() {{ for (int i = 0; i < rows; i++) {{ for (int k = 0; k < parts; k++) {{ In(i, k); Out(i, k); }} }} }}
  void In(int i, int k) {{ {first} }}
  void Out(int i, int k) {{ {second} }}
  GlobalTensor<float> aGm, bGm, yGm;
  int rows, parts;
}};"""


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        ("Muls(x, x, aGm.GetValue(0), n);", "", "knownValue0.Of(aGm, 0)"),
        ("Muls(x, x, aGm.GetValue(i), n);", "", "knownValue0.Of(aGm, i)"),  # a row's parts have one
        ("Muls(x, x, aGm.GetValue(i * parts + k), n);", "", ""),  # another one each turn
        (
            "s = aGm.GetValue(k);",
            "DataCopy(yGm[aGm.GetValue(k)], x, n);",
            "DataCopy(yGm[knownValue0.Of(aGm, k)], x, n);",
        ),
        ("s = aGm.GetValue(k);", "s = bGm.GetValue(k);", ""),
        ("s = aGm.GetValue(0);", "aGm.SetValue(0, s);", ""),  # written
        ("s = yGm.GetValue(0);", "DataCopy(yGm, x, n);", ""),
        ("s = aGm.GetValue(0);", "aGm.SetGlobalBuffer(next);", ""),  # moves
        ("s = x.GetValue(0);", "", ""),  # not in global memory
    ],
)
def test_what_is_read_again_in_another_turn_or_method_is_remembered(first: str, second: str, found: str) -> None:
    rewritten = after("known-value", KNOWN.format(first=first, second=second))
    assert len(rewritten) == bool(found)
    assert all(found in text and "KnownValue<float> knownValue0;" in text for text in rewritten)


def test_a_class_whose_template_is_a_macro_is_known() -> None:
    code = KNOWN.format(first="Muls(x, x, aGm.GetValue(0), n);", second="")
    (text,) = after("known-value", f"#define OF_TYPES template <typename T>\nOF_TYPES\n{code}")
    assert text.index("class KnownValue") < text.rindex("OF_TYPES") < text.index("class K {")


TAKEN = """class K {{
  void Run() {{ for (int i = 0; i < rows; i++) {{ Row(i); }} }}
  void Row(int i) {{
    LocalTensor<float> work = workBuf.Get<float>();
    LocalTensor<float> w = q.AllocTensor<float>();
    {also} {load}
    q.EnQue(w);
    auto factors = q.DeQue<float>();
    {use}
    q.FreeTensor(factors);
  }}
  TQue<QuePosition::VECIN, 1> q;
  TBuf<TPosition::VECCALC> workBuf;
  GlobalTensor<float> xGm, wGm;
  uint32_t n, rows;
}};"""
_ONCE = (
    "w = q.AllocTensor<float>(); } if (keptTensor0.anew) { DataCopy(w, wGm, n); } if (keptTensor0.anew) { q.EnQue(w); }"
)


@pytest.mark.parametrize(
    ("holes", "found"),
    [
        ({}, _ONCE),
        (
            {"also": "DataCopy(work, xGm[i * n], n);"},  # which the queue's wait orders, too
            "if (keptTensor0.anew) { DataCopy(w, wGm, n); } q.EnQue(w); auto factors = q.DeQue<float>(); "
            "if (keptTensor0.anew) { keptTensor0.Keep(factors); }",
        ),
        ({"load": "DataCopy(w, wGm[i * n], n);"}, ""),
        ({"load": "DataCopy(w, wGm, n); DataCopy(w[n], wGm, n);"}, ""),
        ({"use": "Mul(factors, work, factors, n);"}, ""),
        ({"use": "s = factors.GetValue(0);"}, ""),
        ({"use": "DataCopy(yGm[i * n], factors, n);"}, ""),  # needs another wait
        ({"use": "if (odd) { return; }"}, ""),
    ],
)
def test_what_a_method_takes_from_a_queue_is_kept_where_it_is_the_same(holes: dict[str, str], found: str) -> None:
    given = {"also": "", "load": "DataCopy(w, wGm, n);", "use": "Mul(work, work, factors, n); Exp(work, factors, n);"}
    rewritten = [" ".join(t.split()) for t in after("done-once", TAKEN.format(**{**given, **holes}))]
    assert len(rewritten) == bool(found)
    assert all(found in text and "Mul(work, work, keptTensor0At, n);" in text for text in rewritten)


def test_a_part_of_what_stays_that_moves_is_not_the_same() -> None:
    code = ROWS.replace("Row(i, scale);", "Row(i, scale[i * n]);")
    given = {"before": "", "again": "", "cast": "Cast(work, scale, RoundMode::CAST_NONE, n);"}
    texts = [code, code.replace("[i * n])", "[n])")]
    given |= {"before": "DataCopy(scale, scaleGm, n);", "behind": "Mul(y, y, work, n);"}
    assert [len(after("done-once", text.format(**given))) for text in texts] == [0, 1]


TWICE = """class K {{
  void Row(int i) {{
    LocalTensor<half> x = q.DeQue<half>();
    LocalTensor<float> a = aBuf.Get<float>(), b = bBuf.Get<float>();
    {first}
    {between}
    {second}
    {behind}
    q.FreeTensor(x);
  }}
  TQue<QuePosition::VECIN, 1> q;
  TBuf<TPosition::VECCALC> aBuf, bBuf;
  int n;
}};"""
_CAST = "Cast(a, x, RoundMode::CAST_NONE, n);"


@pytest.mark.parametrize(
    ("holes", "found"),
    [
        (
            {},
            "Cast(keptTensor0At, x, RoundMode::CAST_NONE, n); Exp(b, keptTensor0At, n); Exp(a, b, n); Mul(b, a, b, n);",
        ),
        ({"between": "Exp(b, a, n); Exp(x, x, n); Exp(a, b, n);"}, ""),  # another source
        ({"between": "Exp(b, a, n); n = n / 2; Exp(a, b, n);"}, ""),
        ({"between": "Exp(b, a, n); q.FreeTensor(x); x = q.DeQue<half>(); Exp(a, b, n);"}, ""),
        ({"between": "Exp(b, a, n); Axpy(a, b, s, n);"}, ""),  # adds to what was cast
        ({"second": "Cast(a, y, RoundMode::CAST_NONE, n);"}, ""),
    ],
)
def test_what_was_cast_is_not_cast_again(holes: dict[str, str], found: str) -> None:
    given = {"first": _CAST, "between": "Exp(b, a, n); Exp(a, b, n); Mul(b, a, b, n);", "second": _CAST}
    given |= {"behind": "Add(b, b, a, n);", **holes}
    rewritten = [" ".join(t.split()) for t in after("cast-once", TWICE.format(**given))]
    assert len(rewritten) == bool(found)
    assert all(found in text and given["first"] not in text for text in rewritten)
