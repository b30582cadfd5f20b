"""Tensors that are only moved or changed in place, values that the next turn reads again, blocks and rest in one copy:
where they are, and twins where the rewrite would be wrong."""

from __future__ import annotations

import re
from pathlib import Path

from motif_rewrites import after

from ascendopt_tune.nouns.operator import Pair
from ascendopt_tune.search.kernel.motifs import MOTIFS
from ascendopt_tune.search.kernel.rules import _compatible, rewrites_of

_FOLDER = Path(__file__).parents[1] / "vnpu" / "motif_forms_eighth"


def _text(name: str, *changes: tuple[str, str]) -> str:
    text = (_FOLDER / f"{name}.cpp").read_text()
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return text


def _bound(name: str, *changes: tuple[str, str], auto_sync: bool = False) -> list[str]:
    return after("bound-queue", _text(name, *changes), auto_sync)


def test_what_is_only_moved_is_stored_as_it_was_loaded() -> None:
    (text,) = _bound("moved_rows")
    assert "TQueBind<TPosition::VECIN, TPosition::VECOUT, 1> inQueue;" in text
    assert "pipe->InitBuffer(inQueue, BUFFERS + BUFFERS, " in text
    assert "inQueue.EnQue(in);" in text
    assert "LocalTensor<float> out = inQueue.DeQue<float>();" in text
    assert "outQueue" not in text
    assert "DataCopy(out, in" not in text


def test_what_is_changed_is_changed_where_it_was_loaded() -> None:
    (text,) = _bound("cleared_ends")
    assert "inQueue.EnQue<AscendC::TPosition::GM, AscendC::TPosition::VECIN, float>(in);" in text
    assert "in = inQueue.DeQue<AscendC::TPosition::GM, AscendC::TPosition::VECIN, float>();" in text
    assert "LocalTensor<float> out = in;" in text
    assert "inQueue.EnQue<AscendC::TPosition::VECOUT, AscendC::TPosition::GM, float>(out);" in text
    assert "pipe->InitBuffer(inQueue, 4, " in text


_COPY = "    DataCopy(out, in, LENGTH);\n"


def test_either_side_of_a_choice_may_be_the_copy() -> None:
    choice = "    if (whole) {\n      DataCopy(out, in, LENGTH);\n    } else {\n      DataCopy(out, in, 8);\n    }\n"
    assert len(_bound("moved_rows", (_COPY, choice))) == 1
    assert not _bound("moved_rows", (_COPY, choice.replace("DataCopy(out, in, 8);", "Abs(out, in, 8);")))


def test_two_tensors_stay_where_one_does_not_do() -> None:
    for changed in (
        f"{_COPY}    Exp(out, out, LENGTH);\n    Add(out, out, in, LENGTH);\n",  # an operand still
        f"    Exp(out, in, LENGTH);\n{_COPY}",  # written before
        f"{_COPY}    Sub(out, in[8], in, 8);\n",  # read elsewhere than it is written
        f"{_COPY}    Abs(other, in, LENGTH);\n",
    ):
        assert not _bound("moved_rows", (_COPY, changed))
    taken = "    LocalTensor<float> more = outQueue.AllocTensor<float>();\n    outQueue.FreeTensor(more);\n"
    assert not _bound("moved_rows", (_COPY, _COPY + taken))  # others take tensors of the second queue
    longer = ("InitBuffer(outQueue, BUFFERS, LENGTH", "InitBuffer(outQueue, BUFFERS, 2 * LENGTH")
    assert not _bound("moved_rows", longer)


_LOAD = "    DataCopy(in, xGm[row * LENGTH], LENGTH);\n"


def test_a_load_that_the_vector_unit_has_a_part_in_is_no_load_alone() -> None:
    assert not _bound("moved_rows", (_LOAD, f"    Duplicate(in, 0.0f, LENGTH);\n{_LOAD}"))
    padded = (_LOAD, f"{_LOAD}    in.SetValue(0, 0.0f);\n")
    assert not _bound("moved_rows", padded)
    assert len(_bound("moved_rows", padded, auto_sync=True)) == 1


def _carried(*changes: tuple[str, str]) -> list[str]:
    return [t for t in after("kept-value", _text("next_ends", *changes)) if "carriedValue" in t]


def test_what_a_turn_ends_with_the_next_one_begins_with() -> None:
    (text,) = _carried()
    assert "auto carriedValue0 = (0) < SEGMENTS ? endsGm.GetValue(first + (0)) : 0;" in text
    assert "carriedValue0 = endsGm.GetValue(first + i + 1);" in text
    assert "from = carriedValue0OfThis & 255;" in text
    assert text.count("endsGm.GetValue") == 2


def test_by_pointer_as_well() -> None:
    pointer = [
        ("endsGm.GetValue(first + i)", "*(ends + first + i)"),
        ("endsGm.GetValue(first + i + 1)", "*(ends + first + i + 1)"),
    ]
    (text,) = _carried(*pointer)
    assert "carriedValue0 = *(ends + first + i + 1);" in text


def test_nothing_is_carried_where_the_next_turn_reads_another() -> None:
    for old, new in (
        ("i++", "i += 2"),
        ("first + i + 1)", "first + i + 2)"),
        ("endsGm.GetValue(first + i)", "endsGm.GetValue(2 * i)"),
        ("      Row(first + i, factor);", "      Row(first + i, factor);\n      first = 0;"),
        ("      Row(first + i, factor);", "      Row(first + i, factor);\n      endsGm.SetValue(first + i + 1, 0);"),
        ("const int32_t length = (", "const int32_t length = i == 0 ? 0 : ("),  # not in every turn
    ):
        assert not _carried((old, new)), new


def test_blocks_and_rest_are_one_copy_where_there_is_a_rest() -> None:
    load, store = after("whole-copy", _text("blocks_and_rest"))
    assert "if ((blocks != 0) && !(rest != 0)) {" in re.sub(r"\(\((\(.*?\)) &&", r"(\1 &&", load)
    assert "DataCopyPad(in, xGm[row * LENGTH], params, padding);" in load
    assert "{1, static_cast<uint32_t>((blocks) * sizeof(in.GetValue(0))) + (static_cast<uint32_t>(rest" in load
    assert "DataCopyPad(to, out, params);" in store


def test_two_copies_stay_where_one_is_not_the_other_ones_rest() -> None:
    for old, new in (
        ("in[blocks], xGm[row * LENGTH][blocks]", "in[blocks], xGm[row * LENGTH][blocks + 8]"),
        ("in[blocks], xGm", "in[64], xGm"),
        ("const DataCopyExtParams params{1, ", "const DataCopyExtParams params{2, "),  # rests of two rows
        ("const DataCopyExtParams params", "const DataCopyParams params"),  # 16 bits for its length
        ("    if (rest != 0) {\n      const", "    length = 0;\n    if (rest != 0) {\n      const"),
    ):
        assert len(after("whole-copy", _text("blocks_and_rest", (old, new)))) < 2, new


def test_it_is_tried_together_with_others_where_another_motif_would_exclude_it() -> None:
    """A tensor that is given back late is one for `buffer-lifetime`, too; both change that line."""
    pair = Pair({}, {"op_kernel/kernel.cpp": _text("moved_rows")})
    found = rewrites_of(pair, False)
    assert found["buffer-lifetime"]
    kept = {r.motif for r in _compatible(r for m in MOTIFS for r in found.get(m.name, ()))}
    assert "bound-queue" in kept
    assert "buffer-lifetime" not in kept
