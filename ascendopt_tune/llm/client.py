"""One request to a model, with its retries, limits and accounting.

1. An answer that is in the store costs nothing and needs no network.
2. What a retry may mend (429, 5xx, timeouts, broken connections, malformed bodies) is tried again, at most
   ``ATTEMPTS`` times, after the time the server asks for (``Retry-After``) or a doubling one.
3. What no retry mends (key refused, model unknown, quota used up) ends all asking, as do ``_USELESS`` questions in a
   row whose answers can't be used: a run must not pay for a model that isn't up to the task. ``_PATIENCE`` questions in
   a row without an answer pause the asking: a run of many evaluations must not wait for a dead endpoint at each. After
   the pause one question probes; as long as it gets no answer, the next pause is twice as long.
4. A body is read in pieces against a deadline and a size, so neither a reply that trickles nor an endless one holds
   the run. A server that streams unasked is understood, and one that doesn't although asked.
5. The key is in no text that leaves this module: errors and answers are searched for it.
"""

from __future__ import annotations

import email.utils
import json
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

from ..errors import LlmError, SettingsError, need
from ..store.entry import canonical, sha256
from .endpoint import Endpoint
from .store import AnswerStore

if TYPE_CHECKING:
    import openai
    from openai.types.chat import ChatCompletionMessageParam

ATTEMPTS = 4
_PATIENCE = 3  # questions in a row without an answer, then asking pauses
_PAUSE_S, _LONGEST_PAUSE_S = 60.0, 960.0
_USELESS = 8  # questions in a row whose answers, corrected twice, can't be used
_BACKOFF_S, _LONGEST_WAIT_S = 1.0, 60.0
_BODY_BYTES = 8 << 20
_SCHEMA = 1  # of the store's documents
_CHARACTERS_PER_TOKEN = 3.5  # of C++ text, for servers that don't count; a usual rule of thumb is 3 to 4
_RETRIED = frozenset((408, 409, 425, 429))
_FATAL = frozenset((401, 402, 403, 404))
#: ``error.code`` or ``error.type`` of what is wrong with an account or a request, whatever the status.
_HOPELESS = frozenset((
    "insufficient_quota", "insufficient_balance", "billing_hard_limit_reached", "billing_not_active",
    "account_deactivated", "access_terminated", "invalid_api_key", "invalid_authentication", "model_not_found",
))  # fmt: skip
_SHOWN = 300  # characters of a server's message that are shown


@dataclass(frozen=True)
class Message:
    """``role`` is ``system``, ``user`` or ``assistant``."""

    role: str
    text: str


Prompt = tuple[Message, ...]


@dataclass(frozen=True)
class Answer:
    """What a model said. ``finish`` is the protocol's reason: ``stop``, ``length`` (cut off), ..."""

    text: str
    finish: str
    prompt_tokens: int
    completion_tokens: int
    replayed: bool = False


class Meter(Protocol):
    """Where a client counts what its requests cost (search/budget.py's ``Usage`` is one)."""

    tokens: int
    money: float

    def add(self, tokens: int, money: float = 0.0) -> None: ...


class Asks(Protocol):
    """What roles and proposers need of a client."""

    @property
    def endpoint(self) -> Endpoint: ...

    def ask_many(self, prompts: Sequence[Prompt], *, offline: bool = False) -> list[Answer | LlmError]:
        """Answers, or why there is none, in the prompts' order."""
        ...

    def judge(self, usable: bool) -> None:
        """Tells whether a question came to something that could be used."""
        ...


@dataclass
class Account:
    """A meter of its own, for a client outside a search. ``money`` in US dollars."""

    tokens: int = 0
    money: float = 0.0

    def add(self, tokens: int, money: float = 0.0) -> None:
        self.tokens += tokens
        self.money += money


