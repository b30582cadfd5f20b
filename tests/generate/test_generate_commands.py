"""``generate`` and ``bench mkb`` as commands, on a file of MultiKernelBench's form written here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ascendopt_tune.bench import mkb, mkb_page, scaled
from ascendopt_tune.cli import app
from ascendopt_tune.errors import CaseError

TASK = """\
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, shift):
        super().__init__()
        self.shift = shift

    def forward(self, x):
        return torch.relu(x - self.shift) * x


def get_inputs():
    return [torch.rand(12, 150)]


def get_init_inputs():
    return [0.25]
"""


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    folder = tmp_path / "tasks" / "reference" / "activation"
    folder.mkdir(parents=True)
    (folder / "bent.py").write_text(TASK)
    (folder / "sorted_rows.py").write_text(TASK.replace("torch.relu(x - self.shift) * x", "torch.sort(x)[0]"))
    return tmp_path / "tasks"


def test_generate_writes_a_folder_that_keeps_the_module(tasks: Path, tmp_path: Path) -> None:
    file = tasks / "reference" / "activation" / "bent.py"
    done = CliRunner().invoke(app, ["generate", str(file), "--out", str(tmp_path / "op"), "--json"])
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert document["schedule"] == "map"
    for name in ("op.toml", "reference.py", "module.py", "bent.dsl.py", "op_kernel/bent.cpp"):
        assert (tmp_path / "op" / name).is_file()
    again = CliRunner().invoke(app, ["generate", str(file), "--out", str(tmp_path / "op")])
    assert "isn't empty" in str(again.exception)


def test_bench_mkb_records_what_it_did_and_goes_on_there(tasks: Path, tmp_path: Path) -> None:
    results = tmp_path / "results" / "records.jsonl"
    page = tmp_path / "page.md"
    command = ["bench", "mkb", "--tasks", str(tasks), "activation", "--results", str(results), "--docs", str(page)]
    command += ["--evaluations", "1"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    found = {r.task: r for r in mkb.records(results)}
    bent, refused = found["bent"], found["sorted_rows"]
    assert bent.passed, bent.reason
    assert bent.mkb == {"1e-2": True, "1e-4": True}
    assert (bent.mkb_trials, len(bent.odd), bent.trivial) == (5, 2, [])
    assert bent.roofline_us is not None
    assert (bent.evaluations, refused.evaluations) == (1, 1)
    assert bent.time_us is not None
    assert bent.tuned_us is not None
    assert bent.tuned_us <= bent.time_us
    assert not refused.lowered
    assert "aten.sort has no rule" in refused.reason
    text = page.read_text()
    assert "| activation | 2 | 1 | 1 | 1 | 1 | 1 | 1 |" in text
    before = results.read_text()
    again = CliRunner().invoke(app, command)  # nothing is left to do
    assert again.exit_code == 0
    assert results.read_text() == before
    assert page.read_text() == text
    assert "sorted_rows: not lowered" in mkb_page.line(refused)


def test_shapes_that_nobody_allocates(tmp_path: Path) -> None:
    """Tiled at 4 GiB and timed on a slice; a module without a rule says so."""
    folder = tmp_path / "reference" / "activation"
    folder.mkdir(parents=True)
    large = "import torch\n\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return {}\n\n\n"
    large += "def get_inputs():\n    return [torch.rand(65536, 16384)]\n\n\ndef get_init_inputs():\n    return []\n"
    (folder / "root.py").write_text(large.format("torch.sqrt(x)"))
    (folder / "sorted_rows.py").write_text(large.format("torch.sort(x)[0]"))
    command = ["bench", "mkb", "--tasks", str(tmp_path), "--scaled", "--results", str(tmp_path / "out.jsonl")]
    done = CliRunner().invoke(app, [*command, "activation"])
    assert done.exit_code == 0, done.output
    root, refused = scaled.records(tmp_path / "out.scaled.jsonl")
    assert (root.cores, root.largest, refused.tiled) == (48, 4 << 30, False)
    assert root.slice_us is not None
    assert root.scaled_us == pytest.approx(root.slice_us * 65536 / 384, rel=1e-3)
    assert "aten.sort has no rule" in refused.reason
    assert "1 of 2 tiled at the full shapes, 1 with a slice's time" in done.output


def test_a_task_that_nobody_has(tasks: Path) -> None:
    done = CliRunner().invoke(app, ["bench", "mkb", "--tasks", str(tasks), "nothing"])
    assert "no task or category 'nothing'" in str(done.exception)


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("return [0.25]", "return None", "returns NoneType, not a list"),
        ("return [0.25]", "raise SystemExit(3)", "fails: SystemExit: 3"),
        ("return [0.25]", "return [1, 2]", "Model of .* fails: TypeError"),
        ("import torch", "raise SystemExit(3)", "fails when it is imported: SystemExit: 3"),
        ("class Model", "class Other", "has no Model"),
        ("import torch", "\udcff", "it is no UTF-8 text"),
    ],
)
def test_a_file_that_is_no_task_is_told_in_one_sentence(old: str, new: str, text: str, tmp_path: Path) -> None:
    file = tmp_path / "task.py"
    file.write_text(TASK.replace(old, new, 1), errors="surrogateescape")
    with pytest.raises(CaseError, match=text):
        CliRunner().invoke(app, ["generate", str(file), "--text"], catch_exceptions=False)
