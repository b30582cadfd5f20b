"""Tiles asked for a turn ahead behind settings, roundings by one cast and products by repeats: where, and where not."""

from __future__ import annotations

import pytest
from motif_example import kernel
from motif_rewrites import after

_TURN = """    for (uint32_t i = 0; i < total; i++) {{
      {front}
      CopyIn({offset});
      Compute(tileLength);
      {behind}
      CopyOut(offset);
    }}"""


def _process(front: str, offset: str, behind: str = "") -> str:
    return _text(process="    uint32_t offset = 0;\n" + _TURN.format(front=front, offset=offset, behind=behind))


def _text(**parts: str) -> str:
    (text,) = kernel(**parts).values()
    return text


@pytest.mark.parametrize(
    ("front", "offset", "behind", "asked"),
    [
        ("if (i == last) { tileLength = rest; }", "i * 64", "", "if ((i + 1) == last) { tileLength = rest; }"),
        ("offset = i * 64;", "offset", "", "offset = (i + 1) * 64;"),
        ("offset = indices.GetValue(i);", "offset", "", "offset = indices.GetValue((i + 1));"),
        ("", "offset", "offset += tileLength;", "offset += tileLength;"),
        ("Other(i); offset = i * 64;", "offset", "", "offset = (i + 1) * 64;"),
    ],
)
def test_what_copies_go_by_is_set_for_the_next_turn(front: str, offset: str, behind: str, asked: str) -> None:
    (text,) = after("early-fetch", _process(front, offset, behind))
    head, _, inside = text.partition("for (uint32_t i = 0;")
    assert "if (0 < total) {" in head
    guarded = inside.partition("if (i + 1 < total) {")[2].partition("Compute(tileLength)")[0]
    assert asked in guarded
    assert f"CopyIn({offset.replace('i', '(i + 1)') if 'i *' in offset else offset});" in guarded
    kept = [name for name in ("offset", "tileLength") if f"{name} = ofThisTurn0;" in guarded]
    assert len(kept) == 1


@pytest.mark.parametrize(
    ("front", "offset", "behind"),
    [
        ("offset = Next();", "offset", ""),  # a call that may do anything
        ("offset = yLocal.GetValue(i); Exp(yLocal, yLocal, 64);", "offset", ""),  # an element that changes
        ("if (i == skipped) { continue; } offset = i;", "offset", ""),  # a turn without copies
        ("", "offset", "if (i > 3) { offset += 64; }"),  # moved on in some turns
        ("", "offset", "offset += tileLength; offset += 1;"),
        ("", "offset", "CopyIn(offset);"),  # copies at another place, too
    ],
)
def test_no_place_where_the_next_turn_is_not_known(front: str, offset: str, behind: str) -> None:
    texts = after("early-fetch", _process(front, offset, behind))
    assert not any("ofThisTurn" in text for text in texts)


def test_a_single_buffer_gets_a_second_one() -> None:
    code = _process("offset = i * 64;", "offset", "float sum = workBuf.GetValue(0);")
    assert code.replace("InitBuffer(inQueue, 2,", "InitBuffer(inQueue, 1,") != code
    code = code.replace("InitBuffer(inQueue, 2,", "InitBuffer(inQueue, 1,")
    (text,) = after("early-fetch", code)
    assert "InitBuffer(inQueue, 2," in text
    assert "TQue<QuePosition::VECIN, 2> inQueue" in text


_ROUNDED = """    LocalTensor<int32_t> whole = workBuf.Get<int32_t>();
    Cast(whole, xLocal, RoundMode::CAST_{mode}, n);
    {between}
    Cast(yLocal, whole, RoundMode::CAST_NONE, n);
    {behind}
    inQueue.FreeTensor(xLocal);"""


@pytest.mark.parametrize(
    ("mode", "between", "behind", "places"),
    [
        ("RINT", "PipeBarrier<PIPE_V>();", "", 1),
        ("NONE", "", "", 0),
        ("FLOOR", "", "Add(other, whole, whole, n);", 0),  # the whole numbers are needed
        ("FLOOR", "Exp(xLocal, xLocal, n);", "", 0),
        ("FLOOR", "", "Duplicate(whole, 0, n); Add(other, whole, whole, n);", 1),  # made anew
    ],
)
def test_floats_are_rounded_by_one_cast(mode: str, between: str, behind: str, places: int) -> None:
    compute = _ROUNDED.format(mode=mode, between=between, behind=behind).replace("T>", "float>")
    code = _text(compute=compute).replace("LocalTensor<T>", "LocalTensor<float>")
    texts = after("rounding-cast", code)
    assert len(texts) == places
    assert all(f"Cast(yLocal, xLocal, RoundMode::CAST_{mode}, n);" in text for text in texts)


