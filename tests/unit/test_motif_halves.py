"""Buffers by hand that become two halves: where they do, and twins where the same would be wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from ascendopt_tune.search.kernel.motifs import find
from ascendopt_tune.search.kernel.reading.kernel_program import KernelProgram

_FORMS = Path(__file__).parents[1] / "vnpu" / "motif_forms_halves"
_PATH = "kernel.cpp"
_TURN = "      CopyIn(i * TILE);\n      Compute();\n      CopyOut(i * TILE);"


def _found(*changes: tuple[str, str], form: str = "tiles_by_hand", tiling: str = "") -> dict[str, str]:
    text = (_FORMS / f"{form}.cpp").read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    program = KernelProgram({_PATH: text}, {"tiling.cpp": tiling} if tiling else {})
    return {r.site: r.kernel(program)[_PATH] for r in find("ping-pong").optimize(program)}


def test_what_is_loaded_and_stored_takes_turns_and_flags_between_turns_go() -> None:
    found = _found()
    both = found["Process/halves"]
    assert "Wait<HardEvent::MTE3_MTE2>" not in both
    assert both.count("Wait<HardEvent::MTE2_V>();") == both.count("Wait<HardEvent::V_MTE3>();") == 1
    assert "pipe->InitBuffer(yBuf, 2 * ((TILE * sizeof(float) + 31) / 32 * 32));" in both
    assert "pipe->InitBuffer(workBuf, TILE * sizeof(float));" in both  # the vector unit's alone
    turn = both[both.index("this->pingPong.Turn();") : both.index("CopyIn(i * TILE);")]
    assert "this->x_ = this->pingPong.template Half<float>(xBuf);" in turn
    assert "this->y_ = this->pingPong.template Half<float>(yBuf);" in turn
    assert "work_" not in turn
    assert both.index("this->pingPong.Begin();") < both.index("for (uint32_t i") < both.index("this->pingPong.End();")
    assert "PingPong<1, 1, 0> pingPong;" in both
    loaded = found["Process/loaded"]
    assert "PingPong<1, 2, 0> pingPong;" in loaded  # what is stored has one place: waited for in the next turn
    assert "pipe->InitBuffer(yBuf, TILE * sizeof(float));" in loaded


def test_tensors_of_a_turn_are_taken_as_halves_and_a_nest_of_loops_begins_once() -> None:
    (text,) = _found(form="parts_of_one").values()
    assert "LocalTensor<float> whole = this->pingPong.template Half<float>(memory);" in text
    assert text.index("Begin();") < text.index("for (uint32_t half")
    assert text.index("for (uint32_t row") < text.index("this->pingPong.Turn();") < text.index("Rows((half")
    assert "SetFlag<HardEvent::MTE3_MTE2>(stored)" not in text


def test_a_flag_that_the_next_turn_waits_for_goes_with_its_condition() -> None:
    (text,) = _found(form="flags_across").values()
    assert "(storedId)" not in text
    assert "if (i != 0)" not in text
    assert "tile = this->pingPong.template Half<float>(tileBuf);" in text
    assert "PingPong<1, 1, 1> pingPong;" in text


def test_the_first_flag_in_front_of_the_turns_goes_with_the_last_one_behind_them() -> None:
    (text,) = _found(form="terms_of_a_tile").values()
    assert "(takenId)" not in text
    assert "PingPong<1, 0, 0> pingPong;" in text
    assert text.index("Begin();") < text.index("for (uint32_t k") < text.index("this->pingPong.End();")


_AGAIN = "  void Again() { SetFlag<HardEvent::V_MTE2>(takenId); }\n"
_FIRST = "    SetFlag<HardEvent::V_MTE2>(takenId);\n    for"
_LAST = "    WaitFlag<HardEvent::V_MTE2>(takenId);\n    SetFlag<HardEvent::V_MTE3>"


@pytest.mark.parametrize(
    "changes",
    [
        [(_FIRST, f"    Again();\n{_FIRST}"), (" private:", f"{_AGAIN} private:")],
        [(_FIRST, "    for"), (_LAST, f"    SetFlag<HardEvent::V_MTE2>(takenId);\n{_LAST}")],  # set behind them
        [(_FIRST, "    if (more) { SetFlag<HardEvent::V_MTE2>(takenId); }\n    for")],
    ],
)
def test_flags_around_the_turns_stay_where_they_say_more(changes: list[tuple[str, str]]) -> None:
    assert not _found(*changes, form="terms_of_a_tile")


def test_tensors_that_are_taken_from_queues_once_and_kept_are_buffers_by_hand() -> None:
    found = _found(form="kept_tensors")
    assert list(found) == ["Process/loaded/kept", "Process/halves/kept"]
    text = found["Process/halves/kept"]
    assert "TBuf<TPosition::VECCALC> wQueue;" in text
    assert "pipe->InitBuffer(wQueue, 2 * ((TILE * sizeof(float) + 31) / 32 * 32));" in text
    assert "this->w_ = this->pingPong.template Half<float>(wQueue);" in text
    assert "FreeTensor" not in text
    only = _found(("    w_ = wQueue.AllocTensor<float>();", "    w_ = wQueue.DeQue<float>();"), form="kept_tensors")
    assert not only  # nothing but the flag keeps that tensor's turns apart


_CHOICE = """    if constexpr (WIDE) {
      DataCopy(w_, wGm[at], TILE);
    } else {
      DataCopy(x_, xGm[at], TILE);
      DataCopy(w_, wGm[at], TILE);
    }
    Wait<HardEvent::MTE2_V>();
    if constexpr (%s) {
      Exp(x_, w_, TILE);
    }"""
_LOADS = """    DataCopy(x_, xGm[at], TILE);
    DataCopy(w_, wGm[at], TILE);
    Wait<HardEvent::MTE2_V>();"""


def test_what_either_side_of_a_choice_of_types_writes_is_written() -> None:
    assert "Process/halves" in _found((_LOADS, _CHOICE % "WIDE"))
    assert not _found((_LOADS, _CHOICE % "NARROW"))  # a turn may read what the last one left there


def test_a_half_is_taken_for_the_types_that_the_buffer_is_made_for() -> None:
    made = "    x_ = xBuf.Get<float>();"
    found = _found((made, f"    if constexpr (WIDE) {{\n  {made}\n    }}"))
    line = "if constexpr (WIDE) { this->x_ = this->pingPong.template Half<float>(xBuf); }"
    assert all(line in text for text in found.values())


def test_the_tiling_program_is_told_of_less_room_by_the_number_of_buffers() -> None:
    tiling = "void f() { platform.GetCoreMemSize(platform_ascendc::CoreMemType::UB, ubSize); }"
    program = KernelProgram({_PATH: (_FORMS / "tiles_by_hand.cpp").read_text()}, {"tiling.cpp": tiling})
    found = {r.site: r.tiling(program)["tiling.cpp"] for r in find("ping-pong").optimize(program)}
    assert "ubSize); ubSize = ubSize * 4 / 7 / 32 * 32; }" in found["Process/halves/room"]
    assert "ubSize = ubSize * 4 / 6 / 32 * 32;" in found["Process/loaded/room"]
    assert found["Process/halves"] == tiling


_ADDED = ("    Add(y_, work_, x_, TILE);", "    Add(y_, work_, y_, TILE);")
_LEFT = "    for (uint32_t i = 0; i < SHARE / TILE; i++) {\n"
_OTHER = "  __aicore__ inline void Other() {\n    DataCopy(yGm, y_, TILE);\n  }\n\n private:\n  template"


@pytest.mark.parametrize(
    "changes",
    [
        [("xGm[at]", "yGm[at]")],  # loads what another turn stored
        [("(__gm__ float*)w +", "(__gm__ float*)y +")],  # the same, by where it is set
        [(_LEFT, f"{_LEFT}      if (i == 3) return;\n")],  # flags would be left
        [("    Wait<HardEvent::MTE2_V>();", "    Wait<HardEvent::MTE2_V>();\n    x_.SetValue(0, 1.0f);")],
        [("    x_ = xBuf.Get<float>();", "    const uint32_t skip = 8;\n    x_ = xBuf.Get<float>()[skip];")],
        [("    Wait<HardEvent::MTE3_MTE2>();\n", "")],  # nothing that keeps turns apart
        [(_TURN, f"{_TURN}\n    }}\n    for (uint32_t i = 0; i < 2; i++) {{\n      CopyOut(i * TILE);")],
        [("DataCopy(x_, xGm[at], TILE);", "DataCopy(x_, xGm[at], x_.GetSize());")],
        [("    Exp(work_", "    SyncAll();\n    Exp(work_")],
        [("CopyIn(uint32_t at) {", "CopyIn(uint32_t at) {\n    SetFlag<HardEvent::V_MTE2>(EVENT_ID2);")],
        [("pipe->InitBuffer(xBuf, TILE * sizeof(float));", "pipe->InitBuffer(xBuf, 1, TILE * sizeof(float));")],
    ],
)
def test_no_place_where_the_same_would_be_wrong(changes: list[tuple[str, str]]) -> None:
    assert not {s: t for s, t in _found(*changes).items() if "yBuf, 2 *" in t or "xBuf, 2 *" in t}


@pytest.mark.parametrize(
    "changes", [[_ADDED], [(" private:\n  template", _OTHER), ("op.Process();", "op.Process();\n  op.Other();")]]
)
def test_what_goes_on_from_turn_to_turn_or_is_read_behind_them_has_one_place(changes: list[tuple[str, str]]) -> None:
    assert list(_found(*changes)) == ["Process/loaded"]


def test_flags_within_a_turn_stay() -> None:
    twice = "    Exp(work_, x_, TILE);\n    Wait<HardEvent::V_MTE2>();\n    DataCopy(x_, xGm[0], TILE);\n"
    twice += "    Wait<HardEvent::MTE2_V>();"
    for text in _found(("    Exp(work_, x_, TILE);", twice)).values():
        assert "Wait<HardEvent::V_MTE2>();" in text
        assert "Wait<HardEvent::MTE3_MTE2>" not in text


def test_each_turn_waits_for_the_last_one_without_it() -> None:
    text = _found()["Process/halves"]
    program = KernelProgram({_PATH: text})
    (slower,) = find("ping-pong").rewind(program)
    weak = KernelProgram(slower.kernel(program))
    assert "PingPong<2, 2, 0> pingPong;" in weak.files[_PATH]
    assert [r.kernel(weak)[_PATH] for r in find("ping-pong").optimize(weak)] == [text]
