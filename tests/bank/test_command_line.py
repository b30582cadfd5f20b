"""``ascendopt-tune bank``: what each command prints and writes, in process; one small build on the virtual NPU."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from bank_examples import BOTTLENECKS, experience
from test_exchange import POINTS
from typer.testing import CliRunner

from ascendopt_tune.bank.bank import Bank
from ascendopt_tune.cli import app
from ascendopt_tune.cli import bank_build as module
from ascendopt_tune.errors import AscendOptError


def call(*arguments: object, code: int = 0) -> str:
    done = CliRunner().invoke(app, ["bank", *map(str, arguments)], catch_exceptions=False)
    assert done.exit_code == code, done.output
    return done.stdout


def document(*arguments: object, code: int = 0) -> Any:
    return json.loads(call(*arguments, "--json", code=code))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    Bank(tmp_path / "bank").add(experience(n, kind="negative" if n == 7 else "positive") for n in range(8))
    return tmp_path / "bank"


def test_search(folder: Path) -> None:
    found = document("search", BOTTLENECKS[1], "-k", 2, "--bank", folder)
    assert next(r["motif"] for r in found["results"]) == "motif_1"
    assert len({r["motif"] for r in found["results"]}) == found["count"] == 2
    assert "motif_1: 1.67x on add float16" in call("search", BOTTLENECKS[1], "--bank", folder)
    assert len(document("search", BOTTLENECKS[1], "-k", 9, "--all", "--bank", folder)["results"]) == 7


def test_show(folder: Path) -> None:
    whole = document("show", "--bank", folder)
    assert (whole["experiences"], whole["validated"], whole["motifs"], whole["negative"]) == (7, 7, 4, 1)
    assert "7 experiences (7 measured and reproducible) of 4 motifs; 1 negative" in call("show", "--bank", folder)
    page = call("show", experience(2).id[:16], "--bank", folder)
    assert "ascendopt-tune bank build add" in page
    assert "-a2\n+b2" in page
    assert document("show", experience(2).id, "--bank", folder)["title"] == "Title 2"


def test_export_merge_and_import(folder: Path, tmp_path: Path) -> None:
    file, other = tmp_path / "out.jsonl", tmp_path / "other"
    assert document("export", file, "--validated", "--motif", "motif_1", "--bank", folder)["experiences"] == 2
    assert document("merge", file, folder, "--bank", other)["added"] == 8
    assert document("merge", folder, file, "--bank", other)["added"] == 0
    points = tmp_path / "points.json"
    points.write_text(json.dumps(POINTS))
    assert document("import", points, "--bank", other)["added"] == len(POINTS)


def test_plot(folder: Path, tmp_path: Path) -> None:
    drawn = document("plot", tmp_path / "p.html", "--clusters", 2, "--bank", folder)
    assert sum(c["size"] for c in drawn["clusters"]) == 7
    assert (tmp_path / "p.html").read_text().count("<circle") == 7


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("show", "zz"), "no experience's id"),
        (("search",), "a text or with --op"),
        (("import", "/nonexistent"), "no file"),
        (("build",), "no operator is given"),
        (("build", "add", "--step", "x"), "names no place"),
        (("build", "--plan", "/nonexistent"), "can't be read"),
        (("build", "add", "--proposer", "nobody"), "nobody called"),
        (("build", "add", "--motif", "nothing"), "no motif 'nothing'"),
    ],
)
def test_what_cant_be_done_is_said(arguments: tuple[str, ...], reason: str, tmp_path: Path) -> None:
    with pytest.raises(AscendOptError, match=reason):
        call(*arguments, "--bank", tmp_path)


def test_a_language_model_is_not_held_to_motifs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASCENDOPT_LLM_MODEL", "m")
    monkeypatch.setenv("ASCENDOPT_LLM_BASE_URL", "http://127.0.0.1:9/v1")  # nobody is asked
    arguments = ["build", "add", "--proposer", "llm", "--motif", "double-buffer", "--bank", tmp_path]
    with pytest.raises(AscendOptError, match="not held to motifs"):
        call(*arguments)


CASE = "x=float16[2048,1024] y=float16[2048,1024]"


def test_build_measures_adds_and_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two removals, one behind the other; Ctrl-C after the first keeps it, and --resume goes on."""
    steps = ["--step", "full-barrier:Process/steps", "--step", "double-buffer:all"]
    arguments = ["build", "add", "--case", CASE, *steps, "--bank", tmp_path / "bank"]
    real = module.build

    def interrupted(*args: Any, **options: Any) -> Any:
        yield next(iter(real(*args, **options)))
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "build", interrupted)
    first = document(*arguments, code=130)
    assert (first["stop"], first["added"], first["motifs"]) == ("interrupted", 1, {"full-barrier": 1})
    assert len(Bank(tmp_path / "bank")) == 1
    monkeypatch.setattr(module, "build", real)
    again = document(*arguments, "--resume")
    assert again["stop"] == "finished"
    assert [e["motif"] for e in again["experiences"]] == ["full-barrier", "double-buffer"]
    assert again["experiences"][0] == first["experiences"][0]
    assert "--step double-buffer:all" in again["experiences"][1]["provenance"]["command"]
    assert document(*arguments, "--resume")["experiences"] == []  # finished: nothing is left to do


def test_one_motif_in_a_build(tmp_path: Path) -> None:
    """Only the motif that is named is taken out and put in; a build of it that has ended isn't one of all."""
    arguments = ["build", "add", "--case", "x=float16[64,1024] y=float16[64,1024]", "--depth", "1", "--forward"]
    arguments += ["--motif", "constant-tiling", "--bank", tmp_path / "bank"]
    found = document(*arguments)["experiences"]
    assert [e["motif"] for e in found] == ["constant-tiling"]
    assert found[0]["kind"] == "positive"
    assert document(*arguments, "--resume")["experiences"] == []
    assert document(*arguments, "--motif", "double-buffer", "--resume")["experiences"]
    plan = tmp_path / "plan.toml"
    unit = '[[unit]]\nop = "add"\nchips = ["ascend910b2"]\ncases = ["x=float16[64,1024] y=float16[64,1024]"]\n'
    plan.write_text(f'{unit}motifs = ["constant-tiling"]\n')
    planned = document("build", "--plan", plan, "--depth", "1", "--forward", "--bank", tmp_path / "other")
    assert [e["motif"] for e in planned["experiences"]] == ["constant-tiling"]