_TURNED = """    LocalTensor<float> w = workBuf.Get<float>();
    Mul(w, xLocal, cosine, 32, rows, {{1, 1, 1, 8, 8, 8}});
    Mul(w[32], xLocal[32], sine, 32, rows, {{1, 1, 1, 8, 8, 8}});
    {between}
    Add(yLocal, yLocal, w, n);
    {behind}
    inQueue.FreeTensor(xLocal);"""


@pytest.mark.parametrize(
    ("between", "behind", "places"),
    [
        ("PipeBarrier<PIPE_V>();", "", 1),
        ("Exp(xLocal, xLocal, n);", "", 0),  # what the products are of
        ("Exp(w, w, n);", "", 0),
        ("", "Exp(yLocal, w, n);", 0),  # needed again
        ("", "Muls(w, xLocal, 2.0f, n);", 1),
    ],
)
def test_products_by_repeats_are_added_as_they_are_made(between: str, behind: str, places: int) -> None:
    code = _text(compute=_TURNED.format(between=between, behind=behind))
    texts = [t for t in after("fused-multiply-add", code) if "MulAddDst(yLocal[32]" in t]
    assert len(texts) == places
    assert all("Add(yLocal, yLocal, w, n)" not in t and "Mul(w" not in t for t in texts)


_AT_ONCE = """class K {{
  void Init(TPipe* pipe) {{ pipe->InitBuffer(q, 1, 512); }}
  void Run() {{ for (uint32_t i = 0; i < rows; i++) {{ Row(i * 64, 64); Scale(i); }} {others} }}
  __aicore__ inline void Row(uint32_t offset, uint32_t n) {{
    {head}
    LocalTensor<half> taken = q.DeQue<half>();
    Cast(wide, taken, RoundMode::CAST_NONE, n);
    q.FreeTensor(taken);
  }}
  void Scale(uint32_t i) {{ float sum = wide.GetValue(i); Muls(wide, wide, sum, 64); }}
  void Load(uint32_t offset, uint32_t n) {{
    LocalTensor<half> in = q.AllocTensor<half>(); DataCopy(in, gm[offset], n); q.EnQue(in);
  }}
  TQue<TPosition::VECIN, 1> q;
}};"""
_COPIED = "LocalTensor<half> in = q.AllocTensor<half>(); DataCopy(in, gm[offset], n); q.EnQue(in);"


@pytest.mark.parametrize(
    ("head", "others", "load", "calls"),
    [
        (_COPIED, "", "LoadForRow", 2),
        (_COPIED, "Row(0, 32);", "LoadForRow", 3),
        ("Load(offset, n);", "", "Load", 2),
        ("uint32_t half = offset / 2; Load(half * 2, n);", "", "Load", 2),
    ],
)
def test_what_a_function_loads_first_its_caller_asks_for_early(head: str, others: str, load: str, calls: int) -> None:
    (text,) = after("early-fetch", _AT_ONCE.format(head=head, others=others))
    run = text.partition("void Run()")[2].partition("__aicore__")[0]
    assert run.count(f"{load}(") == calls
    assert f"if (i + 1 < rows) {{ {load}(" in " ".join(run.split())
    row = text.partition("void Row(")[2].partition("void Scale")[0]
    assert "AllocTensor" not in row
    assert "Load(" not in row
    assert "InitBuffer(q, 2, 512)" in text


@pytest.mark.parametrize(
    ("head", "others"),
    [
        ("wide = other; " + _COPIED, ""),  # something else first
        (_COPIED, "float x = Row(0, 32);"),  # no statement
        (_COPIED + " Exp(in, in, n);", ""),  # what was given on
        ("LocalTensor<half> held = buf.Get<half>(); Load(held.GetSize(), n);", ""),
    ],
)
def test_functions_that_cannot_be_taken_apart(head: str, others: str) -> None:
    assert after("early-fetch", _AT_ONCE.format(head=head, others=others)) == []
