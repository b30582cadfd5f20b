"""Buffers, copies and fills: places in other people's spelling, each with a twin where the same would be wrong."""

from __future__ import annotations

import pytest
from motif_rewrites import after

# -- one buffer or two -------------------------------------------------------------------------------------------------

TILES = """constexpr int32_t BUFFERS = {number};
class K {{
  void Init(TPipe* pipe) {{ pipe->InitBuffer(q, {said}, 512); }}
  void Run() {{ for (int i = 0; i < tiles; i++) {{ CopyIn(i); Compute(i); }} }}
  void CopyIn(int i) {{ LocalTensor<half> x = q.AllocTensor<half>(); DataCopy(x, gm[i * n], n); q.EnQue(x); }}
  void Compute(int i) {{ LocalTensor<half> x = q.DeQue<half>(); Exp(y, x, n); q.FreeTensor(x); }}
  void Power({parameter}) {{}}
  TQue<TPosition::VECIN, BUFFERS> q;
}};"""


@pytest.mark.parametrize(
    ("number", "said", "found"), [(1, "BUFFERS", 0), (2, "BUFFERS", 1), (2, "1", 0), (2, "tiling.n", 1)]
)
def test_the_next_tile_is_asked_for_where_there_may_be_a_buffer_for_it(number: int, said: str, found: int) -> None:
    assert len(after("early-fetch", TILES.format(number=number, said=said, parameter=""))) == found


@pytest.mark.parametrize(("number", "said", "made"), [(1, "BUFFERS", "2"), (2, "BUFFERS", "BUFFERS"), (2, "1", "2")])
def test_where_the_scalar_unit_waits_one_buffer_becomes_two(number: int, said: str, made: str) -> None:
    code = TILES.format(number=number, said=said, parameter="").replace(
        "Exp(y, x, n);", "Muls(y, x, y.GetValue(0), n);"
    )
    (text,) = after("early-fetch", code)
    assert f"InitBuffer(q, {made}, 512)" in text


@pytest.mark.parametrize("depth", ["1", "DEPTH"])
def test_a_queue_holds_the_next_tile_beside_the_one_that_is_worked_on(depth: str) -> None:
    code = "constexpr int32_t DEPTH = 1;\n" + TILES.format(number=2, said="2", parameter="")
    (text,) = after("early-fetch", code.replace("VECIN, BUFFERS> q", f"VECIN, {depth}> q, other"))
    assert "TQue<TPosition::VECIN, 2> q, other;" in text


@pytest.mark.parametrize(
    ("parameter", "more", "found"),
    [
        ("", "", "InitBuffer(q, BUFFERS, 512)"),
        ("TQue<TPosition::VECIN, 1> given, float x", "", "void Power(TQue<TPosition::VECIN, BUFFERS> given, float x)"),
        ("TQue<TPosition::VECIN, 1> given, float x", "TQue<TPosition::VECIN, 1> r;", ""),  # which of them is given?
    ],
)
def test_a_number_of_buffers_changes_in_all_types_that_have_it(parameter: str, more: str, found: str) -> None:
    code = TILES.format(number=1, said="BUFFERS", parameter=parameter).replace(
        "  TQue<TPosition::VECIN, B", f"  {more} TQue<TPosition::VECIN, B"
    )
    rewritten = after("double-buffer", code)
    assert len(rewritten) == bool(found)
    assert all(found in text and "BUFFERS = 2;" in text for text in rewritten)


# -- a copy or a cast --------------------------------------------------------------------------------------------------

CHOICE = """template <typename T> void f() {{
  {made} {between}
  LocalTensor<T> y = out.AllocTensor<T>();
  if constexpr ({condition}) {{ {copied} }} else {{ Cast(y, a, RoundMode::CAST_RINT, n); }}
  {behind}
}}"""


@pytest.mark.parametrize(
    ("holes", "found"),
    [
        ({}, "if constexpr (same) { Muls(y, a, s, n); } else { Muls(a, a, s, n);"),
        (
            {"copied": "Adds(y, a, 0.0f, n);", "between": "PipeBarrier<PIPE_V>();"},
            "Muls(a, a, s, n); PipeBarrier<PIPE_V>();",
        ),
        ({"copied": "Muls(y, a, (float)1.0, n);"}, "{ Muls(y, a, s, n); }"),
        ({"copied": "Muls(y, a, 2.0f, n);"}, ""),
        ({"behind": "Exp(b, a, n);"}, ""),  # what was made is needed
        ({"between": "Exp(b, a, n);"}, ""),
        ({"between": "Help();"}, ""),
        ({"made": "Axpy(a, b, s, n);"}, ""),  # adds to what is there
        ({"copied": "DataCopy(y, b, n);"}, ""),
    ],
)
def test_what_is_copied_where_the_types_agree_is_made_there(holes: dict[str, str], found: str) -> None:
    given = {
        "made": "Muls(a, a, s, n);",
        "between": "",
        "condition": "same",
        "copied": "DataCopy(y, a, n);",
        "behind": "",
    }
    rewritten = [
        t for t in after("extra-copy", CHOICE.format(**{**given, **holes})) if "else { Muls(a" in " ".join(t.split())
    ]
    assert len(rewritten) == bool(found)
    assert all(found in " ".join(text.split()) for text in rewritten)


# -- a fill that one core does for all ---------------------------------------------------------------------------------

FILL = """class K {{
  void Init(GM_ADDR y) {{ {index} yGm.SetGlobalBuffer((__gm__ float*)y); if ({condition}) {{ {body} }} SyncAll(); }}
  GlobalTensor<float> yGm; uint32_t mine;
}};"""


@pytest.mark.parametrize(
    ("condition", "index", "body", "found"),
    [
        ("GetBlockIdx() == 0", "", "InitOutput<float>(yGm, n, 0);", 1),
        ("wanted && AscendC::GetBlockIdx() == 0U", "", "InitGlobalMemory(yGm, n, 0.0f);", 1),
        ("this->mine == 0", "mine = GetBlockIdx();", "if (a) InitOutput<float>(yGm, n, 0); else { ; }", 1),
        ("mine == 0", "mine = n / 2;", "InitOutput<float>(yGm, n, 0);", 0),  # not a core's number
        ("wanted || GetBlockIdx() == 0", "", "InitOutput<float>(yGm, n, 0);", 0),  # others fill as well
        ("GetBlockIdx() == 1", "", "InitOutput<float>(yGm, n, 0);", 0),  # it may have other work to do
        ("GetBlockIdx() == 0", "", "InitOutput<float>(yGm, n, 0); Rest(n);", 0),  # the rest is for one core
        ("GetBlockIdx() == 0", "", "if (a) { yGm.SetValue(0, 1.0f); }", 0),  # no fill
    ],
)
def test_a_fill_is_shared_where_one_core_does_nothing_but_fill(
    condition: str, index: str, body: str, found: int
) -> None:
    rewritten = after("shared-fill", FILL.format(condition=condition, index=index, body=body))
    assert len(rewritten) == found
    assert all("== 0" not in text and text.count("fillShare = ") == 1 for text in rewritten)
