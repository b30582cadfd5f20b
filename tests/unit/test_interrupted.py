"""Ctrl-C where a command keeps nothing: it says so, with --json in a document, and its exit code is a shell's."""

from __future__ import annotations

import json
import sys

import pytest

from ascendopt_tune import cli
from ascendopt_tune.cli import ops


def _interrupted(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_what_ctrl_c_says(
    options: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ops, "operator_names", _interrupted)
    monkeypatch.setattr(sys, "argv", ["ascendopt-tune", "ops", *options])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 130
    said = capsys.readouterr()
    assert "interrupted" in said.err
    if options:
        assert json.loads(said.out)["error"]["kind"] == "Interrupted"
    else:
        assert said.out == ""
