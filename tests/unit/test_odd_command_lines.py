"""Command lines that people type: what is refused names the value, whatever the terminal says of itself."""

from __future__ import annotations

import errno
import io
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from ascendopt_tune.cli import app, failure
from ascendopt_tune.files import write_whole
from ascendopt_tune.store.archive import how_to_use
from ascendopt_tune.store.bundle import write_bundle
from ascendopt_tune.store.cache import CacheWarning


def said(*line: str, **environment: str) -> str:
    done = CliRunner().invoke(app, list(line), env={"COLUMNS": "200", **environment})
    assert done.exit_code in (0, 2), done.output
    return done.output


@pytest.mark.parametrize(
    "line",
    [
        ("tune", "add", "--budget", "-7"),
        ("tune", "add", "--budget", "forty"),
        ("tune", "add", "--workers", "-7"),
        ("tune", "add", "--schedule", "forty"),
        ("run", "add", "--seed", "-7"),
        ("run", "--kernel", "k.cpp", "--block-dim", "-7"),
        ("cache", "gc", "--older-than", "-7"),
    ],
)
def test_a_value_that_is_refused_is_named(line: tuple[str, ...]) -> None:
    output = said(*line)
    assert f"'{line[-1]}'" in output, output
    assert f"'{line[-2]}'" in output, output
    assert "Value error" not in output


def test_a_line_that_cannot_be_read_is_a_document_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for line in (["--json"], ["--no-such", "--json"], ["tune", "add", "--budget", "-7", "--json"]):
        monkeypatch.setattr(sys, "argv", ["ascendopt-tune", *line])
        with pytest.raises(SystemExit) as end:
            app()
        assert end.value.code == 2
        error = json.loads(capsys.readouterr().out)["error"]
        assert error["next_step"]
        assert (line[-2] if len(line) > 2 else "--") in error["message"]


def test_h_is_help() -> None:
    for line in ((), ("tune",), ("cache",), ("cache", "list"), ("dsl", "check")):
        output = said(*line, "-h")
        assert "Usage:" in output
        assert "Show this message" in output


def _commands(command: Any) -> Iterator[Any]:
    yield command
    for inner in getattr(command, "commands", {}).values():
        yield from _commands(inner)


def test_help_is_one_of_a_kind() -> None:
    """No option of a library's that does nothing here, no paragraph with the source's line ends in it."""
    for command in _commands(typer.main.get_command(app)):
        options = {name for p in command.params for name in p.opts}
        assert not options & {"--install-completion", "--show-completion"}, command.name
        assert all("\n" not in part for part in (command.help or "").split("\n\n")), command.name
        for parameter in command.params:
            metavar = parameter.metavar or ""
            assert not metavar.endswith("..."), (
                f"{command.name} {parameter.name}: dots are added to what may be repeated"
            )


@pytest.mark.parametrize("width", ["0", "00", ""])
def test_a_width_of_none_is_no_width(width: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", width)
    for name in ("stdout", "stderr"):  # what is no text over bytes is left alone
        monkeypatch.setattr(sys, name, io.StringIO())
    failure.prepare_output()
    assert os.environ.get("COLUMNS") is None


def test_a_layer_that_is_not_there_is_told_of(tmp_path: Path) -> None:
    with pytest.warns(CacheWarning, match=f"there is no cache layer {tmp_path / 'no'}"):
        assert "0 results" in said("cache", "list", ASCENDOPT_CACHE_LAYERS=str(tmp_path / "no"))
    command = [sys.executable, "-m", "ascendopt_tune", "cache", "list"]
    environment = {**os.environ, "ASCENDOPT_CACHE_LAYERS": str(tmp_path / "no")}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    assert done.stderr == f"warning: there is no cache layer {tmp_path / 'no'}.\n"


def test_a_bundle_s_settings_work_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a b").mkdir()
    monkeypatch.chdir(tmp_path / "a b")
    bundle = write_bundle(Path("bundle"), [])
    said_ = how_to_use(Path("bundle"), bundle)
    (line,) = [text for text in said_.splitlines() if text.startswith("to use it: ")]
    assert shlex.split(line)[3] == f"ASCENDOPT_CACHE_LAYERS={tmp_path / 'a b' / 'bundle'}"
    assert "ASCENDOPT_CACHE_LAYERS=FOLDER " in how_to_use(Path("bundle.tar.gz"), bundle)


def test_a_full_disk_names_the_file(tmp_path: Path) -> None:
    """The system names no file in what a write raises."""
    with pytest.raises(OSError, match="No space left") as full:
        write_whole(Path("/dev/full"), "x" * 100_000)
    assert full.value.errno == errno.ENOSPC
    assert full.value.filename == "/dev/full"
