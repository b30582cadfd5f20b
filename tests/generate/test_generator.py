"""Modules become programs: the schedule that is meant, right at small shapes, and through the gate once lowered."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import mhc_modules
import pytest
import torch
from generated_modules import MODULES, Of, thirds_changed
from torch import nn

from ascendopt_tune.build import toolkit
from ascendopt_tune.dsl import DslError, interpret, on_tensors, read_text
from ascendopt_tune.evaluate.evaluator import Evaluator
from ascendopt_tune.evaluate.gate import Gate
from ascendopt_tune.generator import Generated, NotGenerated, generate
from ascendopt_tune.generator.capture import ModuleInputs, capture
from ascendopt_tune.generator.fit import fitted
from ascendopt_tune.generator.gated import judged
from ascendopt_tune.generator.roofline import roofline_us
from ascendopt_tune.generator.schedules import window
from ascendopt_tune.nouns.outcome import Timed
from ascendopt_tune.sources.arguments import build_case, parse_tensor
from ascendopt_tune.sources.registry import load_folder


@pytest.fixture(scope="module")
def evaluator() -> Iterator[Evaluator]:
    with Evaluator(toolkit.find("virtual")) as found:
        yield found


def made(name: str) -> Generated:
    module, inputs, _ = MODULES[name]
    return generate(module(), inputs(), name=name)


@pytest.mark.parametrize("name", MODULES)
def test_a_module_gets_its_schedule_and_agrees_with_its_program(name: str) -> None:
    generated = made(name)  # raises where interpreter and module differ
    assert generated.schedule == MODULES[name][2]
    assert len(generated.checked) >= 2
    assert read_text(generated.text).host.name == name
    assert max(map(len, generated.text.splitlines())) < 200


@pytest.mark.parametrize("name", ["channel_norm", "exclusive", "pooled", "rows_put", "rotary_halves", "beside"])
def test_the_lowered_operator_passes_the_gate(name: str, evaluator: Evaluator, tmp_path: Path) -> None:
    generated = made(name)
    generated.write(tmp_path / name)
    operator = load_folder(tmp_path / name)
    signature = evaluator.describe(operator).signature
    inputs = generated.case()["inputs"]
    assert isinstance(inputs, dict)
    tensors = dict(parse_tensor(f"{k}={v}") for k, v in inputs.items())
    attributes = generated.attributes
    case = build_case(signature, tensors, attributes, {}, lambda i, a: evaluator.infer_outputs(operator, i, a))
    result = Gate(operator, case, evaluator, kinds=("normal", "lines", "negative")).evaluate(operator.baseline)
    assert isinstance(result.outcome, Timed), result.outcome
    assert not result.hazards


@pytest.mark.parametrize(
    ("module", "shape", "programs"),
    [
        (nn.MaxPool2d(2, 2, 1, 3), (2, 3, 12, 18), 2),
        (nn.AvgPool3d(3, 2, 1), (2, 2, 7, 6, 9), 2),
        (nn.MaxPool3d(3, 2, 1, 2), (3, 2, 9, 8, 7), 2),
        (nn.AvgPool2d(3), (3, 2, 13, 11), 2),
        (nn.AvgPool1d(4, 2, 1), (4, 3, 21), 2),
        (nn.MaxPool2d(5, 5), (2, 2, 11, 23), 2),
    ],
)
def test_every_schedule_of_a_window_agrees(module: nn.Module, shape: tuple[int, ...], programs: int) -> None:
    """Blocks of lines, and line by line."""
    x = torch.randn(shape, generator=torch.Generator().manual_seed(3))
    graph = capture(ModuleInputs(module, [x], "pooled")).graph
    found = []
    for draft in window.drafts(graph):
        _, program = fitted(graph, [draft])
        given = {program.of_kind("input")[0].name: x.numpy()}
        result = interpret(program, given, knobs={k.name: 3 for k in draft.knobs})
        torch.testing.assert_close(torch.from_numpy(result["y"]), module(x), rtol=1e-5, atol=1e-6)
        found.append(program.text)
    assert len(set(found)) == programs


def test_mean_and_deviation_of_a_long_row_take_one_pass() -> None:
    """The mean is a thousand times the deviation, and drifts along the row."""
    x = 1000 + torch.randn(50, 30000, generator=torch.Generator().manual_seed(4)) + torch.arange(30000) / 5000
    generated = generate(nn.LayerNorm(30000, elementwise_affine=False), [x], name="normal")
    assert generated.text.count("tl.load(") == 2
    result = on_tensors(generated.program, {generated.program.of_kind("input")[0].name: x[:3].contiguous()})
    wanted = torch.nn.functional.layer_norm(x[:3].double(), (30000,)).float()
    torch.testing.assert_close(result["y"], wanted, rtol=1e-3, atol=1e-3)


def test_a_row_that_fills_the_buffer_is_loaded_once_and_overwritten() -> None:
    generated = generate(Of(lambda x: torch.log_softmax(x, 1)), [torch.randn(4, 16384)], name="rows")
    assert generated.text.count("tl.load(") == 1
    assert re.search(r"(\w+_tile) = \1 - largest", generated.text)
    assert 'tl.knob("BUFFER_NUM", 1' in generated.text


def test_pieces_that_run_over_the_same_axes_are_made_together() -> None:
    text = made("rotary_halves").text
    assert text.count("tl.load(") == 4
    assert text.count("tl.store(y +") == 2


def test_a_size_that_is_cut_into_equal_pieces_has_to_be_a_multiple() -> None:
    generated = made("thirds_changed")
    (name,) = (t.name for t in generated.program.of_kind("input"))
    x = torch.randn(2, 12, 20)
    torch.testing.assert_close(on_tensors(generated.program, {name: x})["y"], thirds_changed(x), rtol=1e-6, atol=1e-6)
    with pytest.raises(DslError, match=r"axis 1 of .* is a multiple of 3"):
        on_tensors(generated.program, {name: torch.randn(2, 13, 20)})
    # An example that isn't one is cut as torch cuts it.
    assert generate(Of(lambda x: x.chunk(2, -1)[0] * 2), [torch.randn(4, 41)], name="odd").schedule == "map"


def test_a_float_that_is_passed_becomes_an_attribute() -> None:
    generated = made("scaled")
    assert generated.attributes == {"factor": 1.5}
    assert "factor=1.5" in generated.text


def test_an_optimizer_reads_every_tensor_once() -> None:
    text = made("momentum").text
    assert text.count("tl.load(") == 3
    assert text.count("tl.store(") == 1


def test_a_loss_over_labels_picks_one_element_of_a_row_and_says_what_labels_may_be() -> None:
    generated = made("label_loss")
    assert generated.domains == {"labels": {"index": "scores", "axis": 1}} or len(generated.domains) == 1
    assert "tl.sync_all()" in generated.text


def test_inputs_whose_negative_values_give_no_number_get_a_domain() -> None:
    generated = generate(Of(lambda x, y: torch.log(x) * y), [torch.rand(4, 50) + 1, torch.rand(4, 50)], name="logs")
    assert [set(d) for d in generated.domains.values()] == [{"low"}]


def test_sizes_stay_free() -> None:
    text = made("softmax_of_rows").text
    assert "130" not in text
    assert " 90" not in text


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", mhc_modules.MODULES)
def test_mhc_in_the_full_formula_agrees(name: str, dtype: torch.dtype) -> None:
    module, names = mhc_modules.MODULES[name]
    given = mhc_modules.inputs(20, 40, dtype)
    generated = generate(module(), [given[n] for n in names], name=name)
    schedules = {"mhc_grad_post": "rows", "mhc_grad_comb": "rows", "mhc_post_grad": "several"}
    assert generated.schedule == schedules.get(name, "middle")
    assert len(generated.checked) == 3


@pytest.mark.battery
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", mhc_modules.MODULES)
def test_mhc_passes_the_gate(name: str, dtype: torch.dtype, evaluator: Evaluator) -> None:
    module, names = mhc_modules.MODULES[name]
    given = mhc_modules.inputs(64, 512, dtype)
    values = [given[n] for n in names]
    profile = judged(generate(module(), values, name=name), evaluator)
    assert not isinstance(profile, str), profile
    bound = roofline_us(module(), values, evaluator.chip)
    print(f"{name}, {dtype}: {profile.task_duration_us:.1f} us modelled, R {bound:.1f} us")


def test_negative_indices_along_an_axis_count_from_its_end() -> None:
    program = made("wrapped").program
    x, index = torch.randn(9, 70), torch.randint(-70, 70, (9, 40))
    names = [t.name for t in program.of_kind("input")]
    found = on_tensors(program, dict(zip(names, (x, index), strict=True)))
    assert torch.equal(found["y"], torch.take_along_dim(x, index, 1))


def test_the_index_of_a_scatter_stays_inside_its_axis() -> None:
    ((index, domain),) = made("rows_added").domains.items()
    given = [i.name for i in made("rows_added").graph.inputs]
    assert (index, domain) == (given[1], {"index": given[0], "axis": 0})


REFUSED = [
    (lambda x: torch.sort(x)[0], "aten.sort has no rule"),
    (lambda x: torch.cumsum(x, 1).mean(), "have no schedule together"),
    (lambda x: torch.cat((x, x * 2), 1).sum(1), "cat in front of what is not computed element by element"),
    (lambda x: torch.cat((x, x[:, :1]), 1), "cat of pieces of one element"),
    (lambda x: torch.cat((x, x * 2), 1).flatten(), "the axis along which pieces were put together"),
    (lambda x: x.sum(1).softmax(0), "keeps an axis|follows a reduction|different axes"),
    (lambda x: x.t() * 2.0 + torch.ones(30, 20), "not contiguous"),
]


@pytest.mark.parametrize(
    ("function", "dtype", "text"),
    [
        (lambda x: {"y": x + 1}, torch.float32, "returns a dict"),
        (lambda x: (x, (x + 1, x)), torch.float32, "a tuple in a tuple"),
        (lambda x: x + 1, torch.float64, "is float64. The tile language has float32"),
        (lambda x: x.double() + 1, torch.float32, "the result is float64"),
    ],
)
def test_what_an_operator_cannot_return_or_take_is_refused(function: object, dtype: torch.dtype, text: str) -> None:
    with pytest.raises(NotGenerated, match=text):
        generate(Of(function), [torch.rand(4, 40).to(dtype)], name="refused")  # type: ignore[arg-type]


@pytest.mark.parametrize(("function", "text"), REFUSED)
def test_what_no_rule_fits_is_refused_by_name(function: object, text: str) -> None:
    with pytest.raises(NotGenerated, match=text):
        generate(Of(function), [torch.rand(20, 30)], name="refused")  # type: ignore[arg-type]


def test_a_module_object_is_kept_beside_its_reference(tmp_path: Path) -> None:
    generated = generate(nn.Softsign(), [torch.randn(3, 20)])
    assert generated.name == "softsign"
    generated.write(tmp_path / "softsign")
    operator = load_folder(tmp_path / "softsign")
    x = torch.randn(5, 7)
    assert operator.reference is not None
    torch.testing.assert_close(operator.reference(x), x / (1 + x.abs()))
