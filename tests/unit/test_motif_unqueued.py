"""Queues that nobody queues in, as buffers: where they are, and twins where a queue orders what a buffer doesn't."""

from __future__ import annotations

from pathlib import Path

import pytest
from motif_rewrites import after

from ascendopt_tune.search.kernel.motifs import find
from ascendopt_tune.search.kernel.reading.kernel_program import KernelProgram

_TEXT = (Path(__file__).parents[1] / "vnpu" / "motif_forms_seventh" / "scratch_queues.cpp").read_text()
_SITES = {"all", "ScratchQueues/powers", "ScratchQueues/sums", "ScratchQueues/weights"}


def _found(*changes: tuple[str, str], auto_sync: bool = False) -> dict[str, str]:
    text = _TEXT
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    program = KernelProgram({"k.cpp": text}, {}, None, auto_sync)
    return {r.site: r.kernel(program)["k.cpp"] for r in find("unqueued-tensors").optimize(program)}


def test_a_tensor_that_is_kept_or_given_back_is_a_buffers() -> None:
    found = _found()
    assert set(found) == _SITES
    text = found["all"]
    assert "TBuf<TPosition::VECCALC> powers, sums;" in text
    assert "TBuf<TPosition::VECCALC> weights;" in text
    assert "pipe->InitBuffer(powers, LENGTH * sizeof(float));" in text
    assert "LocalTensor<float> power = powers.Get<float>();" in text
    assert not any(f"{name}.FreeTensor" in text for name in ("powers", "sums", "weights"))
    assert "inQueue.FreeTensor(in);" in text
    assert "TQue<QuePosition::VECCALC, 1> sums;" in found["ScratchQueues/powers"]  # of a line with another one


def test_several_buffers_are_one_where_the_compiler_synchronizes_or_one_is_ever_taken() -> None:
    two = ("InitBuffer(powers, 1,", "InitBuffer(powers, 2,")
    assert "ScratchQueues/powers" in _found(two, auto_sync=True)
    assert "ScratchQueues/powers" not in _found(two)
    assert "InitBuffer(weights, LENGTH" in _found(("InitBuffer(weights, 1,", "InitBuffer(weights, 2,"))["all"]


_BACK = "    powers.FreeTensor(power);"
_MORE = "    LocalTensor<float> more = powers.AllocTensor<float>();\n    Abs(more, sum, LENGTH);\n"


def test_a_function_may_take_one_after_the_other() -> None:
    again = f"{_BACK}\n{_MORE}    powers.FreeTensor(more);"
    text = _found((_BACK, again))["ScratchQueues/powers"]
    assert "LocalTensor<float> more = powers.Get<float>();" in text
    assert "ScratchQueues/powers" not in _found((_BACK, f"{_MORE}{_BACK}\n    powers.FreeTensor(more);"))  # two at once


_KEPT = "    weight = weights.AllocTensor<float>();"


def test_either_side_of_a_choice_may_take_the_tensor() -> None:
    either = f"    if (x != nullptr) {{\n  {_KEPT}\n    }} else {{\n  {_KEPT}\n    }}"
    assert "ScratchQueues/weights" in _found((_KEPT, either))
    assert "ScratchQueues/weights" not in _found((_KEPT, f"{_KEPT}\n{_KEPT}"))


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("powers", [("    powers.FreeTensor(power);", "    powers.EnQue(power);")]),  # somebody queues in it
        ("powers", [("    powers.FreeTensor(power);\n", "")]),  # never given back, in each turn
        (
            "powers",
            [("Exp(power, in, LENGTH);", "DataCopy(power, wGm, LENGTH);")],
        ),  # loads wait for what was given back
        (
            "powers",
            [("    powers.FreeTensor(power);", "    DataCopy(yGm, power, LENGTH);\n    powers.FreeTensor(power);")],
        ),
        ("powers", [("    Exp(power", "    Other(powers);\n    Exp(power")]),  # whoever that is asks for more
        ("powers", [("powers.FreeTensor(power);", "if (more) { powers.FreeTensor(power); }")]),
        ("sums", [("    Exp(power", "    LocalTensor<float> more = sums.AllocTensor<float>();\n    Exp(power")]),
        ("weights", [("      Compute();", f"      Compute();\n  {_KEPT}")]),
        ("weights", [("op.Init(x, w, y, &pipe);", "for (int i = 0; i < 2; i++) { op.Init(x, w, y, &pipe); }")]),
    ],
)
def test_no_buffer_where_the_queue_says_more(name: str, changes: list[tuple[str, str]]) -> None:
    assert f"ScratchQueues/{name}" not in _found(*changes)


def test_what_is_queued_stays_a_queue() -> None:
    assert not after("unqueued-tensors", "\n".join(line for line in _TEXT.splitlines() if "InitBuffer" not in line))
