"""What people see in a terminal: the live view, help with examples, completion, what to do first."""

from __future__ import annotations

import io
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import test_story
import typer
from rich.console import Console
from rich.markup import render
from typer.testing import CliRunner

from ascendopt_tune.cli import app, completion
from ascendopt_tune.cli.first import first_steps
from ascendopt_tune.cli.progress import Display, sparkline
from ascendopt_tune.errors import CaseError, OperatorError, SettingsError
from ascendopt_tune.nouns.chip import load_chip
from ascendopt_tune.report.lines import folded
from ascendopt_tune.search.engine import Progress
from ascendopt_tune.sources.registry import load_operator

ROOT = Path(__file__).resolve().parents[2]
COMMAND: Any = typer.main.get_command(app)


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _nobody_decides_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CI", "COLUMNS", "FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


def events() -> Iterator[Progress]:
    best, counts = 10.0, dict[str, int]()
    for n, trial in enumerate(test_story.record().history.evaluated, start=1):
        kind = type(trial.outcome).__name__
        counts[kind] = counts.get(kind, 0) + 1
        improved = trial.time_us is not None and trial.time_us < best
        best = min(best, trial.time_us or best)
        yield Progress(n, 40, 2, trial.stage, 10.0, best, dict(counts), 0, 75.0 - n, trial, improved)


def shown(width: int, file: io.StringIO) -> tuple[Console, Display]:
    console = Console(file=file, width=width, force_terminal=file.isatty(), highlight=False)
    return console, Display("modelled", console)


def view(width: int, encoding: str = "utf-8") -> list[str]:
    """The lines that are redrawn, after some evaluations."""
    terminal = Terminal()
    terminal.encoding = encoding
    _, display = shown(width, terminal)
    for event in events():
        display.update(event)
    page = Console(file=io.StringIO(), width=width, legacy_windows=False)
    page.print(display._view())
    return page.file.getvalue().splitlines()  # type: ignore[attr-defined,no-any-return]


@pytest.mark.parametrize("width", [80, 40])
def test_the_view_fits_the_terminal(width: int) -> None:
    lines = view(width)
    assert len(lines) == 5
    assert max(map(len, lines)) <= width
    stage, bar, best, outcomes, last = lines
    assert "Stage II, round 2" in stage
    assert " 5/40  ETA 70 s" in bar
    assert best.startswith("best 5.00 us modelled (2.00x)  ▁")
    assert best.rstrip().endswith("█")
    assert outcomes.rstrip() == "4 Timed, 1 Hazard"
    assert last.startswith("5.00 us  fuse <two>")


def test_a_terminal_without_these_signs_gets_others() -> None:
    assert all(line.isascii() for line in view(80, "ascii"))


def test_a_terminal_keeps_what_improved_and_the_view_goes() -> None:
    terminal = Terminal()
    _, display = shown(80, terminal)
    with display:
        display.say("building, running and checking the baseline pair")
        for event in events():
            display.update(event)
    text = terminal.getvalue()
    assert "building, running and checking" in text
    kept = [line for line in text.replace("\r", "\n").splitlines() if "evaluation " in line]
    assert [line.partition("evaluation ")[2].split("/")[0] for line in kept] == ["1", "2", "4", "5"]