@dataclass
class Counts:
    """What this client's questions came to; ``problems``: why requests failed, by a word."""

    requests: int = 0
    replayed: int = 0
    answered: int = 0
    pauses: int = 0
    problems: Counter[str] = field(default_factory=Counter)

    def to_json(self) -> dict[str, object]:
        return {
            "requests": self.requests,
            "answered": self.answered,
            "replayed": self.replayed,
            "pauses": self.pauses,
            "problems": dict(self.problems),
        }


class _Failed(Exception):
    """One request failed. ``kind``: a word for it; ``wait_s``: what the server asked to wait."""

    def __init__(self, kind: str, text: str, *, retry: bool = False, fatal: bool = False, wait_s: float = 0.0) -> None:
        super().__init__(text)
        self.kind, self.retry, self.fatal, self.wait_s = kind, retry, fatal, wait_s


def estimate_tokens(text: str) -> int:
    """About how many tokens ``text`` is."""
    return round(len(text) / _CHARACTERS_PER_TOKEN)


class Client:
    """Asks the models of ``endpoint``.

    Args:
        seed: another one has other answers to the same prompts.
        fresh: recorded answers are not looked up, and new ones not recorded.
        say: told when the endpoint is given up, when asking pauses, and when there is an answer again.
        wait: sleeps so many seconds.
        clock: seconds since some time.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        usage: Meter | None = None,
        seed: int = 0,
        store: AnswerStore | None = None,
        fresh: bool = False,
        say: Callable[[str], None] = lambda text: None,
        wait: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if not endpoint.replay:
            need(
                "openai",
                "llm",
                "Asking a language model",
                or_else="; ASCENDOPT_PROPOSER=rules asks none",
                kind=SettingsError,
            )
        self.endpoint = endpoint
        self.usage: Meter = usage if usage is not None else Account()
        self.counts = Counts()
        self._seed = seed
        self._store = store or AnswerStore()
        self._fresh = fresh
        self._say, self._wait, self._clock = say, wait, clock
        self._lock = threading.Lock()
        self._failures = self._useless = 0
        self._given_up: str | None = None
        self._pending = 0  # tokens that questions under way will take at least
        self._pauses, self._paused_until = 0, 0.0  # since the last answer
        self._openai: openai.OpenAI | None = None
        self._options: dict[str, Any] = {"max_tokens": endpoint.max_reply}
        if endpoint.stream:
            self._options |= {"stream": True, "stream_options": {"include_usage": True}}

    # -- asking -------------------------------------------------------------------------------------------------------

    def ask(self, prompt: Prompt, *, offline: bool = False) -> Answer:
        """The model's answer, recorded or new.

        Raises:
            LlmError: there is none.
        """
        (found,) = self.ask_many([prompt], offline=offline)
        if isinstance(found, LlmError):
            raise found
        return found

    def ask_many(self, prompts: Sequence[Prompt], *, offline: bool = False) -> list[Answer | LlmError]:
        """Answers in the prompts' order; those that are not recorded are asked for at the same time."""
        keys = [self._key(p, offline) for p in prompts]
        found: list[Answer | LlmError | None] = [None if self._fresh else self._recorded(k) for k in keys]
        missing = [i for i, answer in enumerate(found) if answer is None]

        def fill(i: int, reserved: int) -> None:
            try:
                found[i] = self._answer(prompts[i], offline)
            finally:
                self._reserve(-reserved)

        # Daemons: an interrupted run must not wait for a reply that nobody will read.
        threads: list[threading.Thread] = []
        for i in missing:
            found[i] = self._refusal()
            if found[i] is None:
                reserved = self._reserve(estimate_tokens("".join(m.text for m in prompts[i])))
                threads.append(threading.Thread(target=fill, args=(i, reserved), daemon=True))
                threads[-1].start()
                if self._pauses:  # a probe, which the others wait for
                    threads[-1].join()
        for t in threads:
            t.join()
        out: list[Answer | LlmError] = []
        for i, answer in enumerate(found):
            assert answer is not None
            out.append(answer)
            if i in missing and isinstance(answer, Answer) and not self._fresh:
                self._store.put(keys[i], _document(answer))
        return out

    def judge(self, usable: bool) -> None:
        """Questions in a row that came to nothing end the asking."""
        self._useless = 0 if usable else self._useless + 1
        if self._useless >= _USELESS:
            self._give_up(f"{self._useless} questions in a row came to no answer that could be used.")

    def close(self) -> None:
        """Closes files and connections; the object may be used on."""
        self._store.close()
        if self._openai is not None:
            self._openai.close()
            self._openai = None

    @property
    def given_up(self) -> str | None:
        """Why nothing is asked any more, or None."""
        return self._given_up

    def _key(self, prompt: Prompt, offline: bool) -> str:
        messages = [[m.role, m.text] for m in prompt]
        what = [_SCHEMA, self._seed, self.endpoint.model_of(offline), self.endpoint.max_reply, messages]
        return sha256(canonical(what).encode("utf-8", "surrogatepass"))

    def _recorded(self, key: str) -> Answer | None:
        document = self._store.get(key)
        if document is None:
            return None
        try:
            answer = Answer(
                str(document["text"]),
                str(document["finish"]),
                int(document["prompt_tokens"]),
                int(document["completion_tokens"]),
                replayed=True,
            )
        except (KeyError, TypeError, ValueError):  # not one of ours
            return None
        self.counts.replayed += 1
        return answer

    def _refusal(self) -> LlmError | None:
        """Why nothing may be asked now."""
        end = self.endpoint
        if end.replay:
            return LlmError("this prompt has no recorded answer.", "Unset ASCENDOPT_LLM_REPLAY to ask the model.")
        if self._given_up is not None:
            return LlmError(self._given_up)
        if self._clock() < self._paused_until:
            return LlmError("asking pauses, because the language model gave no answers.")
        if end.max_tokens is not None and self.usage.tokens + self._pending >= end.max_tokens:
            return LlmError(f"the limit of {end.max_tokens} tokens is reached.", "Raise ASCENDOPT_LLM_MAX_TOKENS.")
        if end.max_money is not None and self.usage.money >= end.max_money:
            return LlmError(f"the limit of {end.max_money:g} US dollars is reached.", "Raise ASCENDOPT_LLM_MAX_MONEY.")
        return None

    def _reserve(self, tokens: int) -> int:
        with self._lock:
            self._pending += tokens
        return tokens

    def _answer(self, prompt: Prompt, offline: bool) -> Answer | LlmError:
        """A new answer; every failure counts, and enough of them pause the asking."""
        attempts = 1 if self._pauses else ATTEMPTS
        for attempt in range(attempts):
            with self._lock:
                self.counts.requests += 1
            try:
                answer = self._request(prompt, offline)
            except _Failed as failure:
                with self._lock:
                    self.counts.problems[failure.kind] += 1
                wait_s = failure.wait_s or _BACKOFF_S * 2**attempt
                if failure.retry and attempt + 1 < attempts and wait_s <= _LONGEST_WAIT_S and self._given_up is None:
                    self._wait(wait_s)
                    continue
                return self._lost(failure)
            self._answered()
            return answer
        raise AssertionError("the last attempt returns")

    def _answered(self) -> None:
        with self._lock:
            if self._pauses:
                self._say("the language model answers again")
            self._failures = self._pauses = 0
            self.counts.answered += 1

    def _lost(self, failure: _Failed) -> LlmError:
        with self._lock:
            self._failures += 1
            text = f"{self.endpoint.shown_url}: {failure}"
            if failure.fatal:
                self._give_up(text)
            elif self._failures >= _PATIENCE and self._clock() >= self._paused_until:
                self._pause(text)
        return LlmError(text)

    def _pause(self, why: str) -> None:
        seconds = min(_PAUSE_S * 2**self._pauses, _LONGEST_PAUSE_S)
        self._pauses += 1
        self.counts.pauses += 1
        self._paused_until = self._clock() + seconds
        self._say(f"the language model is not asked for {seconds:g} s: {why}")

    def _give_up(self, why: str) -> None:
        if self._given_up is None:
            self._given_up = why
            self._say(f"the language model is not asked any more in this run: {why}")

    # -- one request --------------------------------------------------------------------------------------------------

    def _client(self) -> openai.OpenAI:
        import openai  # half a second: only who asks a model pays for it

        with self._lock:
            if self._openai is None:
                self._openai = openai.OpenAI(
                    api_key=self.endpoint.api_key or "none",  # a local server needs none; the client insists on one
                    base_url=self.endpoint.base_url,
                    timeout=self.endpoint.timeout_s,
                    max_retries=0,
                )
            return self._openai

    def _request(self, prompt: Prompt, offline: bool) -> Answer:
        import openai

        prompt_estimate = estimate_tokens("".join(m.text for m in prompt))
        try:
            client = self._client()
            body, streamed = self._body(client, prompt, offline)
        except openai.APITimeoutError:
            raise _Failed("timeout", f"no answer within {self.endpoint.timeout_s:g} s.", retry=True) from None
        except openai.APIStatusError as error:
            raise self._status(error) from None
        except openai.APIConnectionError as error:
            raise _Failed("connection", f"no connection ({self._clean(error.__cause__)}).", retry=True) from None
        except _Failed:
            raise
        except Exception as error:  # whatever a client library has to say about a URL or a proxy, the run goes on
            raise _Failed("client", f"{type(error).__name__}: {self._clean(error)}.") from None
        try:
            answer = self._parse(body, streamed)
        except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
            self._count(offline, prompt_estimate, 0)
            text = f"a reply that is no chat completion ({self._clean(error)})."
            raise _Failed("malformed", text, retry=True) from None
        prompt_tokens = answer.prompt_tokens or prompt_estimate
        completion_tokens = answer.completion_tokens or estimate_tokens(answer.text)
        self._count(offline, prompt_tokens, completion_tokens)
        return Answer(self._without_key(answer.text), answer.finish, prompt_tokens, completion_tokens)

    def _count(self, offline: bool, prompt_tokens: int, completion_tokens: int) -> None:
        prices = self.endpoint.prices_of(offline)
        with self._lock:
            money = prices.cost(prompt_tokens, completion_tokens) if prices else 0.0
            self.usage.add(prompt_tokens + completion_tokens, money)

    def _body(self, client: openai.OpenAI, prompt: Prompt, offline: bool) -> tuple[str, bool]:
        """The reply's text, and whether it is a stream of events."""
        messages: list[Any] = [{"role": m.role, "content": m.text} for m in prompt]
        typed: list[ChatCompletionMessageParam] = messages
        deadline = time.monotonic() + self.endpoint.timeout_s
        create = client.chat.completions.with_streaming_response.create
        data = bytearray()
        with create(model=self.endpoint.model_of(offline), messages=typed, **self._options) as response:
            streamed = "text/event-stream" in response.headers.get("content-type", "")
            try:
                for piece in response.iter_bytes():
                    data += piece
                    if len(data) > _BODY_BYTES:
                        raise _Failed("size", f"a reply of more than {_BODY_BYTES >> 20} MiB.")
                    if time.monotonic() > deadline:
                        raise _Failed("timeout", f"no whole answer within {self.endpoint.timeout_s:g} s.", retry=True)
            except _Failed:
                raise
            except Exception as error:  # the transport's errors; which library it is depends on the client's version
                raise _Failed("connection", f"the reply broke off ({self._clean(error)}).", retry=True) from None
        return data.decode("utf-8", "replace"), streamed

    def _status(self, error: openai.APIStatusError) -> _Failed:
        code, text = error.status_code, self._clean(error.message)
        if code == 400 and self._adapt(text):
            return _Failed("option", f"an option was refused: {text}", retry=True, wait_s=1e-3)
        what = f"status {code}: {text}"
        told = {str(error.code), str(error.type)} & _HOPELESS
        if told or (code == 429 and "insufficient_quota" in text):
            return _Failed("quota" if code == 429 else str(code), what, fatal=True)
        if code in _RETRIED or code >= 500:
            return _Failed(str(code), what, retry=True, wait_s=_retry_after(error.response.headers))
        return _Failed(str(code), what, fatal=code in _FATAL)

    def _adapt(self, text: str) -> bool:
        """Servers differ in the name of the length limit and in what a stream may tell; says whether that helps."""
        with self._lock:
            if "max_completion_tokens" in text and "max_tokens" in self._options:
                self._options["max_completion_tokens"] = self._options.pop("max_tokens")
                return True
            return "stream_options" in text and self._options.pop("stream_options", None) is not None

    def _parse(self, body: str, streamed: bool) -> Answer:
        if streamed or body.lstrip().startswith("data:"):
            return _from_events(body)
        document = json.loads(body)
        choice = document["choices"][0]
        usage = _tokens(document.get("usage"))
        return Answer(_text(choice["message"].get("content")), str(choice.get("finish_reason") or "stop"), *usage)

    def _clean(self, error: object) -> str:
        """A message fit to be shown: one line, of bounded length, without the key."""
        text = re.sub(r"[\x00-\x1f\x7f]+", " ", str(error)).strip()
        text = self._without_key(text)
        return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."

    def _without_key(self, text: str) -> str:
        """Text that can be stored and shown: neither the key nor halves of characters are in it."""
        key = self.endpoint.api_key
        text = re.sub("[\ud800-\udfff]", "\ufffd", text)
        return text.replace(key, "***") if key and len(key) >= 6 else text  # shorter ones are words like "none"


