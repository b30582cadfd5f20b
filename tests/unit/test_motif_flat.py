"""Motifs where calls of a kernel's own functions, or choices at compile time, stand between two instructions."""

from __future__ import annotations

import pytest
from motif_rewrites import after

from ascendopt_tune.search.kernel.motifs import find
from ascendopt_tune.search.kernel.reading.flat import flattened
from ascendopt_tune.search.kernel.reading.kernel_program import KernelProgram

CLASS = """class Rows {{
  __aicore__ inline void Process() {{
    uint32_t at = 0;
    LocalTensor<float> row = wide.Get<float>();
    for (uint32_t i = 0; i < rows; i++) {{
      {calls}
      at += WIDTH;
    }}
  }}
  __aicore__ inline {kind} Scale({parameters}) {{
    LocalTensor<float> mine = wide.Get<float>();
    {body}
  }}
  TBuf<QuePosition::VECCALC> wide;
}};"""
SCALE = {"calls": "Scale(at, 3 * i);", "kind": "void", "parameters": "uint32_t from, uint32_t by", "body": ""}


def _flat(code: str) -> str:
    found = flattened(KernelProgram({"k.cpp": code}, {}, None, False))
    return " ".join(found[-1].kernel.files["k.cpp"].split()) if found else ""


@pytest.mark.parametrize(
    ("holes", "found"),
    [
        # a name stands for itself, an expression is declared, a buffer that was asked already is the tensor of before
        ({"body": "Muls(mine, mine, by, from);"}, "uint32_t by = 3 * i; Muls(row, row, by, at);"),
        ({"body": "uint32_t at = from; Use(at);"}, "uint32_t at2 = at; Use(at2);"),  # the caller has that name
        ({"body": "from++; Use(from);"}, "uint32_t from = at; uint32_t by = 3 * i; from++; Use(from);"),
        ({"calls": "Scale(7, at);", "body": "Use(from, by);"}, "Use(7, at);"),
        ({"calls": "Scale(at, by, 1);"}, ""),  # another function
        ({"calls": "if (i > 1) Scale(at, i);"}, ""),
        ({"body": "if (from > 1) { return; } Use(by);"}, ""),
        ({"kind": "uint32_t", "body": "Use(by);"}, ""),
        ({"parameters": "uint32_t* from, uint32_t by", "body": "Use(by);"}, ""),
        ({"body": "Scale(from, by);"}, ""),  # itself
        ({"body": "static uint32_t n = 0; Use(n);"}, ""),
    ],
)
def test_calls_are_written_out(holes: dict[str, str], found: str) -> None:
    text = _flat(CLASS.format(**{**SCALE, **holes}))
    assert (found in text) if found else not text


CHOICE = """template <typename T> class K {{
  __aicore__ inline void Compute() {{
    LocalTensor<float> x = first.Get<float>();
    LocalTensor<float> y = second.Get<float>();
    {before}
    LocalTensor<T> z = out.AllocTensor<T>();
    {head} ({condition}) {{ {copied} }} else {{ Adds(x, y, b, n); PipeBarrier<PIPE_V>(); Cast(z, x, MODE, n); }}
    {behind}
  }}
}};"""
MADE = "Muls(x, x, a, n); PipeBarrier<PIPE_V>(); Muls(y, x, c, n); PipeBarrier<PIPE_V>();"
COPIED = "Adds(z, y, b, n);"


def _choice(motif: str, **holes: str) -> list[str]:
    given = {"before": MADE, "head": "if constexpr", "condition": "same", "copied": COPIED, "behind": "", **holes}
    return [" ".join(text.split()) for text in after(motif, CHOICE.format(**given))]


@pytest.mark.parametrize(
    ("holes", "number"),
    [
        ({}, 1),
        ({"head": "if"}, 0),  # not known when it is compiled
        ({"before": MADE + " Use(y);"}, 0),
        ({"copied": "Exp(z, x, n);"}, 1),  # the other side reads what was made
        ({"behind": "Exp(w, x, n);"}, 1),  # the sum is left in x
        ({"behind": "Exp(w, y, n);"}, 0),  # the product is needed
    ],
)
def test_a_product_and_the_sum_of_one_side_are_one_instruction(holes: dict[str, str], number: int) -> None:
    rewritten = _choice("fused-scalars", **holes)
    assert len(rewritten) == number
    assert all("ScaleAndAdd(x, fusedScalars0.Anew(x" in text for text in rewritten)
    assert all(text.count("Muls(y, x, c, n);") == 1 for text in rewritten)