@pytest.mark.parametrize(("file", "environ"), [
    (io.StringIO, {}), (io.StringIO, {"FORCE_COLOR": "1"}), (Terminal, {"CI": "true"}), (Terminal, {"TERM": "dumb"}),
])  # fmt: skip
def test_elsewhere_each_step_is_a_line(
    file: type[io.StringIO], environ: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    out = file()
    _, display = shown(40, out)
    with display:
        display.say("reading")
        for event in events():
            display.update(event)
    lines = out.getvalue().splitlines()
    assert lines[0] == "reading ..."
    assert [line.split()[1] for line in lines[1:]] == [f"{n}/40" for n in range(1, 6)]
    assert "\x1b" not in out.getvalue()
    assert "Hazard" in lines[3]


def test_a_sparkline_ends_at_the_last_value() -> None:
    assert sparkline([1.0, 1.5, 2.0], 10) == "▁▅█"
    assert sparkline([1.0] * 99 + [2.0], 4) == "▁▁▁█"
    assert sparkline([1.0, 1.0], 5) == "▁▁"
    assert sparkline([1.0], 1) == ""
    assert sparkline([], 5) == ""


def commands(group: Any = COMMAND, path: str = "") -> Iterator[tuple[str, Any]]:
    for name, one in group.commands.items():
        yield f"{path}{name}", one
        if hasattr(one, "commands"):
            yield from commands(one, f"{path}{name} ")


@pytest.mark.parametrize(
    ("path", "command"), list(commands()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_every_help_ends_with_examples_of_itself(path: str, command: Any) -> None:
    text = render(command.epilog or "").plain
    assert "Examples" in text
    assert f"ascendopt-tune {path}" in text.replace("\n", " ")


def test_examples_are_command_lines_that_there_are() -> None:
    """Every one is parsed: its command, its options, the kinds of their values."""
    seen = set()
    for _, command in commands():
        blocks = render(command.epilog or "").plain.split("\n\n")
        for line in (" ".join(block.split()) for block in blocks):
            for part in line.split(" && "):
                words = shlex.split(part.partition(" > ")[0])
                if words and words[0] == "ascendopt-tune":
                    seen.add(part)
                    parse(words[1:])
    assert len(seen) > 60


def test_command_lines_of_the_documentation_are_ones_that_there_are() -> None:
    seen = 0
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")):
        blocks = re.findall(r"^```\w*\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
        for line in (line for block in blocks for line in re.sub(r"\\\n\s*", " ", block).splitlines()):
            for part in line.split(" && "):
                if part.startswith("ascendopt-tune "):
                    parse(shlex.split(part.partition(" > ")[0], comments=True)[1:])
                    seen += 1
    assert seen > 40


def parse(words: list[str]) -> None:
    """Raises where it is no command line."""
    group, info = COMMAND, None
    while hasattr(group, "commands"):
        group, info = group.commands[words[0]], words.pop(0)
    group.make_context(info, words)


@pytest.mark.parametrize("name", ["tune", "cache list", "bench search", ""])
def test_help_in_a_narrow_terminal_names_its_options(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In boxes side by side the names would be cut."""
    words = name.split()
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    done = subprocess.run(
        [sys.executable, "-m", "ascendopt_tune", *words, "--help"], capture_output=True, text=True, check=True
    )
    command = COMMAND
    for word in words:
        command = command.commands[word]
    for option in (o for p in command.params for o in p.opts if o.startswith("--")):
        assert option in done.stdout, option
    assert max(map(len, done.stdout.splitlines()[1:])) <= 40  # the first has the name of the interpreter
    assert "[bold]" not in done.stdout
    assert "…" not in done.stdout


def test_lines_are_folded_on_a_terminal_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    text = "error: unknown-operator softmx\n  a change: from one to the other"
    assert folded(text, io.StringIO()) == text
    assert folded(text, Terminal()).splitlines() == [
        "error:", "unknown-operator", "softmx", "  a change: from one", "  to the other"
    ]  # fmt: skip
    assert folded("ok      chip", Terminal()) == "ok      chip"
    assert folded("ok      chip   ascend910b2", Terminal(), hang=8).splitlines()[1] == "        ascend910b2"
    long = "/a/path/that/is/longer/than/the/terminal"
    assert long in folded(f"in {long}", Terminal())


def test_the_first_evaluation_tells_no_time_to_go() -> None:
    first = next(events())
    terminal = io.StringIO()
    _, display = shown(80, terminal)
    display.update(first)
    assert "ETA ..." in terminal.getvalue()


def test_its_version_is_the_projects() -> None:
    done = CliRunner().invoke(app, ["--version"])
    assert done.exit_code == 0
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert done.stdout == f"ascendopt-tune {version}\n"


def test_a_mistyped_name_is_told_the_nearest() -> None:
    with pytest.raises(OperatorError, match=r"Did you mean 'softmax'\?"):
        load_operator("softmx")
    with pytest.raises(CaseError, match=r"Did you mean 'ascend910b2'\?"):
        load_chip("ascend901b2")
    with pytest.raises(CaseError) as found:
        load_chip("h100")
    assert found.value.message == "unknown chip 'h100'."


def test_without_arguments_it_says_what_to_do_first() -> None:
    done = CliRunner().invoke(app, [])
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    steps = [shlex.split(line)[1:] for line in lines if line.startswith("  ascendopt-tune ")]
    assert [words[0] for words in steps] == ["doctor", "ops", "run", "tune", "tune"]
    for words in steps:
        parse(words)
    assert max(map(len, first_steps(40).splitlines())) <= 40


@pytest.mark.parametrize("shell", completion.shells())
def test_completion(shell: str) -> None:
    done = CliRunner().invoke(app, ["completion", shell])
    assert done.exit_code == 0
    assert completion.VARIABLE in done.stdout
    completion.answer_shells()
    line = "ascendopt-tune tune so"
    asked = {"COMP_WORDS": line, "COMP_CWORD": "2", "_TYPER_COMPLETE_ARGS": line}
    asked |= {completion.VARIABLE: f"complete_{shell}", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    answer = CliRunner().invoke(app, [], prog_name="ascendopt-tune", env=asked)
    assert "softmax" in answer.stdout
    assert "rms_norm" not in answer.stdout


def test_a_shell_without_completion_is_told() -> None:
    done = CliRunner().invoke(app, ["completion", "tcsh"])
    assert isinstance(done.exception, SettingsError)
    assert "bash, zsh, fish" in done.exception.hint
