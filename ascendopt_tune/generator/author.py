"""Where no rule fits, a language model writes the program: three roles, and the way what it wrote is judged.

*write* gets the module; *repair* what failed, in the order parse error, rule of the language, interpreter, wrong
element, outcome of the gate; *improve* a program that passed, with its profile and diagnosis. A program is only ever
read: it is interpreted, lowered, and then judged by the gate like any other.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..dsl import DslError, Program, read_text
from ..errors import AscendOptError
from ..evaluate.evaluator import Evaluator
from ..llm import facts
from ..llm.client import Asks, Message, Prompt
from ..llm.dialogue import converse
from ..llm.prompts import render
from ..llm.replies import read_program
from ..nouns.chip import Chip
from ..nouns.profile import Profile
from .graph import NotGenerated
from .interpreted import Disagreement

#: What a program may fail at, in the order in which it is tried.
PARSE, RULE, INTERPRETER, ELEMENT, GATE = "parse error", "rule", "interpreter", "wrong element", "gate outcome"
_FAILURE = 3000  # characters of a failure that are told


@dataclass(frozen=True)
class Author:
    """A language model that writes programs.

    Args:
        evaluator: where programs go through the gate; None: what the interpreter agrees with is taken.
        repairs: how often it is told what failed, for one module.
        improvements: how often a program that passed the gate goes back with its diagnosis.
    """

    client: Asks
    chip: Chip
    evaluator: Evaluator | None = None
    repairs: int = 4
    improvements: int = 1


@dataclass(frozen=True)
class WantedProgram:
    """What is to be written. ``signature``, ``shapes``: as the model reads them. ``refusal``: why no rule fits."""

    name: str
    source: str
    signature: str
    shapes: Sequence[str]
    refusal: str


#: Interprets a program beside the module and says at which shapes. Raises DslError, NotGenerated.
Check = Callable[[Program], tuple[str, ...]]
#: The gate's judgement: a profile, or why a program is refused.
Gate = Callable[[Program], "Profile | str"]


@dataclass(frozen=True)
class Attempt:
    """One program of the model. ``failed``: at what (PARSE, RULE, ...), empty where it passed; ``message``: how.

    ``time_us``: modelled, where it went through the gate.
    """

    role: str
    failed: str = ""
    message: str = ""
    time_us: float | None = None


@dataclass(frozen=True)
class Written:
    """The program, where the interpreter agreed with the module, and everything that was tried on the way."""

    program: Program
    checked: tuple[str, ...]
    attempts: tuple[Attempt, ...]


@dataclass(frozen=True)
class _Judged:
    text: str
    attempt: Attempt
    program: Program | None = None
    checked: tuple[str, ...] = ()
    profile: Profile | None = None


def write(wanted: WantedProgram, author: Author, check: Check, gate: Gate | None) -> Written:
    """A program that passes every judgement there is.

    Raises:
        NotGenerated: the model gave none; the text has its last failure.
    """
    return _Writing(wanted, author, check, gate).written()


class _Writing:
    """The questions about one module, and their programs."""

    def __init__(self, wanted: WantedProgram, author: Author, check: Check, gate: Gate | None) -> None:
        self._wanted, self._author, self._check, self._gate = wanted, author, check, gate
        self._attempts: list[Attempt] = []

    def written(self) -> Written:
        found = self._first()
        last = self._attempts[-1] if self._attempts else None
        if found is None or found.program is None:
            why = f"its last program failed ({last.failed}): {last.message}" if last else "it gave none."
            text = f"{self._wanted.refusal} The language model wrote no program that is right: {why}"
            raise NotGenerated(text)
        for _ in range(self._author.improvements):
            better = self._improved(found)
            if better is None:
                break
            found = better
        assert found.program is not None
        return Written(found.program, found.checked, tuple(self._attempts))

    def _first(self) -> _Judged | None:
        """The first program that passes, or the last one that doesn't."""
        found = None
        text = self._ask("write_dsl", refusal=self._wanted.refusal)
        for k in range(1 + self._author.repairs):
            if not text:
                break
            found = self._judge(text, "repair" if k else "write")
            if not found.attempt.failed or k == self._author.repairs:
                break
            failure = facts.shortened(found.attempt.message, _FAILURE)
            text = self._ask("repair_dsl", program=text, kind=found.attempt.failed, failure=failure)
        return found

    def _improved(self, found: _Judged) -> _Judged | None:
        """A faster program, if the model has one; one that fails is not repaired."""
        if found.profile is None:
            return None
        profile = facts.profile_facts(found.profile, self._author.chip)
        text = self._ask("improve_dsl", program=found.text, profile=profile)
        if not text:
            return None
        better = self._judge(text, "improve")
        if better.profile is None or better.profile.task_duration_us >= found.profile.task_duration_us:
            return None
        return better

    def _ask(self, role: str, **values: object) -> str | None:
        """The text of a program; empty: the model has none; None: there is no answer that can be used."""
        w = self._wanted
        source = facts.shortened(w.source, facts.CONTEXT)
        module = {"source": source, "operator": w.name, "signature": w.signature, "shapes": w.shapes}
        prompt: Prompt = (
            Message("system", render("system_dsl", chip=facts.chip_facts(self._author.chip))),
            Message("user", render(role, **module, **values)),
        )
        (found,) = converse(self._author.client, [prompt], [read_program])
        return found

    def _judge(self, text: str, role: str) -> _Judged:
        found = self._judged(text, role)
        self._attempts.append(found.attempt)
        return found

    def _judged(self, text: str, role: str) -> _Judged:
        def failed(kind: str, message: object) -> _Judged:
            return _Judged(text, Attempt(role, kind, str(message)))

        file = f"{self._wanted.name}.dsl.py"
        try:
            ast.parse(text)
            program = read_text(text, file)
        except (SyntaxError, ValueError) as error:
            return failed(PARSE, f"{file}:{getattr(error, 'lineno', 1)}: {getattr(error, 'msg', error)}")
        except DslError as error:
            return failed(RULE, error)
        except RecursionError:
            return failed(RULE, f"{file}: expressions are nested too deeply.")
        try:
            checked = self._check(program)
        except Disagreement as error:
            return failed(ELEMENT, error.message)
        except (DslError, NotGenerated) as error:
            return failed(INTERPRETER, error)
        if self._gate is None:
            return _Judged(text, Attempt(role), program, checked)
        try:
            outcome = self._gate(program)
        except AscendOptError as error:
            return failed(GATE, error)
        if isinstance(outcome, str):
            return failed(GATE, outcome)
        return _Judged(text, Attempt(role, time_us=outcome.task_duration_us), program, checked, outcome)
