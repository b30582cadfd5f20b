"""``ascendopt-tune dsl``: the page's own program and commands."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from ascendopt_tune.cli import app
from ascendopt_tune.dsl.ir import DTYPES
from ascendopt_tune.dsl.lower.instructions import calls
from ascendopt_tune.dsl.ops import OPS
from ascendopt_tune.errors import AscendOptError

PAGE = Path(__file__).resolve().parents[2] / "docs" / "dsl.md"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    program = re.search(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert program is not None
    (tmp_path / "scale.py").write_text(program[1])
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_page_s_commands_run(folder: Path) -> None:
    block = re.search(r"```sh\n(ascendopt-tune dsl.*?)```", PAGE.read_text(), re.DOTALL)
    assert block is not None
    for line in block[1].splitlines():
        command = shlex.split(line)[1:]
        if command[0] == "dsl":
            done = CliRunner().invoke(app, command, catch_exceptions=False)
            assert done.exit_code == 0, done.output
    assert (folder / "scale_op" / "op_kernel" / "scale.cpp").is_file()
    assert (folder / "scale_op" / "scale.dsl.py").read_text() == (folder / "scale.py").read_text()


def test_check_tells_cores_and_bytes(folder: Path) -> None:
    done = CliRunner().invoke(app, ["dsl", "check", "scale.py", "--input", "x=float32[8,1000]", "--json"])
    found = json.loads(done.stdout)
    assert (found["inputs"], found["outputs"], found["attributes"]) == (["x"], ["y"], {"factor": 2.0})
    assert (found["cores"], found["shapes"]["y"]) == (48, [8, 1000])
    assert 4 * 4096 * 4 <= found["ub_bytes"] <= 196352


def test_run_writes_the_outputs(folder: Path) -> None:
    asked = ["dsl", "run", "scale.py", "--input", "x=float32[8,10]", "--attr", "factor=0.5", "--outputs", "y.npz"]
    assert CliRunner().invoke(app, asked, catch_exceptions=False).exit_code == 0
    assert np.load("y.npz")["y"].shape == (8, 10)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["run", "scale.py", "--input", "z=float32[8]"], "no input 'z'"),
        (["run", "scale.py", "--input", "x=float16[8]"], "float32, not float16"),
        (["check", "scale.py", "--input", "x=float32[8,a]"], "can't read the tensor"),
        (["check", "scale.py", "--input", "x=float32[8]", "--attr", "factor=two"], "no number"),
        (["check", "scale.py", "--input", "x=float32[8]", "--attr", "size=2"], "no attribute 'size'"),
        (["lower", "scale.py", "--out", "."], "isn't empty"),
    ],
)
def test_what_is_wrong_is_told(folder: Path, arguments: list[str], text: str) -> None:
    done = CliRunner().invoke(app, ["dsl", *arguments])
    assert text in str(done.exception), done.output
    assert isinstance(done.exception, AscendOptError)


@pytest.mark.parametrize("name", sorted(OPS))
def test_every_operation_has_its_instructions(name: str) -> None:
    rule, float32 = OPS[name], DTYPES["float32"]
    args = [("1.0f", False) if letter == "s" else (f"t{i}", True) for i, letter in enumerate(rule.operands)]
    made = calls(name, "d", args, "n", float32, DTYPES["int32"] if name == "cast" else float32)
    assert made[-1].writes == "d"
    assert all(c.text.endswith(";") for c in made)