@pytest.mark.parametrize(
    ("before", "behind", "number"),
    [
        (MADE, "", 1),
        (MADE.replace("Muls(y, x", "Muls(y, w"), "", 0),
        (MADE, "Exp(w, x, n);", 1),  # x is written anew in one side, and the text says no more
        (MADE.replace("a, n); ", "a, n); Exp(w, x, n); "), "", 0),
    ],
)
def test_two_products_of_which_the_first_is_needed_once_are_one(before: str, behind: str, number: int) -> None:
    texts = _choice("chained-instructions", before=before, behind=behind)
    rewritten = [t for t in texts if "Muls(y, x, (a) * (c)" in t]
    assert len(rewritten) == number


def test_a_product_that_is_read_again_stays() -> None:
    code = "class K { void f() { Muls(x, x, a, n); Muls(y, x, c, n); Exp(z, x, n); } LocalTensor<float> x, y, z; };"
    assert after("chained-instructions", code) == []
    made = code.replace("Exp(z, x, n);", "Exp(x, z, n);")
    assert ["Muls(y, x, (a) * (c), n)" in text for text in after("chained-instructions", made)] == [True]
    elsewhere = made.replace("} LocalTensor", "} void g() { Exp(z, x, n); } LocalTensor").replace("Exp(x, z, n); ", "")
    assert after("chained-instructions", elsewhere) == []


TWO = """class K {{
  void Start() {{ left = work.GetWithOffset<float>(n, 0); {elsewhere} }}
  void Compute() {{
    given = queue.DeQue<T>(); {front}
    if constexpr (half16) {{
      Cast(left, given, MODE, m, r, {{1, 1, 8, 4}});
      Cast(right, given[n], MODE, m, r, {{1, 1, 8, 4}});
    }}
    else if constexpr (wide) {{ Copy(left, given, m, r, {strides}); Copy(right, given[n], m, r, {strides}); }}
    {freed}
    Add(left, left, right, n);
    {behind}
  }}
  LocalTensor<float> left, right; LocalTensor<T> given;
}};"""


@pytest.mark.parametrize(
    ("holes", "number"),
    [
        ({}, 1),
        ({"strides": "{1, 1, 4, 8}"}, 0),
        ({"freed": ""}, 0),
        ({"behind": "out.EnQue(left);"}, 0),
        ({"behind": "DataCopy(y, left, n);"}, 0),
        ({"behind": "Exp(given, left, n);"}, 0),  # given back already
        ({"front": "Exp(left, right, n);"}, 0),
        ({"elsewhere": "Exp(left, right, n);"}, 0),
    ],
)
def test_several_copies_of_a_choice_are_the_loaded_tensors(holes: dict[str, str], number: int) -> None:
    given = {"elsewhere": "", "front": "", "strides": "{1, 1, 8, 8}", "freed": "queue.FreeTensor(given);", "behind": ""}
    rewritten = [t for t in after("extra-copy", TWO.format(**{**given, **holes})) if "right = given[n]" in t]
    assert len(rewritten) == number
    for text in rewritten:
        assert "left = given.template ReinterpretCast<float>();" in text
        assert "if constexpr (!((half16))) { queue.FreeTensor(given); }" in text


@pytest.mark.parametrize(
    ("between", "behind", "number"),
    [
        ("LocalTensor<float> y = out.AllocTensor<float>();", "", 1),
        ("LocalTensor<float> y = out.AllocTensor<float>();", "Exp(b, a, n);", 0),
        ("LocalTensor<float> y = out.AllocTensor<float>(); Use(a);", "", 0),
        ("LocalTensor<float> y = out.AllocTensor<float>();", "Exp(a, b, n);", 1),
    ],
)
def test_a_result_is_made_in_the_tensor_that_is_taken_behind_it(between: str, behind: str, number: int) -> None:
    code = (
        "class K { void f() { LocalTensor<float> a = room.Get<float>(); Mul(a, b, c, n); PipeBarrier<PIPE_V>(); "
        f"{between} DataCopy(y, a, n); {behind} out.EnQue(y); }} LocalTensor<float> b, c; }};"
    )
    rewritten = [text for text in after("extra-copy", code) if "Mul(y, b, c, n);" in text]
    assert len(rewritten) == number


def test_rows_that_hand_something_on_stay_rows() -> None:
    code = (
        "class K {{ void f() {{ for (uint32_t i = 0; i < rows; i++) {{ Add(x[i * n], x[i * n], last, n); "
        "PipeBarrier<PIPE_V>(); {then} }} }} LocalTensor<float> x, last, y; }};"
    )
    assert after("merged-rows", code.format(then="DataCopy(last, x[i * n], n);")) == []
    assert len(after("merged-rows", code.format(then="DataCopy(y[i * m], x[i * n], n);"))) == 1


def test_a_place_that_is_known_is_not_offered_again() -> None:
    code = CLASS.format(**{**SCALE, "body": "Muls(mine, mine, a, from); Muls(mine, mine, b, from);"})
    program = KernelProgram({"k.cpp": code}, {}, None, False)
    assert [r.site.endswith("/flat") for r in find("chained-instructions").optimize(program)] == [False]
