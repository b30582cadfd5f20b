"""One question to an endpoint, whatever the endpoint does: an answer, or a reason, within bounds."""

from __future__ import annotations

import email.utils
import json
import logging
import sqlite3
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from chat_server import KEY, Reply, Server

from ascendopt_tune.errors import LlmError, SettingsError
from ascendopt_tune.llm.client import ATTEMPTS, Answer, Client, Message, estimate_tokens
from ascendopt_tune.llm.endpoint import DEFAULT_URL, Endpoint, Prices
from ascendopt_tune.llm.store import AnswerStore
from ascendopt_tune.settings import settings
from ascendopt_tune.store.cache import CacheWarning

Make = Callable[..., Client]
PROMPT = (Message("system", "be brief"), Message("user", "say hello"))
OTHER = (Message("user", "say something else"),)
PARTS = json.dumps({"choices": [{"message": {"content": [{"type": "text", "text": "hel"}, {"text": "lo"}]}}]}).encode()


def test_an_answer_its_cost_and_what_was_sent(server: Server, make_client: Make) -> None:
    server.answer = [Reply("hello")]
    client = make_client()
    assert client.ask(PROMPT) == Answer("hello", "stop", 100, 20)
    assert (client.usage.tokens, client.usage.money) == (120, pytest.approx((100 * 1.0 + 20 * 10.0) / 1e6))
    (sent,) = server.requests
    assert sent["messages"] == [{"role": m.role, "content": m.text} for m in PROMPT]
    assert (sent["model"], sent["max_tokens"]) == ("online-model", 16384)
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"


def test_offline_roles_have_a_model_and_prices_of_their_own(server: Server, make_client: Make) -> None:
    server.answer = [Reply("hello")]
    client = make_client(prices_offline=Prices(100.0, 1000.0))
    client.ask(PROMPT, offline=True)
    assert server.requests[0]["model"] == "offline-model"
    assert client.usage.money == pytest.approx((100 * 100.0 + 20 * 1000.0) / 1e6)


@pytest.mark.parametrize("asked", [False, True])
@pytest.mark.parametrize("streams", [False, True])
def test_a_stream_is_read_whether_it_was_asked_for_or_not(
    server: Server, make_client: Make, asked: bool, streams: bool
) -> None:
    server.answer = [Reply("one long answer, in pieces", stream=streams)]
    answer = make_client(stream=asked).ask(PROMPT)
    assert (answer.text, answer.finish) == ("one long answer, in pieces", "stop")
    if asked == streams:
        assert (answer.prompt_tokens, answer.completion_tokens) == (100, 20)


# What the endpoint does first; whether a second try is made; the seconds between.
RETRIED = {
    "429": (Reply(status=429), 1.0),
    "429 with seconds": (Reply(status=429, headers={"Retry-After": "7"}), 7.0),
    "500": (Reply(status=500), 1.0),
    "503": (Reply(status=503, headers={"Retry-After": "nonsense"}), 1.0),
    "no JSON": (Reply(body=b"<html>proxy says hello</html>"), 1.0),
    "another document": (Reply(body=b'{"answer": 42}'), 1.0),
    "no choice": (Reply(body=b'{"choices": []}'), 1.0),
    "a list": (Reply(body=b"[1]"), 1.0),
    "broken off": (Reply("hello", cut=True), 1.0),
    "stream broken off": (Reply(body=b'data: {"choices": [{"delta": {"content": "he"}}]}\n\n', stream=True), 1.0),
    "error in the stream": (Reply(body=b'data: {"error": {"message": "overloaded"}}\n\n', stream=True), 1.0),
    "slow": (Reply("hello", wait_s=0.6), 1.0),
    "trickling": (Reply("hello" * 40, trickle_s=0.05), 1.0),
}  # fmt: skip