def _text(content: object) -> str:
    """The text of a message, which some servers send in parts."""
    if isinstance(content, list):
        return "".join(_text(part.get("text")) for part in content if isinstance(part, Mapping))
    return content if isinstance(content, str) else ""


def _tokens(usage: object) -> tuple[int, int]:
    """(input, output); 0 where the server doesn't say, or says what can't be."""
    counts = [usage.get(n) if isinstance(usage, Mapping) else None for n in ("prompt_tokens", "completion_tokens")]
    known = [n if isinstance(n, int) and n > 0 else 0 for n in counts]
    return known[0], known[1]


def _events(body: str) -> Iterator[str]:
    for line in body.splitlines():
        if line.startswith("data:"):
            yield line.removeprefix("data:").strip()


def _from_events(body: str) -> Answer:
    """Raises ValueError when the stream broke off or tells an error."""
    parts: list[str] = []
    finish, done, usage = "", False, (0, 0)
    for data in _events(body):
        if data == "[DONE]":
            done = True
            break
        event = json.loads(data)
        if "error" in event:
            raise ValueError(f"an error in the stream: {event['error']}")
        for choice in event.get("choices") or []:
            parts.append(_text((choice.get("delta") or {}).get("content")))
            finish = str(choice.get("finish_reason") or finish)
        usage = _tokens(event["usage"]) if event.get("usage") else usage
    if not done and not finish:
        raise ValueError("the stream broke off")
    return Answer("".join(parts), finish or "stop", *usage)


def _retry_after(headers: Mapping[str, str]) -> float:
    """Seconds a server asks to wait, as a number or a date; 0 where it doesn't."""
    text = headers.get("retry-after", "").strip()
    if re.fullmatch(r"\d{1,9}(\.\d+)?", text):
        return float(text)
    try:
        return max(0.0, (email.utils.parsedate_to_datetime(text) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return 0.0


def _document(answer: Answer) -> dict[str, object]:
    return {
        "text": answer.text,
        "finish": answer.finish,
        "prompt_tokens": answer.prompt_tokens,
        "completion_tokens": answer.completion_tokens,
    }
