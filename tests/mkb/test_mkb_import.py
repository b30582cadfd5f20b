"""From a solution to an operator folder: what is read, what is followed, what is refused, and that it runs."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import torch
from imported import checked, microseconds
from typer.testing import CliRunner

from ascendopt_tune.cli import app
from ascendopt_tune.errors import OperatorError
from ascendopt_tune.evaluate.evaluator import Evaluator
from ascendopt_tune.mkb.binding import Binding
from ascendopt_tune.mkb.definition import OpDefinition, read_definition
from ascendopt_tune.mkb.folder import import_solution
from ascendopt_tune.mkb.module import Module
from ascendopt_tune.mkb.solution import NAMES, read_solution
from ascendopt_tune.mkb.values import Origin, Tracked
from ascendopt_tune.sources.registry import LazyReference, load_folder

DATA = Path(__file__).resolve().parent / "data"
SOLUTION, TASK = DATA / "gated_scale.py", DATA / "gated_scale_task.py"
HERE = Path("solution.py")


# -- the six strings ---------------------------------------------------------------------------------------------------


def test_the_strings_are_read(tmp_path: Path) -> None:
    solution = read_solution(SOLUTION)
    assert set(solution.texts) == set(NAMES)
    assert (solution.name, solution.entry) == ("gated_scale_custom", "gated_scale_custom")
    assert solution.project["op"] == "GatedScaleCustom"
    answer = tmp_path / "answer.txt"
    answer.write_text(f"Here it is:\n```python\n{SOLUTION.read_text()}\n```\nDone.")
    assert read_solution(answer).texts == solution.texts


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('model_src = """', 'model_src = f"""', "model_src is an f-string"),
        ('kernel_src = """', 'kernel_src = "" + """', "kernel_src is made by code"),
        ('model_src = """', 'other_src = """', "has no model_src"),
        ('model_src = """', 'kernel_src = ""\nmodel_src = """', "kernel_src is assigned more than once"),
        ('project_json_src = """', 'kernel_src = 3\nproject_json_src = """', "kernel_src is no string, but 3"),
        ('project_json_src = """', 'project_json_src = = """', "is no Python text"),
        ('"""A', '# kernel options: -fplugin=x.so\n"""A', "asks for the kernel option '-fplugin=x.so'"),
    ],
)
def test_what_would_have_to_be_executed_is_refused(tmp_path: Path, old: str, new: str, said: str) -> None:
    text = SOLUTION.read_text()
    assert old in text
    changed = tmp_path / "solution.py"
    changed.write_text(text.replace(old, new, 1))
    with pytest.raises(OperatorError, match=re.escape(said)):
        read_solution(changed)


def test_the_definition_is_read() -> None:
    text = read_solution(SOLUTION).texts["host_operator_src"]
    assert read_definition(text, HERE) == OpDefinition("GatedScaleCustom", ("x", "weight", "mask"), ("y",), ("factor",))
    with pytest.raises(OperatorError, match="no class that derives from OpDef"):
        read_definition("int x;", HERE)
    for other in ("NAME", '"x, y"', '"x):import os"', '"lambda"'):
        with pytest.raises(OperatorError, match="the name of an Input is no literal with a name"):
            read_definition(text.replace('Input("x")', f"Input({other})"), HERE)


# -- the binding -------------------------------------------------------------------------------------------------------

BODY = """
at::Tensor helper(const at::Tensor& t) {{ return t.contiguous(); }}
at::Tensor f(const at::Tensor& x, const at::Tensor& w, double a) {{
{body}
}}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {{ m.def("g", &f, "g"); }}
"""
CALL = "at::Tensor y = at::empty_like(x); EXEC_NPU_CMD(aclnnG, x, w, a, y); return y;"
DEFINITION = OpDefinition("G", ("x", "w"), ("y",), ("a",))


def bound(body: str) -> tuple[Binding, Any]:
    x = Tracked(torch.arange(24.0).reshape(2, 3, 4), Origin("input", "p"))
    w = Tracked(torch.arange(4), Origin("input", "q"))
    binding = Binding(BODY.format(body=body), DEFINITION, HERE)
    return binding, binding.call("g", [x, w, 0.5], {})


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (CALL, "x"),
        ("at::Tensor b = x.permute({2, 0, 1}).contiguous();" + CALL.replace("G, x", "G, b"), "x.permute(1, 2, 0)"),
        ("auto b = x.to(at::kHalf);" + CALL.replace("G, x", "G, b"), "x.to(torch.float32)"),
        ("auto b = at::transpose(x, 0, 1);" + CALL.replace("G, x", "G, b"), "x.transpose(0, 1)"),
        ("auto b = x.unsqueeze(1).flatten();" + CALL.replace("G, x", "G, b"), "x.reshape(2, 1, 3, 4).squeeze(1)"),
        ("auto b = helper(x).reshape({-1, x.size(2)});" + CALL.replace("G, x", "G, b"), "x.reshape(2, 3, 4)"),
    ],
)
def test_an_input_is_told_from_the_operator_s(body: str, told: str) -> None:
    binding, _ = bound(body)
    assert binding.launch is not None
    value = binding.launch.inputs["x"]
    assert (value.origin, value.told("x")) == (Origin("input", "p"), told)
    assert torch.equal(eval(told, {"x": value.tensor, "torch": torch}), torch.arange(24.0).reshape(2, 3, 4))


