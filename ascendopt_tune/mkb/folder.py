"""From a solution and its task to an operator folder: sources, op.toml with the task's case, reference.py."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from ..errors import OperatorError
from ..files import write_whole
from ..sources.arguments import Array
from .definition import read_definition
from .follow import Followed, follow
from .reference import check, reference_text
from .solution import Solution, read_solution
from .task import load_task
from .values import CONSTANT, Tracked

#: Where a folder keeps what an operator project has no place for; `export` writes it back.
KEPT = {"project_json_src": "op.json", "python_bind_src": "op.cpp", "model_src": "model.py"}
KEPT_FOLDER = "multikernelbench"
_VALUES = 1 << 16  # elements of an input whose values op.toml lists


@dataclass
class ImportedSolution:
    """``files`` of the folder by path; ``notes``: what was decided, a sentence each; ``arrays``: the operator's inputs
    by name, from the task's draw."""

    name: str
    files: dict[str, str]
    notes: list[str] = field(default_factory=list)
    arrays: dict[str, Array] = field(default_factory=dict)


def import_solution(file: Path, task: Path | None, out: Path) -> ImportedSolution:
    """Writes the solution in ``file`` as an operator folder ``out``.

    Args:
        task: the task's file, which says what is right and for which inputs; without it the folder has neither
            reference.py nor a case.

    Raises:
        OperatorError: the solution can't be read or followed, or computes another shape than the task; ``out`` exists.
        OSError: the folder can't be written.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise OperatorError(f"{out} exists and isn't empty.", "Name a new folder, or remove that one first.")
    solution = read_solution(file)
    definition = read_definition(solution.texts["host_operator_src"], file)
    name = solution.name
    found = ImportedSolution(name, _sources(solution))
    settings: list[str] = [f'name = "{name}"', f'entry = "{solution.entry}"']
    if solution.kernel_options:
        settings += ["", "[options]", f"kernel = {_toml(list(solution.kernel_options))}"]
    if task is None:
        found.notes.append("No task was given: there is no reference.py, and results are compared with themselves.")
    else:
        call = follow(solution, definition, load_task(task))
        settings += _settings(call, found.notes)
        found.files["reference.py"] = reference_text(call)
        found.arrays = call.arrays()
        with tempfile.TemporaryDirectory() as scratch:
            reference = Path(scratch) / name / "reference.py"
            reference.parent.mkdir()
            reference.write_text(found.files["reference.py"], encoding="utf-8")
            check(call, reference)
    found.files["op.toml"] = "\n".join(settings) + "\n"
    for path, text in found.files.items():
        (out / path).parent.mkdir(parents=True, exist_ok=True)
        write_whole(out / path, text)
    return found


def _sources(solution: Solution) -> dict[str, str]:
    texts, name = solution.texts, solution.name
    return {
        f"op_host/{name}_tiling.h": texts["host_tiling_src"],
        f"op_host/{name}.cpp": texts["host_operator_src"],
        f"op_kernel/{name}.cpp": texts["kernel_src"],
        **{f"{KEPT_FOLDER}/{path}": texts[key] for key, path in KEPT.items()},
    }


def _settings(call: Followed, notes: list[str]) -> list[str]:
    """Lines of op.toml: domains, initial values and the task's case."""
    lines: list[str] = []
    for name, value in call.launch.inputs.items():
        domain = _domain(call, notes, name, value) if isinstance(value, Tracked) else {}
        if domain:
            lines += ["", f"[domain.{name}]", *(f"{k} = {_toml(v)}" for k, v in domain.items())]
    firsts = {n: v[0] if isinstance(v, list) else v for n, v in call.launch.outputs.items()}
    fills = {n: v.fill for n, v in firsts.items() if v.fill is not None}
    if fills:
        lines += ["", "[initial]", *(f"{n} = {_toml(v)}" for n, v in fills.items())]
    lines += ["", f"[[case]]  # of the task {call.task.file.name!r}"]
    lines.append(f"inputs = {_table(_tensors(call.launch.inputs))}")
    lines.append(f"outputs = {_table(_tensors(call.launch.outputs))}")
    attrs = {n: v for n, v in call.launch.attrs.items() if v is not None}
    if attrs:
        lines.append(f"attrs = {_table(attrs)}")
    return lines


def _tensors(values: Mapping[str, Any]) -> dict[str, str]:
    found = {}
    for name, value in values.items():
        listed = value if isinstance(value, (list, tuple)) else [value]
        for i, one in enumerate(listed):
            if one is not None:
                key = name if listed is not value else f"{name}.{i}"
                found[key] = f"{_dtype_name(one.tensor)}[{','.join(map(str, one.shape))}]"
    return found


def _domain(call: Followed, notes: list[str], name: str, value: Tracked) -> dict[str, Any]:
    """Values an input may have: as the task draws whole numbers; as they are where the module has no say."""
    tensor = value.tensor
    if call.origin(value) == CONSTANT:
        low, high = _bounds(tensor)
        if low == high:
            notes.append(f"The input {name} is {low:g} everywhere, as the solution makes it.")
            return {"low": low, "high": high}
        return _values(call, notes, name, value, "as the solution makes it")
    drawn = call.drawn(value)
    if drawn is not None and drawn.is_floating_point():
        lowest = call.task.lowest(call.module_inputs.index(value.origin.name))
        if lowest is None:
            return {}
        notes.append(f"The input {name} is at least {lowest:g}: the model gives no number for less.")
        return {"low": float(lowest)}
    if drawn is None:
        return {}
    if drawn.dtype == torch.bool:
        return {} if tensor.dtype == torch.bool else {"low": 0, "high": 1, "whole": True}
    if 1 < drawn.numel() == len(set(drawn.reshape(-1).tolist())) and drawn.numel() ** 2 > 64 * (int(drawn.max()) + 1):
        return _values(call, notes, name, value, "all different in the task, which random ones would not be")
    domain: dict[str, Any] = dict(zip(("low", "high"), map(int, _bounds(drawn)), strict=True))
    return domain | ({"whole": True} if tensor.is_floating_point() else {})


def _values(call: Followed, notes: list[str], name: str, value: Tracked, why: str) -> dict[str, Any]:
    if value.tensor.numel() > _VALUES:
        raise OperatorError(
            f"{call.solution.file}: the values of the operator's input {name} are fixed ({why}), and it has "
            f"{value.tensor.numel()} elements; at most {_VALUES} can be listed in op.toml."
        )
    notes.append(f"The input {name} keeps its values ({why}).")
    return {"values": value.tensor.reshape(-1).tolist()}


def _bounds(tensor: torch.Tensor) -> tuple[float, float]:
    if tensor.numel() == 0:
        return 0, 0
    return tensor.min().item(), tensor.max().item()


def _dtype_name(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_toml, value))}]"
    return repr(float(value)) if isinstance(value, float) else str(int(value))


def _table(values: Mapping[str, Any]) -> str:
    keys = {name: f'"{name}"' if "." in name else name for name in values}
    return "{ " + ", ".join(f"{keys[n]} = {_toml(v)}" for n, v in values.items()) + " }"
