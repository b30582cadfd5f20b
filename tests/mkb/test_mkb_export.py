"""From an operator to a solution, and back: the same program, the same verdict, the same modelled time."""

from __future__ import annotations

import ast
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from imported import checked, microseconds
from typer.testing import CliRunner

from ascendopt_tune.cli import app
from ascendopt_tune.cli.options import CaseFlags
from ascendopt_tune.cli.subject import make_subject
from ascendopt_tune.errors import OperatorError
from ascendopt_tune.evaluate.evaluator import Evaluator
from ascendopt_tune.mkb.folder import import_solution
from ascendopt_tune.mkb.inline import inlined, renamed
from ascendopt_tune.mkb.shapes import allocation
from ascendopt_tune.mkb.solution import NAMES, read_solution
from ascendopt_tune.mkb.write import Export, kept_texts
from ascendopt_tune.nouns.case import Case, TensorSpec
from ascendopt_tune.nouns.operator import Operator, ParamDef, Signature
from ascendopt_tune.sources.registry import load_folder, load_operator, operator_names

DATA = Path(__file__).resolve().parent / "data"
#: Small cases of operators that CI takes there and back.
SMALL: dict[str, dict[str, object]] = {
    "rms_norm": {"inputs": {"x": "float16[70,256]", "gamma": "float16[256]"}, "attrs": {"epsilon": 1e-6}},
}


def exported(operator: Operator, evaluator: Evaluator, folder: Path) -> tuple[Path, Path]:
    """Files of the solution and of the task."""
    subject = make_subject(operator, evaluator, CaseFlags())
    made = Export(
        operator, subject.signature, subject.case, lambda i, a: evaluator.infer_outputs(operator, i, a)
    )  # fmt: skip
    (folder / "solution.py").write_text(made.text())
    (folder / "task.py").write_text(made.task())
    return folder / "solution.py", folder / "task.py"


def there_and_back(name: str, evaluator: Evaluator, folder: Path) -> None:
    operator = load_operator(name)
    if name in SMALL:
        operator = replace(operator, settings={**operator.settings, "case": [SMALL[name]]})
    solution, task = exported(operator, evaluator, folder)
    import_solution(solution, task, folder / "op")
    back = load_folder(folder / "op")
    # What a task has no word for: which values are defined, and how exact results are. Its own reference stays.
    kept = ("tolerance", "specials", "domain")
    back = replace(back, settings={**back.settings, **{k: v for k, v in operator.settings.items() if k in kept}})
    one, other = checked(operator, evaluator), checked(back, evaluator)
    assert microseconds(one) == microseconds(other)
    assert (one.checks, one.tiling) == (other.checks, other.tiling)


@pytest.mark.parametrize("name", sorted(SMALL))
def test_there_and_back(name: str, evaluator: Evaluator, tmp_path: Path) -> None:
    there_and_back(name, evaluator, tmp_path)


@pytest.mark.battery
@pytest.mark.parametrize("name", sorted(set(operator_names()) - set(SMALL)))
def test_every_operator_of_the_registry_there_and_back(name: str, evaluator: Evaluator, tmp_path: Path) -> None:
    there_and_back(name, evaluator, tmp_path)


@pytest.mark.parametrize("name", ["dynamic_quant", "foreach_mul_scalar", "moe_gather_rows"])
def test_outputs_lists_and_domains_are_followed_back(name: str, evaluator: Evaluator, tmp_path: Path) -> None:
    operator = load_operator(name)
    solution, task = exported(operator, evaluator, tmp_path)
    import_solution(solution, task, tmp_path / "op")
    back = load_folder(tmp_path / "op")
    given = operator.settings["case"][0]
    assert back.settings["case"][0]["inputs"] == given["inputs"]
    assert back.kernel_options == operator.kernel_options
    assert back.baseline.kernel[f"op_kernel/{name}_custom.cpp"] == operator.baseline.kernel[
        f"op_kernel/{name}.cpp"
    ].replace(f" {name}(", f" {name}_custom(")
    if name == "moe_gather_rows":
        assert back.settings["domain"] == {"index": {"low": 0, "high": 1023}}
        assert "at::empty({index.size(0), x.size(1)}, x.options())" in solution.read_text()


def test_the_form_is_the_benchmark_s(evaluator: Evaluator, tmp_path: Path) -> None:
    solution, _ = exported(load_operator("rms_norm"), evaluator, tmp_path)
    # As MultiKernelBench does it: the text is executed, and the strings are taken from what it left.
    context: dict[str, Any] = {}
    exec(compile(solution.read_text(), "<string>", "exec"), context)
    assert all(isinstance(context[name], str) for name in NAMES)
    (described,) = json.loads(context["project_json_src"])
    assert set(described) == {"op", "language", "input_desc", "output_desc", "attr"}
    assert described["op"] == "RmsNormCustom"
    assert described["language"] == "cpp"
    assert [p["name"] for p in described["input_desc"]] == ["x", "gamma"]
    assert all(len(p["type"]) == len(p["format"]) for p in described["input_desc"] + described["output_desc"])
    assert described["attr"] == [
        {"name": "epsilon", "type": "float", "param_type": "optional", "default_value": pytest.approx(1e-6)}
    ]
    assert '#include "rms_norm_custom_tiling.h"' in context["host_operator_src"]
    assert "REGISTER_TILING_DATA_CLASS(RmsNormCustom, " in context["host_tiling_src"]
    assert "EXEC_NPU_CMD(aclnnRmsNormCustom, x, gamma, epsilon, y);" in context["python_bind_src"]
    classes = [n.name for n in ast.parse(context["model_src"]).body if isinstance(n, ast.ClassDef)]
    assert classes == ["ModelNew"]