@pytest.mark.parametrize("name", RETRIED)
def test_what_a_second_try_may_mend_is_tried_again(server: Server, make_client: Make, name: str) -> None:
    first, wait_s = RETRIED[name]
    server.answer = [first, Reply("hello")]
    client = make_client(timeout_s=0.3 if name in ("slow", "trickling") else 5.0)
    assert client.ask(PROMPT).text == "hello"
    assert len(server.requests) == 2
    (waited,) = client.waited  # type: ignore[attr-defined]
    assert wait_s <= waited < wait_s + 6
    assert sum(client.counts.problems.values()) == 1


def test_a_server_may_say_when_as_a_date(server: Server, make_client: Make) -> None:
    soon = email.utils.format_datetime(datetime.now(UTC) + timedelta(seconds=50))
    server.answer = [Reply(status=429, headers={"Retry-After": soon}), Reply("hello")]
    client = make_client()
    assert client.ask(PROMPT).text == "hello"
    assert 10 < client.waited[0] <= 50  # type: ignore[attr-defined]


# What the endpoint always does; requests made for one question; a word of the reason.
FAILING = {
    "down": (Reply(status=500, text="oh no"), ATTEMPTS, "oh no"),
    "limited for an hour": (Reply(status=429, headers={"Retry-After": "3600"}), 1, "429"),
    "key refused": (Reply(status=401, text=f"bad key {KEY}"), 1, "bad key ***"),
    "model unknown": (Reply(status=404, text="no such model"), 1, "no such model"),
    "quota": (Reply(status=429, text="insufficient_quota"), 1, "insufficient_quota"),
    "too long a prompt": (Reply(status=400, text="context length"), 1, "context length"),
    "endless": (Reply(body=b'{"choices": "' + b"x" * (9 << 20) + b'"}'), 1, "8 MiB"),
}


@pytest.mark.parametrize("name", FAILING)
def test_failures_are_bounded_and_have_a_reason(server: Server, make_client: Make, name: str) -> None:
    reply, requests, word = FAILING[name]
    server.answer = lambda messages: reply
    client = make_client()
    with pytest.raises(LlmError, match=word.replace("*", r"\*")) as caught:
        client.ask(PROMPT)
    assert len(server.requests) == requests
    assert KEY not in str(caught.value)
    assert (client.given_up is not None) == (name in ("key refused", "model unknown", "quota"))


def test_a_dead_endpoint_is_not_asked_for_a_while(server: Server, make_client: Make) -> None:
    server.answer = lambda messages: Reply(status=500)
    said: list[str] = []
    now = [0.0]
    client = make_client(say=said.append, clock=lambda: now[0])

    def ask(first: int, count: int) -> None:
        for number in range(first, first + count):
            with pytest.raises(LlmError):
                client.ask((Message("user", str(number)),))

    ask(0, 10)
    assert len(server.requests) == 3 * ATTEMPTS
    assert ["not asked for 60 s" in text for text in said] == [True]
    now[0] = 61.0
    ask(10, 5)
    assert len(server.requests) == 3 * ATTEMPTS + 1, "one question probes, once"
    assert "not asked for 120 s" in said[1]
    now[0] = 182.0
    server.answer = lambda messages: "hello"
    answers = client.ask_many([PROMPT, OTHER])
    assert [a.text for a in answers if isinstance(a, Answer)] == ["hello", "hello"]
    assert said[2:] == ["the language model answers again"]
    assert (client.given_up, client.counts.pauses) == (None, 2)


@pytest.mark.parametrize(("field", "status"), [("code", 429), ("type", 429), ("code", 400), ("type", 500)])
def test_an_empty_account_is_known_by_code_or_type(server: Server, make_client: Make, field: str, status: int) -> None:
    error = {"message": "You have run out.", "type": "x", "code": None} | {field: "insufficient_quota"}
    server.answer = lambda messages: Reply(status=status, body=json.dumps({"error": error}).encode())
    client = make_client()
    with pytest.raises(LlmError, match="run out"):
        client.ask(PROMPT)
    assert len(server.requests) == 1
    assert client.given_up is not None


def test_a_limit_holds_within_a_batch(server: Server, make_client: Make) -> None:
    server.answer = lambda messages: "hello"
    long = tuple(Message("user", f"{i} " + "x" * 350) for i in range(4))
    answers = make_client(max_tokens=150).ask_many([(m,) for m in long])
    assert len(server.requests) == 2, "the second was allowed before the first had told its tokens"
    assert [isinstance(a, LlmError) for a in answers] == [False, False, True, True]


