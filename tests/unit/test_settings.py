"""Environment variables: typed, all declared, documented by a generated table."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from ascendopt_tune import settings
from ascendopt_tune.errors import SettingsError
from ascendopt_tune.evaluate import connection

PACKAGE = Path(settings.__file__).parent


def test_defaults() -> None:
    now = settings.settings({})
    assert now == settings.Settings()
    assert (now.target, now.chip, now.policy, now.budget, now.disable) == ("auto", "ascend910b2", "lookup", 40, False)


def test_values_are_typed() -> None:
    now = settings.settings(
        {
            "ASCENDOPT_CACHE_DIR": "/a",
            "ASCENDOPT_CACHE_LAYERS": os.pathsep.join(["/b", "", "/c"]),
            "ASCENDOPT_POLICY": "blocking",
            "ASCENDOPT_BUDGET": "7",
            "ASCENDOPT_DISABLE": "yes",
            "ASCENDOPT_WORKERS": "",
            "OTHER": "x",
        }
    )
    assert now.cache_dir == Path("/a")
    assert now.cache_layers == (Path("/b"), Path("/c"))
    assert (now.policy, now.budget, now.disable, now.workers) == ("blocking", 7, True, None)


def test_an_unknown_name_lists_what_exists() -> None:
    with pytest.raises(SettingsError) as caught:
        settings.settings({"ASCENDOPT_POLICI": "off"})
    assert "ASCENDOPT_POLICI" in str(caught.value)
    assert "Did you mean 'ASCENDOPT_POLICY'?" in str(caught.value)
    for variable in settings.VARIABLES:
        assert variable.name in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value", "next_step"),
    [
        ("ASCENDOPT_POLICY", "always", "off, lookup, lazy, blocking"),
        ("ASCENDOPT_LAZY_SHARE", "0", "above 0 and at most 1"),
        ("ASCENDOPT_SHADOW", "0", ">= 1"),
        ("ASCENDOPT_TARGET", "gpu", "auto, virtual, npu"),
        ("ASCENDOPT_BUDGET", "0", "whole number >= 1"),
        ("ASCENDOPT_BUDGET", "1e3", "whole number >= 1"),
        ("ASCENDOPT_DISABLE", "maybe", "1 or 0"),
        ("ASCENDOPT_LLM_BASE_URL", "localhost:8000", "a URL such as https://host/v1"),
        ("ASCENDOPT_LLM_PRICES", "1", "INPUT:OUTPUT"),
        ("ASCENDOPT_LLM_PRICES", "1:-2", "INPUT:OUTPUT"),
        ("ASCENDOPT_LLM_MAX_MONEY", "nan", "a number > 0"),
    ],
)
def test_a_bad_value_says_what_is_accepted(name: str, value: str, next_step: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(next_step)) as caught:
        settings.settings({name: value})
    assert name in str(caught.value)


def test_a_secret_is_never_shown() -> None:
    with pytest.raises(SettingsError) as caught:
        settings.settings({"ASCENDOPT_LLM_API_KEY": "sk-geheim\n"})
    assert "ASCENDOPT_LLM_API_KEY" in str(caught.value)
    assert "geheim" not in str(caught.value)
    assert "geheim" not in repr(settings.settings({"ASCENDOPT_LLM_API_KEY": "sk-geheim"}))


@pytest.mark.parametrize(
    ("own", "other", "key"),
    [("mine", "theirs", "mine"), ("", "theirs", "theirs"), ("mine", "", "mine"), ("", "not a key", None)],
)
def test_the_key_may_be_the_one_other_programs_use(own: str, other: str, key: str | None) -> None:
    assert settings.settings({"ASCENDOPT_LLM_API_KEY": own, "OPENAI_API_KEY": other}).llm_api_key == key


def test_processes_that_run_candidates_get_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in settings.SECRETS:
        monkeypatch.setenv(name, "sk-geheim")
    assert {"ASCENDOPT_LLM_API_KEY", "OPENAI_API_KEY"} == settings.SECRETS
    assert "sk-geheim" not in connection._environment().values()


def test_override_reaches_the_environment_and_is_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASCENDOPT_BUDGET", "3")
    before = dict(os.environ)
    with settings.override(budget=5, cache_layers=(Path("/a"), Path("/b")), disable=True, chip="x") as inside:
        assert (inside.budget, inside.cache_layers, inside.disable) == (5, (Path("/a"), Path("/b")), True)
        assert settings.settings() == inside
        assert os.environ["ASCENDOPT_BUDGET"] == "5"
        with settings.override(budget=None):
            assert settings.settings().budget == 40
    assert dict(os.environ) == before


def test_override_refuses_before_it_changes_anything() -> None:
    before = dict(os.environ)
    for bad in ({"budgett": 1}, {"policy": "always"}):
        with pytest.raises(SettingsError), settings.override(chip="changed", **bad):
            pass
    assert dict(os.environ) == before


@pytest.mark.parametrize(("text", "off"), [("1", True), ("true", True), ("0", False), ("", False), ("what", True)])
def test_kill_switch(monkeypatch: pytest.MonkeyPatch, text: str, off: bool) -> None:
    monkeypatch.setenv("ASCENDOPT_DISABLE", text)
    assert settings.disabled() is off


def test_table_has_every_variable() -> None:
    table = settings.table()
    assert re.findall(r"^\| `(ASCENDOPT_\w+)`", table, re.MULTILINE) == [v.name for v in settings.VARIABLES]


def test_every_name_in_the_sources_is_declared() -> None:
    """A text that tells a user to set a variable must name one that exists."""
    known = {v.name for v in settings.VARIABLES}
    for file in PACKAGE.rglob("*.py"):
        for name in re.findall(r"ASCENDOPT_[A-Z]\w+", file.read_text()):
            assert name in known, f"{file}: {name}"


def test_only_settings_reads_our_variables() -> None:
    for file in PACKAGE.rglob("*.py"):
        if file.name != "settings.py":
            assert not re.search(r"(environ|getenv)[^\n]*ASCENDOPT_", file.read_text()), file
