"""The one declaration of a run's options: defaults, bounds, flags, manifests."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner

from ascendopt_tune.cli.flags import Only, Without, grouped
from ascendopt_tune.cli.options import CaseFlags
from ascendopt_tune.deploy.manifest import read_manifest
from ascendopt_tune.errors import CaseError, SettingsError
from ascendopt_tune.nouns.run_options import RunOptions, Schedule, check_option, declarations, default_text, flag_of
from ascendopt_tune.settings import override


def test_what_is_not_given_is_what_the_environment_says() -> None:
    with override(budget=7, chip="ascend910b4", invariant=True):
        here = RunOptions(seed=3)
        assert (here.budget, here.chip, here.invariant, here.seed) == (7, "ascend910b4", True, 3)
        assert RunOptions(budget=9).budget == 9
    assert RunOptions().budget == 40


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("budget", 0, "whole number, at least 1"),
        ("budget", True, "whole number"),
        ("budget", "9", "whole number"),
        ("seed", 2**31, "at most 2147483647"),
        ("max_seconds", -1, "a number or nothing, at least 0"),
        ("target", "gpu", "one of auto, virtual, npu"),
        ("proposer", "nobody", "one of rules, llm, both"),
        ("schedule", "quick", "Known ones: opening, paper, adaptive"),
        ("chip", 910, "text"),
        ("steps", 3, "two counts"),
    ],
)
def test_a_value_that_an_option_can_not_have_is_said(name: str, value: Any, message: str) -> None:
    with pytest.raises(CaseError, match=message):
        RunOptions(**{name: value})


def test_an_unknown_option_names_the_known_ones() -> None:
    with pytest.raises(SettingsError, match=r"unknown option 'buget'.*budget"):
        check_option("buget", 3)


def test_a_schedule_may_be_given_by_its_name() -> None:
    check_option("schedule", "paper")
    assert RunOptions(schedule="paper").schedule is Schedule.PAPER  # type: ignore[arg-type]
    with pytest.raises(CaseError, match="one of opening, paper, adaptive"):
        check_option("schedule", "quick")


def test_every_option_is_explained_and_has_a_flag() -> None:
    for name, declared in declarations().items():
        assert declared.text.endswith(".") or declared.choices, name
        assert flag_of(name).startswith("--"), name
        assert default_text(name), name


def told(command: Any, *words: str) -> str:
    app = typer.Typer()
    app.command()(command)
    result = CliRunner().invoke(app, words)
    return result.output if result.exit_code == 0 else f"{result.exit_code} {result.output}{result.exception}"


def test_a_group_is_a_flag_for_each_of_its_options() -> None:
    @grouped
    def command(run: RunOptions, flags: CaseFlags, other: int = 1) -> None:
        print(run.budget, run.schedule, run.steps, run.warm_start, run.max_seconds, flags.attr, other)

    assert told(command) == f"40 {Schedule.OPENING} (10, 10) True None [] 1\n"
    words = ["--budget", "5", "--schedule", "adaptive", "--steps", "4,0", "--cold", "--max-seconds", "2"]
    assert told(command, *words, "--attr", "dim=1", "--other", "2") == "5 adaptive (4, 0) False 2.0 ['dim=1'] 2\n"
    assert told(command, "--budget", "0").startswith("2 ")
    assert "two counts" in told(command, "--steps", "0,0")


def test_a_command_may_have_some_of_a_group_and_defaults_of_its_own() -> None:
    @grouped
    def command(run: Annotated[RunOptions, Only("seed", budget=12)]) -> None:
        print(run.budget, run.seed)

    @grouped
    def other(flags: Annotated[CaseFlags, Without("outputs", "inputs")]) -> None:
        print(flags.outputs)

    assert told(command, "--seed", "4") == "12 4\n"
    assert told(command, "--chip", "x").startswith("2 ")
    assert told(other, "--outputs", "x").startswith("2 ")


def test_a_manifest_says_options_for_all_operators_or_for_one(tmp_path: Path) -> None:
    file = tmp_path / "manifest.toml"
    file.write_text(
        'chips = ["ascend910b3"]\nbudget = 9\nsteps = [4, 0]\n[[operator]]\nsource = "add"\n'
        '[[operator]]\nsource = "softmax"\nbudget = 3\nschedule = "adaptive"\n'
    )
    first, second = (next(w for w in read_manifest(file) if w.source == name) for name in ("add", "softmax"))
    assert (first.options.budget, first.options.steps, first.options.chip) == (9, (4, 0), "ascend910b3")
    assert (second.options.budget, second.options.schedule) == (3, Schedule.ADAPTIVE)
    file.write_text('budget = 0\n[[operator]]\nsource = "add"\n')
    with pytest.raises(CaseError, match=r"manifest.toml: budget = 0"):
        read_manifest(file)
