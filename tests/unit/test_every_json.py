"""README says that every command prints one JSON document with --json, but completion, whose answer is a script."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ascendopt_tune import cli

_PROGRAM = """\
import ascendopt_tune.dsl as tl


@tl.kernel
def twice_kernel(x, y, n):
    first, last = tl.split(n, tl.program_id(0), tl.num_programs(0), unit=16)
    for at in range(first, last, 1024):
        count = min(1024, last - at)
        tl.store(y + at + tl.arange(0, count), tl.load(x + at + tl.arange(0, count)) * 2.0)


@tl.host
def twice(x: tl.float16, y: tl.float16):
    twice_kernel[tl.cores(4)](x, y, x.numel)
"""


def _commands(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    inner = getattr(command, "commands", None)
    if inner is None:
        yield name, command
        return
    for each in inner:
        yield from _commands(inner[each], f"{name} {each}")


def test_every_command_has_it() -> None:
    commands = cli._Commands()
    found = [pair for name in commands for pair in _commands(commands[name], name)]
    assert len(found) > 35
    assert [name for name, command in found if not any("--json" in p.opts for p in command.params)] == ["completion"]


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ASCENDOPT_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "other/entries").mkdir(parents=True)
    return tmp_path


def _document(*line: str) -> Any:
    done = CliRunner().invoke(cli.app, [*line, "--json"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_documents(own_cache: Path) -> None:
    assert _document("cache", "merge", str(own_cache / "other")) == {"taken": 0, "left": 0}
    assert _document("cache", "gc", "--dry-run")["dry_run"] is True
    (own_cache / "twice.py").write_text(_PROGRAM)
    lowered = _document("dsl", "lower", str(own_cache / "twice.py"), "--out", str(own_cache / "twice"))
    assert all((own_cache / "twice" / file).exists() for file in lowered["files"])