@pytest.mark.parametrize("files", ["gated_scale_custom", "task_custom"])
def test_an_imported_folder_keeps_its_binding_and_module(files: str, tmp_path: Path) -> None:
    given = tmp_path / "given.py"
    given.write_text(
        (DATA / "gated_scale.py").read_text().replace('"gated_scale_custom_tiling.h', f'"{files}_tiling.h')
    )
    import_solution(given, None, tmp_path / "op")
    done = CliRunner().invoke(app, ["export", str(tmp_path / "op"), "--out", str(tmp_path / "out.py")])
    assert done.exit_code == 0, done.output
    assert read_solution(tmp_path / "out.py").texts == read_solution(given).texts


def test_the_command_writes_solution_and_task(tmp_path: Path) -> None:
    files = tmp_path / "add.py", tmp_path / "task.py"
    done = CliRunner().invoke(app, ["export", "add", "--out", str(files[0]), "--task", str(files[1])])
    assert done.exit_code == 0, done.output
    assert read_solution(files[0]).kernel_options == ("--cce-auto-sync=off",)
    assert {"Model", "get_inputs", "get_init_inputs"} <= {
        n.name for n in ast.parse(files[1].read_text()).body if isinstance(n, (ast.ClassDef, ast.FunctionDef))
    }


# -- texts -------------------------------------------------------------------------------------------------------------


def test_headers_are_put_in_place_once() -> None:
    files = {
        "op_host/a.cpp": '#include "a_tiling.h"\n#include "inc/b.h"\n#include "inc/c.h"\n#include "other.h"\nint a;\n',
        "op_host/a_tiling.h": "struct A {};\n",
        "op_host/inc/b.h": '#pragma once\n#include "c.h"\nint b;\n',
        "op_host/inc/c.h": "#pragma once\nint c;\n",
    }
    found = inlined("op_host/a.cpp", files, {"op_host/a_tiling.h": "t_custom_tiling.h"})
    assert found == '#include "t_custom_tiling.h"\nint c;\nint b;\n#include "other.h"\nint a;\n'


def test_names_change_outside_of_comments_and_literals() -> None:
    text = 'class Add : OpDef {}; // Add\nOP_ADD(Add); AddX("Add"); /* Add */ Add'
    assert renamed(text, {"Add": "AddCustom"}) == (
        'class AddCustom : OpDef {}; // Add\nOP_ADD(AddCustom); AddX("Add"); /* Add */ AddCustom'
    )


@pytest.mark.parametrize(
    ("shape", "cpp"),
    [
        (lambda a, b: a, "at::Tensor y = at::empty_like(x);"),
        (lambda a, b: (*a[:1], b[0]), "at::Tensor y = at::empty({x.size(0), w.size(0)}, x.options());"),
        (lambda a, b: (a[1] // 2, 5), "at::Tensor y = at::empty({x.size(1) / 2, 5}, x.options());"),
        (lambda a, b: (a[0] * a[1],), "at::Tensor y = at::empty({x.numel()}, x.options());"),
        (lambda a, b: (), "at::Tensor y = at::empty({}, x.options());"),
    ],
)
def test_an_output_s_shape_is_found_by_asking(shape: Any, cpp: str) -> None:
    f = ("float32",)
    signature = Signature("Op", (ParamDef("x", f), ParamDef("w", ("int32",))), (ParamDef("y", f),))

    def outputs(inputs: Any) -> Any:
        return (TensorSpec("float32", shape(inputs[0].shape, inputs[1].shape)),)

    inputs = (TensorSpec("float32", (6, 10)), TensorSpec("int32", (7,)))
    assert allocation(signature, Case(inputs, outputs(inputs)), 0, outputs, None) == [cpp]


def test_what_has_no_place_in_a_solution(tmp_path: Path) -> None:
    operator = load_operator("add")
    with pytest.raises(OperatorError, match=r"has the host sources a\.cpp, b\.cpp; a solution has exactly one"):
        Export(replace(operator, host_sources=("a.cpp", "b.cpp"))).text()
    changed = replace(operator, settings={**operator.settings, "in_place": ["x"]})
    case = Case((TensorSpec("float32", (8,)),) * 2, (TensorSpec("float32", (8,)),))
    signature = Signature("Add", (ParamDef("x", ("float32",)),) * 2, (ParamDef("z", ("float32",)),))
    with pytest.raises(OperatorError, match="changes its input x in place"):
        Export(changed, signature, case).text()
    assert kept_texts(operator.root) is None