@pytest.mark.parametrize(
    ("allocation", "dtype", "shape", "fill"),
    [
        ("at::empty({x.size(0), x.size(2) / 3 + 1}, x.options().dtype(at::kLong))", torch.int64, (2, 2), None),
        ("at::zeros(x.sizes(), x.options())", torch.float32, (2, 3, 4), 0.0),
        ("at::full_like(x, -1.5)", torch.float32, (2, 3, 4), -1.5),
        ("at::empty({}, w.options())", torch.int64, (), None),
        ("at::empty(std::vector<int64_t>{x.numel(), a > 0.25 ? 2 : 3}, at::kHalf)", torch.float16, (24, 2), None),
    ],
)
def test_outputs_are_allocated(allocation: str, dtype: torch.dtype, shape: tuple[int, ...], fill: float | None) -> None:
    binding, result = bound(CALL.replace("at::empty_like(x)", allocation))
    assert binding.launch is not None
    output = binding.launch.outputs["y"]
    assert (output.tensor.dtype, output.shape, output.fill) == (dtype, shape, fill)
    assert result.origin == Origin("output", "y")


@pytest.mark.parametrize(
    "body",
    [
        "std::vector<int64_t> s(x.sizes().begin(), x.sizes().end()); s.push_back(w.size(0)); s[0] *= 2;",
        "std::vector<int64_t> s = {4}; for (int i = 1; i < x.dim(); i++) { s.push_back(x.size(i)); } s.push_back(4);",
        "auto s = x.sizes().vec(); s.push_back(4); if (s[0] < 4) { s[0] = 4; } else { s[0] = 5; }",
        "int64_t n = static_cast<int64_t>(3.9); std::vector<int64_t> s{-(-4), n, 4, std::max<int64_t>(n, 4)};",
    ],
)
def test_shapes_are_computed(body: str) -> None:
    binding, _ = bound(body + CALL.replace("at::empty_like(x)", "at::empty(s, x.options())"))
    assert binding.launch is not None
    assert binding.launch.outputs["y"].shape == (4, 3, 4, 4)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("return at::softmax(x, 1);", "the function at::softmax is not followed"),
        ("x.add_(1); " + CALL, "the tensor's method add_ is not followed"),
        (CALL.replace("aclnnG", "aclnnSoftmax"), "calls aclnnSoftmax, which is not the operator of the sources (G)"),
        (CALL.replace("return y;", "") + CALL.replace("at::Tensor y", "y"), "calls aclnnG a second time"),
        (CALL.replace("x, w, a, y", "x, a, y"), "gives aclnnG 3 arguments; its definition has 4: x, w, a, y"),
        (CALL.replace("w, a, y", "w, a, x"), "the output y, which it did not allocate itself"),
        ('TORCH_CHECK(x.dim() == 2, "two axes"); ' + CALL, 'doesn\'t take these inputs: "two axes"'),
        ("while (true) {} " + CALL, "the statement `while (true) {}` is not followed"),
        ("auto b = x.reshape({5, 5}); " + CALL, "fails on these inputs: RuntimeError"),
        ("std::vector<int64_t> v(1000000000); " + CALL, "a vector of 1000000000 elements is not followed"),
        ("int64_t n = 1 << 40000000; " + CALL, "a shift by 40000000 is not followed"),
        ("for (int64_t i = 0; i >= 0; i++) {} " + CALL, "a loop of more than 10000 rounds"),
    ],
)
def test_what_a_binding_may_not_do(body: str, said: str) -> None:
    with pytest.raises(OperatorError, match=re.escape(said)) as caught:
        bound(body)
    assert "python_bind_src line 4" in str(caught.value)


# -- the module --------------------------------------------------------------------------------------------------------

MODULE = """
import torch, custom_ops_lib as lib
FACTOR = 3
def widened(t):
    return t.to(torch.float64)
class ModelNew(torch.nn.Module):
    def __init__(self, n, scale=1.5):
        super().__init__()
        {init}
    def forward(self, x):
        {forward}
"""


def followed(init: str = "pass", forward: str = "return lib.g(x)") -> list[Any]:
    seen: list[Any] = []

    def call(name: str, args: Any, keywords: Any) -> Any:
        seen.extend([name, *args])
        return args[0]

    module = Module(MODULE.format(init=init, forward=forward), HERE, call)
    module.build([4])
    module.forward([torch.arange(8.0).reshape(2, 4)])
    return seen


def test_parameters_and_numbers_keep_their_origin() -> None:
    init = "self.w = torch.nn.Parameter(torch.ones(n)); self.s = scale; self.norm = torch.nn.LayerNorm(n)"
    forward = "return lib.g(widened(x).view(-1), self.w, self.norm.bias, self.s, int(n := 2) if False else FACTOR * 2)"
    name, x, w, bias, s, six = followed(init, forward.replace("int(n := 2)", "0"))
    assert (name, x.origin, x.told("x")) == ("g", Origin("input", "x"), "x.reshape(2, 4).to(torch.float32)")
    assert (w.origin, bias.origin) == (Origin("parameter", "w"), Origin("parameter", "norm.bias"))
    assert (s, s.origin, six) == (1.5, Origin("constructor", "scale"), 6)


