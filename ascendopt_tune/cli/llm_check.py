"""``ascendopt-tune llm-check``: does the language model answer, and what will a run cost?"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import typer
from rich.console import Console

from ..errors import LlmError, SettingsError
from ..llm.client import ATTEMPTS, Answer, Client, Message, Prompt, estimate_tokens
from ..llm.endpoint import Endpoint
from ..nouns.case import Case
from ..nouns.chip import load_chip
from ..nouns.history import History
from ..nouns.operator import Candidate, Operator
from ..nouns.outcome import Hazard, Timed
from ..nouns.profile import Profile
from ..nouns.run_options import RunOptions
from ..nouns.trial import Trial
from ..report.text import json_text
from ..search.proposer import SearchState
from ..settings import settings
from ..sources.arguments import parse_tensors
from ..sources.registry import load_operator
from . import options
from .flags import Only, grouped

EXAMPLES = """[bold]Examples[/]

ASCENDOPT_LLM_BASE_URL=http://localhost:8000/v1 ASCENDOPT_LLM_MODEL=my-model ascendopt-tune llm-check

ascendopt-tune llm-check --llm-model my-model --operator softmax --budget 80 --json
"""
_QUESTION = "Answer with the one word: ready"
_TINY_REPLY = 512  # tokens: a model that thinks before it speaks needs some for a single word, too
# What is assumed of a run, for the estimate.
_TRIALS = 14  # earlier trials that a question in the middle of a run tells of
_REPLY = 1200  # tokens of a change in SEARCH/REPLACE blocks, thoughts not included
_AGAIN = 0.3  # share of questions that are asked once more: unusable replies, repairs


@dataclass(frozen=True)
class Estimate:
    """``questions`` of one run, with ``prompt`` and ``reply`` tokens each; US dollars, None without prices.

    ``most``: if every reply is as long as it may be, and every question is asked as often as it may be.
    """

    questions: int
    prompt_tokens: int
    reply_tokens: int
    tokens: int
    money: float | None
    most_tokens: int
    most_money: float | None


@grouped
def llm_check(
    how: Annotated[RunOptions, Only("llm_model", "llm_base_url", "budget")],
    operator: Annotated[
        str, typer.Option("--operator", help="The operator of the registry whose prompts are measured.")
    ] = "rms_norm",
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Ask each configured model for one word, and estimate what a tuning run will cost.

    The estimate needs prices (ASCENDOPT_LLM_PRICES); without them it counts tokens.
    """
    now = settings()
    endpoint = Endpoint.of(now, model=how.llm_model, base_url=how.llm_base_url)
    if endpoint is None:
        raise SettingsError(
            "no language model is configured.",
            "Set ASCENDOPT_LLM_MODEL, and ASCENDOPT_LLM_BASE_URL (any OpenAI-compatible endpoint) or "
            "ASCENDOPT_LLM_API_KEY; docs/llm.md lists what else there is.",
        )
    subject = load_operator(operator)
    answers = [_ask(endpoint, offline) for offline in ([False, True] if _two(endpoint) else [False])]
    found = estimate(endpoint, subject, how.budget, "both" if now.proposer is None else now.proposer)
    if json:
        document = {
            "url": endpoint.shown_url,
            "models": answers,
            "operator": subject.name,
            "budget": how.budget,
            "estimate": found.__dict__,
        }
        print(json_text(document))
        return
    _print(endpoint, subject, how.budget, answers, found)


def _two(endpoint: Endpoint) -> bool:
    return endpoint.model_offline != endpoint.model


def _ask(endpoint: Endpoint, offline: bool) -> dict[str, object]:
    """One tiny request; never answered from the store.

    Raises:
        LlmError: no answer; the hint tells what to correct.
    """
    model = endpoint.model_of(offline)
    if endpoint.replay:
        raise LlmError("ASCENDOPT_LLM_REPLAY=1: no request is made.", "Unset it to check the endpoint.")
    print(f"asking {model} at {endpoint.shown_url} (at most {ATTEMPTS} times) ...", file=sys.stderr)
    tiny = replace(endpoint, max_reply=min(_TINY_REPLY, endpoint.max_reply))
    client = Client(tiny, fresh=True)
    started = time.monotonic()
    try:
        answer = client.ask((Message("user", _QUESTION),), offline=offline)
    except LlmError as error:
        kind = next(iter(client.counts.problems), "")
        raise LlmError(
            f"{model}: {error.message}", _HINTS.get(kind, _HINTS["5"] if kind.startswith("5") else "")
        ) from None
    finally:
        client.close()
    return {
        "model": model,
        "roles": ("offline" if offline else "online") if _two(endpoint) else "all",
        "answer": answer.text.strip()[:60],
        "finish": answer.finish,
        "seconds": round(time.monotonic() - started, 2),
        "requests": client.counts.requests,
        "tokens": client.usage.tokens,
        "money": round(client.usage.money, 6) if endpoint.prices_of(offline) else None,
    }


