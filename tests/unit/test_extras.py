"""Packages that not everybody has: who needs one says how to get it, and nobody else imports it."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from ascendopt_tune.errors import BankError, need
from ascendopt_tune.llm.client import Client
from ascendopt_tune.llm.endpoint import Endpoint

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_a_missing_package_is_named_with_its_extra() -> None:
    need("json", "x", "This")
    with pytest.raises(BankError, match=re.escape("This needs the package no_such, which is not installed.")) as error:
        need("no_such", "llm", "This", or_else=", or do without", kind=BankError)
    assert error.value.hint == "pip install 'ascendopt_tune[llm]', or do without."


def test_every_extra_that_an_error_names_has_the_package() -> None:
    named = set()
    for file in (ROOT / "ascendopt_tune").rglob("*.py"):
        for call in ast.walk(ast.parse(file.read_text())):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "need":
                package, extra = (ast.literal_eval(a) for a in call.args[:2])
                assert any(p.startswith(package) for p in PROJECT["optional-dependencies"][extra]), file
                named.add(extra)
    assert named == {"llm", "ray", "sign", "torch"}


def test_without_openai_a_model_is_refused_and_recorded_answers_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(Exception, match=r"Asking a language model needs the package openai.*ascendopt_tune\[llm\]"):
        Client(Endpoint("m", "m", "http://localhost:1/v1"))
    Client(Endpoint("m", "m", replay=True)).close()


def test_the_package_imports_no_extra_by_itself() -> None:
    """Nor does the command line: what it lists is there without them, and what isn't needed costs nothing."""
    optional = {
        re.split(r"[\[<>=~ ]", p)[0].replace("-", "_") for of in PROJECT["optional-dependencies"].values() for p in of
    }
    code = (
        "import sys, ascendopt_tune, ascendopt_tune.cli as cli\n"
        "[cli.app.info.cls(name='x').commands[name] for name in cli._COMMANDS]\n"
        f"print(sorted({optional!r} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "['ascendopt_tune']\n"
