"""Tunings that were answered once, from the prompts alone: which reply belongs to which question."""

from __future__ import annotations

import re
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from chat_server import Reply

from ascendopt_tune.llm.client import Message, estimate_tokens
from ascendopt_tune.nouns.case import Case
from ascendopt_tune.nouns.operator import Operator
from ascendopt_tune.sources.arguments import parse_tensor
from ascendopt_tune.sources.registry import load_folder, load_operator

FOLDER = Path(__file__).with_name("conversations") / "tuning"
OPENEVOLVE = FOLDER.with_name("openevolve")  # the same operators and as many tokens, with OpenEvolve asking
_OPERATORS = Path(__file__).with_name("operators")  # as somebody new to AscendC writes them; others are the registry's
_ROLES = {
    "Below are the tiling program and the kernel": "template",
    "Change the **tiling program**": "tiling",
    "Change the **kernel**": "kernel",
    "Change **both programs**": "both",
}
_WORDS = 5  # of a question's focus


def name_of(question: str) -> str:
    """The role that is asked, and what tells the questions of one batch apart: their focus, or the idea to repair."""
    for begin, role in _ROLES.items():
        if question.startswith(begin):
            if role == "template":
                return role
            task = question.rsplit("## Your task\n\n", 1)[1]  # experience that is offered stands before the focus
            return f"{role}: {' '.join(task.split('if not: ')[-1].split()[:_WORDS]).rstrip(':,.')}"
    idea = re.search(r"^## The idea\n\n`{3,}\n(.*)$", question, re.MULTILINE)
    assert idea is not None, question[:200]
    return f"repair: {idea.group(1)}"


@dataclass(frozen=True)
class Recording:
    """One tuning. ``replies``: (heading, text) in the order in which they were given.

    ``evaluations``: its budget. ``speedup``: modelled, of the best pair; ``rules``: what the rules alone come to with
    the default budget of 40 evaluations, ``chosen``: what they came to when the operator was chosen; ``tokens``: of all
    questions and answers. ``limit``: of tokens, where OpenEvolve has been given as many, 0: none; ``within``:
    evaluations, speedup and tokens of a part that keeps to it.
    """

    operator: str
    case: Case
    evaluations: int
    speedup: float
    rules: float
    chosen: float
    replies: tuple[tuple[str, str], ...]
    tokens: int = 0
    limit: int = 0
    within: tuple[int, float, int] = (0, 0.0, 0)

    def load(self) -> Operator:
        """The operator as it is written."""
        folder = _OPERATORS / self.operator
        return load_folder(folder) if folder.is_dir() else load_operator(self.operator)

    @staticmethod
    def read(path: Path) -> Recording:
        head, *parts = path.read_text(encoding="utf-8").split("\n=== ")
        told = dict(line.split(" = ", 1) for line in head.splitlines())
        tensors = [[parse_tensor(f"x={t}")[1] for t in side.split()] for side in told["case"].split(" -> ")]
        replies = [part.partition("\n") for part in parts]
        return Recording(
            told["operator"], Case(tuple(tensors[0]), tuple(tensors[1])), int(told["evaluations"]),
            float(told["speedup"]), float(told.get("rules", "nan")), float(told.get("chosen", "nan")),
            tuple((heading, text) for heading, _, text in replies), int(told.get("tokens", 0)),
            int(told.get("limit", 0)), _part(told.get("within", "0, 0, 0")),
        )  # fmt: skip


def _part(text: str) -> tuple[int, float, int]:
    evaluations, speedup, tokens = text.split(", ")
    return int(evaluations), float(speedup), int(tokens)


class Replay:
    """Answers each question with its reply, the n-th of a name with the n-th, whatever order they come in.

    ``left``: headings that nobody asked for yet; ``unknown``: questions without a reply, which are answered by PASS.
    ``ask``: what to do about them instead.
    """

    def __init__(self, recording: Recording, ask: Callable[[str, list[Message]], str] | None = None) -> None:
        self._replies = dict(recording.replies)
        self._ask = ask
        self.left = [heading for heading, _ in recording.replies]
        self.unknown: list[str] = []
        self._names: dict[str, str] = {}  # by question
        self._count: Counter[str] = Counter()
        self._lock = threading.Lock()

    def heading(self, messages: list[Message]) -> str:
        """What the reply to the last message is called: name, running number, and how often it was corrected."""
        question = messages[1].text
        if question not in self._names:
            name = name_of(question)
            self._count[name] += 1
            self._names[question] = f"{name} #{self._count[name]}"
        corrected = (len(messages) - 2) // 2
        return self._names[question] + (f", correction {corrected}" if corrected else "")

    def __call__(self, messages: list[Message]) -> Reply | str:
        with self._lock:
            heading = self.heading(messages)
            if heading in self.left:
                self.left.remove(heading)
            if heading not in self._replies and self._ask is not None:
                self._replies[heading] = self._ask(heading, messages)
            if heading not in self._replies:
                self.unknown.append(heading)
            text = self._replies.get(heading, "PASS: nothing is recorded for this question.")
            asked, told = sum(estimate_tokens(m.text) for m in messages), estimate_tokens(text)
            return Reply(text, usage={"prompt_tokens": asked, "completion_tokens": told, "total_tokens": asked + told})


def asked_of(path: Path, question: Path, say: Callable[[str], None] = print) -> Callable[[str, list[Message]], str]:
    """Writes a question to ``question``, and waits until ``path`` has its reply."""

    def ask(heading: str, messages: list[Message]) -> str:
        question.parent.mkdir(parents=True, exist_ok=True)
        question.write_text("\n\n----\n\n".join(m.text for m in messages), encoding="utf-8")
        say(f"{question} waits for === {heading}")
        while True:
            replies = dict(Recording.read(path).replies)
            if heading in replies:
                return replies[heading]
            time.sleep(1)

    return ask
