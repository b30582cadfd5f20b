"""Unmodified operators beside published times: the table, and what is summed up of it.

With checkouts of CANN's repositories (``ASCENDOPT_OPS_NN``, ``ASCENDOPT_OPS_TRANSFORMER``) a few rows run, against
what docs/fidelity_operators.md says.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ascendopt_tune.errors import SettingsError
from ascendopt_tune.fidelity import operators
from ascendopt_tune.fidelity.operators import ModelledOperator, PublishedOperator
from ascendopt_tune.nouns.chip import FLUSHED, WARM
from ascendopt_tune.nouns.profile import Profile
from ascendopt_tune.settings import override

PAGE = Path(__file__).resolve().parents[2] / "docs" / "fidelity_operators.md"


def modelled(row: PublishedOperator, us: float) -> ModelledOperator:
    return ModelledOperator(
        row, {s: Profile(us) for s in operators.STATES}, {s: [0.9 * us, us, 1.1 * us] for s in operators.STATES}
    )


def test_every_row_of_the_table_can_be_read_and_has_one_name() -> None:
    rows = operators.read()
    assert len({r.id for r in rows}) == len(rows) == 128
    for row in rows:
        assert row.task_duration_us > 0, row.id
        assert row.case.inputs, row.id
        assert row.case.outputs, row.id
        assert all(row.case.inputs[position] for position in row.domain), row.id
        assert row.repository in operators.checkouts(), row.id


def test_rows_are_chosen_by_name_and_by_family() -> None:
    rows = operators.read()
    assert [r.id for r in operators.chosen(["swi_glu/2"], rows)] == ["swi_glu/2"]
    assert {r.family for r in operators.chosen(["rms_norm"], rows)} == {"rms_norm"}
    with pytest.raises(SettingsError, match="no published operator swiglu"):
        operators.chosen(["swiglu"], rows)


@pytest.mark.parametrize(
    ("name", "missing"), [("swi_glu/11", "ASCENDOPT_OPS_NN"), ("moe_re_routing/20", "ASCENDOPT_OPS_TRANSFORMER")]
)
def test_without_sources_it_is_said_what_is_missing(name: str, missing: str) -> None:
    with override(ops_nn=None, ops_transformer=None), pytest.raises(SettingsError) as told:
        next(operators.run(operators.chosen([name], operators.read())))
    assert "need their sources" in str(told.value)
    assert missing in str(told.value)


def test_errors_are_summed_up_by_operator() -> None:
    first, second, *_ = operators.chosen(["swi_glu"], operators.read())
    other = operators.chosen(["rms_norm/3"], operators.read())[0]
    found = [
        modelled(first, 1.2 * first.task_duration_us),
        modelled(second, 0.95 * second.task_duration_us),
        modelled(other, 1.0 * other.task_duration_us),
        ModelledOperator(operators.chosen(["dynamic_quant/1"], operators.read())[0], {}, reason="none"),
    ]
    glu, norm, every = operators.summary(found, FLUSHED)
    assert (glu.family, glu.rows, norm.rows, every.rows) == ("swi_glu", 2, 1, 3)
    assert (glu.bias, glu.median, glu.worst) == pytest.approx((7.5, 12.5, 20))
    assert (glu.inside, glu.ordered, norm.ordered) == (0.5, 1.0, None)
    page = operators.page(found)
    assert "4 published times, 3 modelled" in page
    assert "| dynamic_quant/1 | none |" in page


@pytest.mark.parametrize(
    "name",
    [
        "swi_glu/11",
        "group_norm/16",
        "dequant_swiglu_quant/5",
        "rms_norm/17",
        "moe_re_routing/20",
        "moe_finalize_routing/14",
    ],
)
def test_a_row_is_what_the_page_says(name: str) -> None:
    (one,) = run(name)
    line = next(text for text in PAGE.read_text().splitlines() if text.startswith(f"| {name} |"))
    flushed, warm = re.findall(r"\| ([\d.]+) \| [+-]", line)
    for state, said in ((FLUSHED, flushed), (WARM, warm)):
        assert f"{one.profiles[state].task_duration_us:.1f}" == said
    assert one.profiles[FLUSHED].task_duration_us > one.profiles[WARM].task_duration_us


def test_a_kernel_that_writes_past_its_buffer_has_no_time() -> None:
    (one,) = run("dequant_swiglu_quant/15")
    assert not one.profiles
    assert "past the end of its buffer" in one.reason


def run(name: str) -> list[ModelledOperator]:
    rows = operators.chosen([name], operators.read())
    for row in rows:
        if operators.checkouts()[row.repository] is None:
            pytest.skip(f"there is no checkout of {row.repository}")
    return list(operators.run(rows))