def test_nobody_listens(make_client: Make) -> None:
    client = make_client(base_url="http://127.0.0.1:9/v1")
    with pytest.raises(LlmError, match="no connection"):
        client.ask(PROMPT)


@pytest.mark.parametrize("url", ["http://[::1", "http://host:port/v1", "http://", "ftp://host/v1", "host", ""])
def test_a_url_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(SettingsError, match="no URL"):
        Endpoint("m", "m", base_url=url)


@pytest.mark.parametrize(
    ("told", "before", "after"),
    [
        ("Unsupported parameter: use 'max_completion_tokens' instead", "max_tokens", "max_completion_tokens"),
        ("unknown field stream_options", "stream_options", "stream"),
    ],
)
def test_servers_differ_in_options(server: Server, make_client: Make, told: str, before: str, after: str) -> None:
    server.answer = [Reply(status=400, text=told), Reply("hello"), Reply("hello")]
    client = make_client(stream=True)
    assert client.ask(PROMPT).text == "hello"
    client.ask(OTHER)
    assert before in server.requests[0]
    for request in server.requests[1:]:
        assert before not in request
        assert after in request


@pytest.mark.parametrize(
    "usage", [None, {}, {"prompt_tokens": -5, "completion_tokens": "many"}, [1], {"prompt_tokens": 0}]
)
def test_a_server_that_does_not_count_is_estimated(server: Server, make_client: Make, usage: object) -> None:
    server.answer = [Reply("x" * 350, usage=usage)]
    client = make_client()
    client.ask(PROMPT)
    assert client.usage.tokens == 100 + estimate_tokens("be briefsay hello")


def test_content_in_parts(server: Server, make_client: Make) -> None:
    server.answer = [Reply(body=PARTS)]
    assert make_client().ask(PROMPT).text == "hello"


@pytest.mark.parametrize("limit", [{"max_tokens": 120}, {"max_money": 0.0003}])
def test_limits_end_the_asking(server: Server, make_client: Make, limit: dict[str, float]) -> None:
    server.answer = lambda messages: "hello"
    client = make_client(**limit)
    client.ask(PROMPT)
    with pytest.raises(LlmError, match="limit of"):
        client.ask(OTHER)
    assert client.ask(PROMPT).replayed, "what is recorded costs nothing"
    assert len(server.requests) == 1


def test_questions_of_a_batch_are_asked_at_the_same_time(server: Server, make_client: Make) -> None:
    together = threading.Barrier(4, timeout=60)  # breaks where one waits for another one's answer

    def answer(messages: list[Message]) -> str:
        together.wait()
        return messages[-1].text

    server.answer = answer
    answers = make_client().ask_many([(Message("user", str(i)),) for i in range(4)])
    assert [a.text for a in answers if isinstance(a, Answer)] == ["0", "1", "2", "3"]


# -- the store --------------------------------------------------------------------------------------------------------


def test_the_same_prompt_has_the_same_answer(server: Server, make_client: Make) -> None:
    server.answer = [Reply("first"), Reply("second"), Reply("third"), Reply("fourth")]
    one = make_client()
    assert one.ask(PROMPT).text == "first"
    again = make_client()
    assert again.ask(PROMPT) == Answer("first", "stop", 100, 20, replayed=True)
    assert (again.usage.tokens, again.counts.replayed, len(server.requests)) == (0, 1, 1)
    assert again.ask(OTHER).text == "second"
    assert make_client(seed=1).ask(PROMPT).text == "third"
    assert make_client(model_offline="x").ask(PROMPT, offline=True).text == "fourth"


def test_replay_needs_no_network(server: Server, make_client: Make) -> None:
    server.answer = [Reply("hello")]
    make_client().ask(PROMPT)
    replay = make_client(replay=True, base_url="http://127.0.0.1:9/v1", api_key=None)
    assert replay.ask(PROMPT).text == "hello"
    with pytest.raises(LlmError, match="no recorded answer"):
        replay.ask(OTHER)
    assert replay.counts.requests == 0


