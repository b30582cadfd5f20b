"""Products by parts that add to their sum where they are made, and twins where the same would be wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from ascendopt_tune.search.kernel.motifs import find
from ascendopt_tune.search.kernel.reading.kernel_program import KernelProgram

_TEXT = (Path(__file__).parents[1] / "vnpu" / "motif_forms_seventh" / "placed_products.cpp").read_text()


def _found(*changes: tuple[str, str], auto_sync: bool = False) -> list[str]:
    text = _TEXT
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    program = KernelProgram({"k.cpp": text}, {}, None, auto_sync)
    return [r.kernel(program)["k.cpp"] for r in find("fused-multiply-add").optimize(program)]


def test_each_part_adds_to_the_sum() -> None:
    (text,) = _found()
    assert "MulAddDst(sum[part * PART], x_[part * PART], w_[part * PART], PART, ROWS, {1, 1, 1, 24, 24, 24});" in text
    assert "MulAddDst(sum[LENGTH - PART], x_[LENGTH - PART]," in text
    assert "Add(sum, sum, product" not in text
    assert "PipeBarrier<PIPE_V>();\n      for (uint32_t part" in text  # the sum as it was is there
    (text,) = _found(auto_sync=True)
    assert "PipeBarrier<PIPE_V>();\n      for (uint32_t part" not in text


_SUM = "      Add(sum, sum, product, ROWS * LENGTH);"


@pytest.mark.parametrize(
    "change",
    [
        (_SUM, f"{_SUM}\n      Abs(x_, product, LENGTH);"),  # somebody else reads the products
        ("    sum = sumBuf.Get<float>();", "    sum = sumBuf.Get<float>();\n    other = productBuf.Get<float>();"),
        ("      Set<HardEvent::MTE2_V>();\n", "      Set<HardEvent::MTE2_V>();\n      Abs(product, x_, LENGTH);\n"),
        (_SUM, f"      Exp(sum, sum, LENGTH);\n{_SUM}"),  # the sum goes on between
        ("Mul(product[part * PART], x_[part * PART]", "Mul(product[part * PART], sum[part * PART]"),
        ("PART, ROWS, {1, 1, 1, 24, 24, 24});\n      }", "PART, ROWS, {1, 1, 1, 24, 24, 24});\n        Go();\n      }"),
        ("  LocalTensor<float> x_, w_, product, sum;", "  LocalTensor<int32_t> x_, w_, product, sum;"),
        ("Add(sum, sum, product", "Sub(sum, sum, product"),
    ],
)
def test_no_place_where_the_sum_is_more(change: tuple[str, str]) -> None:
    assert not [text for text in _found(change) if "MulAddDst(sum[" in text]
