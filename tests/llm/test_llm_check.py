"""``ascendopt-tune llm-check`` and the options of ``tune``, as a user calls them."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from chat_server import KEY, Reply, Server
from typer.testing import CliRunner, Result

from ascendopt_tune import cli
from ascendopt_tune.cli.llm_check import estimate
from ascendopt_tune.errors import AscendOptError, LlmError, SettingsError
from ascendopt_tune.llm import client
from ascendopt_tune.llm.endpoint import Endpoint, Prices
from ascendopt_tune.sources.registry import load_operator


@pytest.fixture(autouse=True)
def configured(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASCENDOPT_LLM_BASE_URL", server.url)
    monkeypatch.setenv("ASCENDOPT_LLM_API_KEY", KEY)
    monkeypatch.setenv("ASCENDOPT_LLM_MODEL", "small")
    monkeypatch.setattr(client, "_BACKOFF_S", 0.001)


def check(*options: str, fails: type[AscendOptError] | None = None) -> Result:
    result = CliRunner().invoke(cli.app, ["llm-check", *options])
    assert isinstance(result.exception, fails) if fails else result.exit_code == 0, result.output
    return result


def test_an_endpoint_that_answers(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASCENDOPT_LLM_MODEL_OFFLINE", "large")
    monkeypatch.setenv("ASCENDOPT_LLM_PRICES", "1:2")
    server.answer = lambda messages: "ready"
    document = json.loads(check("--json").stdout)
    assert [(m["model"], m["answer"], m["requests"]) for m in document["models"]] == [
        ("small", "ready", 1),
        ("large", "ready", 1),
    ]
    assert len(server.requests) == 2
    assert all(r["max_tokens"] == 512 and len(json.dumps(r)) < 300 for r in server.requests), "tiny requests"
    assert document["estimate"]["money"] > 0
    text = check().stdout
    for word in ("ok        small (online roles) answered 'ready'", "US dollars", "27 questions", "for rms_norm"):
        assert word in text
    assert KEY not in text
    assert len(server.requests) == 4, "it asks anew every time"


def test_without_prices_tokens_are_counted(server: Server) -> None:
    server.answer = lambda messages: Reply("", finish="length")
    text = check("--budget", "10").stdout
    assert "answered nothing (finish: length)" in text
    assert "ASCENDOPT_LLM_PRICES" in text
    assert " = " not in text


@pytest.mark.parametrize(
    ("replies", "words"),
    [
        ([Reply(status=401, text=f"invalid key {KEY}")], ["ASCENDOPT_LLM_API_KEY", "invalid key ***"]),
        ([Reply(status=404, text="no such model")], ["ASCENDOPT_LLM_MODEL", "no such model"]),
        ([Reply(status=503, text="overloaded")] * 4, ["try again later", "overloaded"]),
        ([Reply(body=b"<html>")] * 4, ["chat-completions"]),
        ([Reply(status=429, text="insufficient_quota")], ["no credit"]),
    ],
)
def test_what_is_wrong_is_said_with_the_next_step(server: Server, replies: Sequence[Reply], words: list[str]) -> None:
    server.answer = replies
    text = str(check(fails=LlmError).exception)
    for word in (*words, "small"):
        assert word in text
    assert KEY not in text


def test_nobody_listens_and_nothing_is_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    text = str(check("--llm-base-url", "http://127.0.0.1:9/v1", fails=LlmError).exception)
    assert "nothing answers there" in text
    monkeypatch.setenv("ASCENDOPT_LLM_REPLAY", "1")
    assert "ASCENDOPT_LLM_REPLAY" in str(check(fails=LlmError).exception)
    monkeypatch.delenv("ASCENDOPT_LLM_MODEL")
    assert "ASCENDOPT_LLM_MODEL" in str(check(fails=SettingsError).exception)
    with pytest.raises(SettingsError, match="no URL"):
        Endpoint.of(cli.llm_check.settings(), model="m", base_url="not a url")


def test_explain_shows_what_a_model_thinks_of_the_region(server: Server) -> None:
    server.answer = ['{"unimportant": [0], "notes": ["Few cores suffice."]}', "no idea", "no idea", "no idea"]
    plain = json.loads(CliRunner().invoke(cli.app, ["explain", "add", "--json"]).stdout)
    refined = json.loads(CliRunner().invoke(cli.app, ["explain", "add", "--llm", "--json"]).stdout)
    assert (plain["notes"], refined["notes"]) == ([], ["Few cores suffice."])
    assert refined["sites"] != plain["sites"]
    assert len(refined["sites"]) == len(plain["sites"])
    other = CliRunner().invoke(cli.app, ["explain", "silu", "--llm"])
    assert isinstance(other.exception, LlmError)
    assert "llm-check" in str(other.exception)


def test_the_estimate_follows_budget_and_proposer() -> None:
    end = Endpoint("m", "m", prices=Prices(1.0, 2.0), prices_offline=Prices(1.0, 2.0))
    operator = load_operator("add")
    found = {(b, p): estimate(end, operator, b, p) for b in (10, 40) for p in ("rules", "both", "llm")}
    assert found[40, "rules"].tokens == found[40, "rules"].questions == 0
    assert 0 < found[10, "both"].tokens < found[10, "llm"].tokens < found[40, "llm"].tokens
    for e in found.values():
        assert e.tokens <= e.most_tokens
        assert e.money is not None
        assert e.most_money is not None
        assert e.money <= e.most_money