@pytest.mark.parametrize(
    ("init", "forward", "said"),
    [
        ("pass", "return lib.g(x + 1)", "`x + 1`, which computes with a tensor, is not followed"),
        ("pass", "return lib.g(torch.relu(x))", "the tensor's method relu is not followed"),
        ("pass", "return lib.g(x[0])", "`x[0]`, a part of a tensor, is not followed"),
        ("open('f')", "return lib.g(x)", "the name open is not followed"),
        ("self.m = torch.load(n)", "return lib.g(x)", "the function load is not followed"),
        (
            "pass",
            "if x.shape[0] == 2:\n            raise ValueError('no')\n        return lib.g(x)",
            "raises on the task's",
        ),
        ("self.x = 9 ** 9 ** 9", "return lib.g(x)", "the power 9 ** 387420489 is not followed"),
        ("self.x = [0] * 10 ** 12", "return lib.g(x)", "a list of 1000000000000 elements is not followed"),
        ("for i in range(10 ** 12): pass", "return lib.g(x)", "a loop of more than 10000 rounds is not followed"),
        ("self.x = __import__('os')", "return lib.g(x)", "the name __import__ is not followed"),
    ],
)
def test_what_a_module_may_not_do(init: str, forward: str, said: str) -> None:
    with pytest.raises(OperatorError, match=re.escape(said)):
        followed(init, forward)


# -- the folder --------------------------------------------------------------------------------------------------------


def test_a_solution_becomes_a_folder_that_runs(tmp_path: Path, evaluator: Evaluator) -> None:
    out = tmp_path / "op"
    found = import_solution(SOLUTION, TASK, out)
    assert found.notes == []
    settings = tomllib.loads((out / "op.toml").read_text())
    assert settings["domain"] == {"mask": {"low": 0, "high": 1, "whole": True}}
    assert settings["case"] == [
        {
            "inputs": {"x": "float32[4,50,24]", "weight": "float32[24]", "mask": "float32[4,50,24]"},
            "outputs": {"y": "float32[4,50,24]"},
            "attrs": {"factor": 0.5},
        }
    ]
    assert microseconds(checked(load_folder(out), evaluator, kinds=("normal", "lines", "zeros"))) > 0


def test_the_reference_asks_the_task_s_module(tmp_path: Path) -> None:
    import_solution(SOLUTION, TASK, tmp_path / "op")
    reference = LazyReference(tmp_path / "op" / "reference.py")
    x, weight, mask = torch.randn(4, 50, 24), torch.randn(24), (torch.rand(4, 50, 24) > 0.5).float()
    torch.testing.assert_close(reference(x, weight, mask, factor=3.0), x * weight * mask * 3.0)


@pytest.mark.parametrize(("formula", "low"), [("x.sqrt()", 0.0), ("x.log()", 1e-7), ("x.abs()", None)])
def test_where_a_model_is_undefined_the_operator_is(tmp_path: Path, formula: str, low: float | None) -> None:
    task = tmp_path / "task.py"
    drawn = "(torch.rand(4, 24, 50) + 1e-7)"
    text = TASK.read_text().replace("return x *", f"return {formula} *").replace("torch.rand(4, 24, 50),", f"{drawn},")
    task.write_text(text)
    import_solution(SOLUTION, task, tmp_path / "op")
    domain = load_folder(tmp_path / "op").settings["domain"].get("x")
    assert domain == (None if low is None else {"low": pytest.approx(low, abs=1e-3)})


def test_without_a_task_there_is_no_reference(tmp_path: Path) -> None:
    found = import_solution(SOLUTION, None, tmp_path / "op")
    assert "reference.py" not in found.files
    assert "No task was given" in found.notes[0]
    with pytest.raises(OperatorError, match="exists and isn't empty"):
        import_solution(SOLUTION, None, tmp_path / "op")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("get_init_inputs", "get_other", "defines no get_init_inputs"),
        ("return x", "return x.sum(), x", "ModelNew returns 1 of shape"),
        (
            "* self.factor * mask",
            "* self.factor * mask * (id(self) % 1000003)",
            "gives another y than from its own",
        ),
    ],
)
def test_a_task_that_does_not_fit(tmp_path: Path, old: str, new: str, said: str) -> None:
    task = tmp_path / "task.py"
    task.write_text(TASK.read_text().replace(old, new))
    with pytest.raises(OperatorError, match=re.escape(said)):
        import_solution(SOLUTION, task, tmp_path / "op")


def test_the_command_tells_what_it_wrote(tmp_path: Path) -> None:
    arguments = ["import", str(SOLUTION), "--task", str(TASK), "--out", str(tmp_path / "op")]
    done = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert "op_kernel/gated_scale_custom.cpp" in done.output
    assert f"Next: ascendopt-tune run {tmp_path / 'op'}" in done.output
