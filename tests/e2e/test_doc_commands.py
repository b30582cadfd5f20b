"""Blocks of the documentation that are marked as tested, run as they stand there (README and tutorial elsewhere)."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from doc_blocks import ROOT, run_blocks

Cli = Callable[..., Any]


def run_page(page: str, cli: Cli) -> str:
    """Files are written where they have a name, commands run one after the other; what they say."""
    said = ""
    for block in run_blocks(page):
        if block.language == "python":
            Path(block.what).write_text(block.text)
            continue
        if block.what and block.what.removeprefix("with ") not in os.environ:
            pytest.skip(f"{block.what.removeprefix('with ')} is not set")
        for line in os.path.expandvars(block.text).replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            if words:
                assert words[0] == "ascendopt-tune", line
                said += cli(*words[1:]).stdout
    return said


def test_the_tile_language(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "scale on ascend910b2 (virtual)" in run_page("docs/dsl.md", cli)


def test_operators_of_others(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("ASCENDOPT_CACHE_DIR", str(tmp_path))
    assert "gelu on ascend910b2 (virtual)" in run_page("docs/bring.md", cli)