_HINTS = {
    "401": "Check ASCENDOPT_LLM_API_KEY (or OPENAI_API_KEY): the endpoint refuses the key.",
    "403": "Check ASCENDOPT_LLM_API_KEY: the key may not use this model.",
    "404": "Check ASCENDOPT_LLM_MODEL and ASCENDOPT_LLM_BASE_URL: most URLs end in /v1.",
    "429": "The endpoint limits requests; wait, or raise the limits of the account.",
    "quota": "The account has no credit left.",
    "402": "The account has no credit left.",
    "connection": "Check ASCENDOPT_LLM_BASE_URL, the network and the proxy: nothing answers there.",
    "timeout": "Raise ASCENDOPT_LLM_TIMEOUT (seconds), or ask a faster model.",
    "malformed": "Check ASCENDOPT_LLM_BASE_URL: what answers there doesn't speak the chat-completions protocol.",
    "5": "The endpoint has trouble of its own; try again later.",
}


# -- the estimate -----------------------------------------------------------------------------------------------------


def estimate(endpoint: Endpoint, operator: Operator, budget: int, proposer: str) -> Estimate:
    """What a run of ``budget`` evaluations costs; prompts are those of ``operator`` in the middle of a run."""
    from ..llm.dialogue import REPAIRS
    from ..llm.proposers import LlmKernel, LlmTiling

    recorder = _Recorder(endpoint)
    state = _middle(operator)
    LlmTiling(recorder).propose(state, 1)
    LlmKernel(recorder).propose(state, 1)
    online = [estimate_tokens(text) for offline, text in recorder.texts if not offline]
    offline_tokens = sum(estimate_tokens(text) for offline, text in recorder.texts if offline)
    prompt = round(sum(online) / len(online))
    steps = 0 if proposer == "rules" else (budget - 1) if proposer == "llm" else -(-(budget - 1) // 2)
    questions = round(steps * (1 + _AGAIN)) + (1 if steps else 0)
    reply = min(_REPLY, endpoint.max_reply)

    def total(count: float, reply: int, template: int) -> tuple[int, float | None]:
        asked, answered = prompt * count, reply * count
        tokens = round(asked + answered) + template * (offline_tokens + reply)
        if endpoint.prices is None or endpoint.prices_offline is None:
            return tokens, None
        offline_cost = template * endpoint.prices_offline.cost(offline_tokens, reply)
        return tokens, round(endpoint.prices.cost(asked, answered) + offline_cost, 4)

    some = 1 if steps else 0
    expected = total(questions - some, reply, some)
    most = total(steps * (1 + REPAIRS), endpoint.max_reply, some * (1 + REPAIRS))
    return Estimate(questions, prompt, reply, expected[0], expected[1], most[0], most[1])


class _Recorder:
    """In a client's place: keeps the prompts and answers none."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.texts: list[tuple[bool, str]] = []

    def ask_many(self, prompts: Sequence[Prompt], *, offline: bool = False) -> list[Answer | LlmError]:
        self.texts += [(offline, "".join(m.text for m in p)) for p in prompts]
        return [LlmError("not asked") for _ in prompts]

    def judge(self, usable: bool) -> None:
        pass


def _middle(operator: Operator) -> SearchState:
    """A search in its middle: trials with invented times, as many as a prompt tells of."""
    example = operator.settings.get("case", [{}])[0]
    tensors = parse_tensors([f"{n}={t}" for n, t in example.get("inputs", {}).items()], "inputs")
    case = Case(tuple(tensors.values()), tuple(tensors.values())[:1])
    profile = Profile(10.0, 8.0, 4.0, 2.0, 3.0, 2.0, block_dim=48)
    trials = [Trial(Candidate(0, operator.baseline, None, "baseline", "as written"), Timed(profile))]
    for i in range(1, _TRIALS + 1):
        outcome = Hazard("x" * 300) if i % 3 == 0 else Timed(profile)
        trials.append(
            Trial(Candidate(i, operator.baseline, 0, "rules", f"a change of about this length, {i}"), outcome)
        )
    return SearchState(operator, case, load_chip(settings().chip), None, trials[0], trials[0], History(trials), 0)


def _print(endpoint: Endpoint, operator: Operator, budget: int, answers: list[dict[str, object]], e: Estimate) -> None:
    lines = [f"endpoint  {endpoint.shown_url}"]
    for a in answers:
        said = f"answered {a['answer']!r}" if a["answer"] else f"answered nothing (finish: {a['finish']})"
        lines.append(f"ok        {a['model']} ({a['roles']} roles) {said} in {a['seconds']} s, {a['tokens']} tokens")
    money = [f" = {m:.4f} US dollars" if m is not None else "" for m in (e.money, e.most_money)]
    lines += [
        f"estimate  for {operator.name} with a budget of {budget} evaluations: about {e.questions} questions of "
        f"{e.prompt_tokens} tokens, replies of {e.reply_tokens}: {e.tokens} tokens{money[0]}",
        f"at most   {e.most_tokens} tokens{money[1]}, if every reply is as long as allowed and every question is "
        "asked as often as allowed; --max-tokens and --max-money end a run earlier",
    ]
    if e.money is None:
        lines.append("Set ASCENDOPT_LLM_PRICES=INPUT:OUTPUT (US dollars per million tokens) to see it in money.")
    lines.append("Models that think before they answer take more tokens than the estimate says.")
    Console(highlight=False, soft_wrap=True).print("\n".join(lines), markup=False)