def test_failures_are_not_recorded(server: Server, make_client: Make) -> None:
    server.answer = [Reply(status=400), Reply("hello")]
    client = make_client()
    with pytest.raises(LlmError):
        client.ask(PROMPT)
    assert client.ask(PROMPT).text == "hello"


def test_the_key_is_nowhere(
    server: Server, make_client: Make, own_cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A server that gives the key back, in answers and in errors."""
    caplog.set_level(logging.DEBUG)
    server.answer = [Reply(f"your key is {KEY}"), Reply(status=500, text=KEY), Reply(status=400, text=f"no: {KEY}")]
    said: list[str] = []
    client = make_client(say=said.append)
    answer = client.ask(PROMPT)
    assert answer.text == "your key is ***"
    with pytest.raises(LlmError) as caught:
        client.ask(OTHER)
    client.close()
    texts = [str(caught.value), repr(caught.value), repr(client.endpoint), *said, answer.text]
    texts += [record.getMessage() for record in caplog.records if record.name.startswith("ascendopt")]
    files = [p for p in own_cache.rglob("*") if p.is_file()]
    assert files, "the answer is stored"
    assert not any(KEY in text for text in texts)
    assert not any(KEY.encode() in p.read_bytes() for p in files)


def test_the_store_holds_text_and_nothing_is_unpickled(server: Server, make_client: Make, own_cache: Path) -> None:
    server.answer = [Reply("hello"), Reply("again")]
    client = make_client()
    client.ask(PROMPT)
    client.close()
    with sqlite3.connect(own_cache / "llm" / "cache.db") as database:
        ((value, _),) = database.execute("select value, mode from Cache").fetchall()
        assert json.loads(value)["text"] == "hello"
        database.execute("update Cache set mode = 4, value = ?", (b"cos\nsystem\n(S'true'\ntR.",))
    database.close()
    with pytest.warns(CacheWarning, match="can't be used"):
        assert client.ask(PROMPT).text == "again"


def test_a_store_that_can_not_be_used_is_a_warning(server: Server, tmp_path: Path, make_client: Make) -> None:
    (tmp_path / "file").write_text("")
    server.answer = lambda messages: "hello"
    client = make_client()
    client._store = AnswerStore(tmp_path / "file" / "folder")
    with pytest.warns(CacheWarning, match="Answers are not kept") as caught:
        assert [client.ask(PROMPT).text, client.ask(PROMPT).text] == ["hello", "hello"]
    assert len(caught) == 1


# -- the endpoint -----------------------------------------------------------------------------------------------------


def test_what_configures_an_endpoint() -> None:
    def of(**more: str) -> Endpoint | None:
        return Endpoint.of(settings({f"ASCENDOPT_LLM_{k.upper()}": v for k, v in more.items()}))

    assert of() is None
    assert of(base_url="http://x/v1") is None
    assert Endpoint.of(settings({"OPENAI_API_KEY": KEY})) is None, "other programs' keys configure nothing"
    assert of(model="m") is None
    local, hosted = of(model="m", base_url="http://x/v1/"), of(model="m", api_key=KEY)
    assert local is not None
    assert hosted is not None
    assert (local.base_url, local.api_key, local.model_offline, local.prices) == ("http://x/v1", None, "m", None)
    assert (hosted.base_url, hosted.model) == (DEFAULT_URL, "m")
    full = of(model="m", model_offline="o", api_key=KEY, prices="1:2", prices_offline="3:4", max_tokens="5")
    assert full is not None
    assert (full.prices_of(False), full.prices_of(True)) == (Prices(1, 2), Prices(3, 4))
    assert (full.model_of(True), full.max_tokens) == ("o", 5)


def test_a_url_is_shown_without_its_secrets() -> None:
    end = Endpoint("m", "m", base_url="https://user:pass@host:8/v1?token=x")
    assert end.shown_url == "https://host:8/v1"
    assert "pass" not in replace(end, base_url="https://h/v1", api_key="pass").__repr__()
