"""Command-line tests share one cache folder for compiled programs."""

from __future__ import annotations

import json
import multiprocessing
import multiprocessing.context
import os
import subprocess
import sys
from collections.abc import Callable
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

import pytest
from forked import command_line

Cli = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(autouse=True)
def shared_cache(own_cache: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache of all tests here, also of other workers: everything in it is named by its content."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "popen-" in base.name else base) / "e2e-cache"
    monkeypatch.setenv("ASCENDOPT_CACHE_DIR", str(folder))
    return folder


@pytest.fixture(scope="session")
def forking() -> multiprocessing.context.ForkServerContext:
    """Makes processes that don't import torch again: two seconds, and most of what a short command takes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")  # as the command line's main has it
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["ascendopt_tune.cli.run", "ascendopt_tune.cli.tune", "torch"])
        forkserver.ensure_running()
    return context


@pytest.fixture
def cli(forking: multiprocessing.context.ForkServerContext, tmp_path_factory: pytest.TempPathFactory) -> Cli:
    """Runs ``ascendopt-tune`` and checks its exit code."""

    def call(*arguments: str, expect: int = 0) -> subprocess.CompletedProcess[str]:
        folder = tmp_path_factory.mktemp("said")
        out, err = folder / "out", folder / "err"
        out.touch()
        err.touch()
        process = forking.Process(
            target=command_line, args=([*arguments], dict(os.environ), os.getcwd(), str(out), str(err))
        )
        process.start()
        process.join(300)
        assert process.exitcode is not None, f"{arguments} goes on after five minutes"
        done = subprocess.CompletedProcess(arguments, process.exitcode, out.read_text(), err.read_text())
        assert done.returncode == expect, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    return call


@pytest.fixture
def cli_anew() -> Cli:
    """As ``cli``, in a process that imports everything itself."""

    def call(*arguments: str, expect: int = 0) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "ascendopt_tune", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == expect, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    return call


@pytest.fixture
def document(cli: Cli) -> Callable[..., dict[str, Any]]:
    """The one JSON document that a command prints with ``--json``."""

    def call(*arguments: str, expect: int = 0) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(cli(*arguments, "--json", expect=expect).stdout)
        return found

    return call


@pytest.fixture
def refused(cli: Cli) -> Callable[..., str]:
    """The paragraph on stderr of a command that must end with exit code 2."""

    def call(*arguments: str) -> str:
        done = cli(*arguments, expect=2)
        assert "Traceback" not in done.stderr
        assert done.stdout == ""
        paragraphs = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
        assert len(paragraphs) == 1, done.stderr
        assert paragraphs[0] == done.stderr.splitlines()[-1], "one paragraph, at the end"
        return paragraphs[0]

    return call
