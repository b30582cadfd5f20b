"""Questions whose answers are read by a program: what can't be read goes back to the model with the reason."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from ..errors import LlmError
from .client import Answer, Asks, Message, Prompt
from .prompts import render
from .replies import ReplyError

REPAIRS = 2  # how often a model is told what was wrong with its reply
_QUOTED = 6000  # characters of a wrong reply that go back

T = TypeVar("T")
Read = Callable[[str], T]  # raises ReplyError


def converse(
    client: Asks, prompts: Sequence[Prompt], read: Sequence[Read[T]], *, offline: bool = False
) -> list[T | None]:
    """For each prompt what ``read[i]`` makes of the answer; None where no answer could be had or read.

    All prompts are asked together; then, up to ``REPAIRS`` times, those whose answer ``read`` refused.
    """
    out: list[T | None] = [None] * len(prompts)
    waiting = {i: tuple(p) for i, p in enumerate(prompts)}
    answered: set[int] = set()
    for _ in range(1 + REPAIRS):
        answers = client.ask_many(list(waiting.values()), offline=offline)
        again: dict[int, Prompt] = {}
        for i, answer in zip(waiting, answers, strict=True):
            if isinstance(answer, LlmError):
                continue
            answered.add(i)
            try:
                out[i] = _read(answer, read[i])
            except ReplyError as problem:
                said = answer.text if len(answer.text) <= _QUOTED else answer.text[:_QUOTED] + "\n[...]"
                back = render("unusable", problem=str(problem))
                again[i] = (*waiting[i], Message("assistant", said or "(nothing)"), Message("user", back))
        waiting = again
        if not waiting:
            break
    for i in sorted(answered) if not offline else ():  # the template's answer is the same again and again
        client.judge(out[i] is not None)
    return out


def _read(answer: Answer, read: Read[T]) -> T:
    if answer.finish == "length":
        raise ReplyError(
            f"The reply was cut off after {answer.completion_tokens} tokens. Be brief: no explanation, "
            "SEARCH/REPLACE blocks with the lines that change and nothing else."
        )
    if answer.finish == "content_filter":
        raise ReplyError("The reply was filtered. This is about source code of a numeric operator; answer with code.")
    return read(answer.text)
