"""How a case is tuned: the one declaration of every option of a run.

Its default, its environment variable, its flag, its bounds and its text stand here once. The command line
(``cli/flags.py``), prebuild manifests, the decorator and docs/options.md are made from it.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from enum import StrEnum
from functools import cache
from typing import Any

from ..errors import CaseError, SettingsError, did_you_mean
from ..settings import PROPOSERS, TARGETS, Variable, settings, variable


class Schedule(StrEnum):
    """Which stage gets the next steps (search/schedule.py)."""

    OPENING = "opening"
    PAPER = "paper"
    ADAPTIVE = "adaptive"


#: Where options are shown together in a help text.
CASE = "The case"
LIMITS = "Limits: whichever ends first keeps the best pair so far"
MODEL = "Language model (docs/llm.md; check it with `ascendopt-tune llm-check`)"


@dataclass(frozen=True)
class Declared:
    """What there is to say of an option besides its name and type.

    ``setting``: the field of :class:`~ascendopt_tune.settings.Settings` that is its default. ``flags``: as typer takes
    them, where the name doesn't tell. ``choices``: the values it may have. ``without``: the default in words, where its
    value doesn't tell. ``parse``: from the text of a command line; raises CaseError. ``stored``: whether a manifest may
    say it.
    """

    text: str
    setting: str | None = None
    flags: str = ""
    metavar: str | None = None
    minimum: float | None = None
    maximum: float | None = None
    panel: str | None = None
    choices: tuple[str, ...] = ()
    without: str = ""
    parse: Callable[[str], object] | None = None
    stored: bool = True

    @property
    def variable(self) -> Variable | None:
        """The environment variable behind it."""
        return variable(self.setting) if self.setting is not None else None


def _option(text: str, default: Any = MISSING, **more: Any) -> Any:
    declared = Declared(text, **more)
    if declared.setting is None:
        return field(default=default, metadata={"declared": declared})
    name = declared.setting
    return field(default_factory=lambda: getattr(settings(), name), metadata={"declared": declared})


def parse_steps(text: str) -> tuple[int, int]:
    """``"10,10"``: two counts, not both 0. Raises CaseError."""
    parts = text.split(",")
    if len(parts) != 2 or not all(p.strip().isdecimal() for p in parts) or not any(int(p) for p in parts):
        raise CaseError(f"--steps {text!r} is not U,S.", "Give two counts, not both 0, for example 10,10.")
    return int(parts[0]), int(parts[1])


@dataclass(frozen=True)
class RunOptions:
    """How a case is tuned; what is not given is what the environment says (:mod:`ascendopt_tune.settings`), else the
    default. docs/options.md has the table.

    Raises:
        CaseError: a value of another type than the option has, or out of its bounds.
    """

    chip: str = _option("The chip: a name, such as ascend910b2, or a chip file.", setting="chip")
    target: str = _option(
        "Where candidates run: auto (a real NPU if there is one), virtual or npu.", setting="target", choices=TARGETS
    )
    seed: int = _option("Seed of the random inputs and of the search.", 0, minimum=0, maximum=2**31 - 1, panel=CASE)
    budget: int = _option(
        "How many candidates are evaluated, the baseline included.", setting="budget", minimum=1, panel=LIMITS
    )
    max_seconds: float | None = _option(
        "Seconds of the wall clock after which the search ends.", None, minimum=0, panel=LIMITS, without="no limit"
    )
    max_tokens: int | None = _option(
        "Tokens to and from language models after which none is asked any more.",
        setting="llm_max_tokens",
        minimum=0,
        panel=LIMITS,
    )
    max_money: float | None = _option(
        "US dollars spent on language models after which none is asked any more.",
        setting="llm_max_money",
        minimum=0,
        panel=LIMITS,
    )
    schedule: Schedule = _option(  # noqa: RUF009
        "Which stage gets the next steps. opening: first the steps of both stages that help most often, then short "
        "turns; paper: the stages take turns every 10 steps; adaptive: more steps for the stage that still earns.",
        Schedule.OPENING,
    )
    steps: tuple[int, int] = _option(
        "Steps of Stage I and Stage II in a round (U and S of the paper's Algorithm 1); 0 leaves a stage out.",
        (10, 10),
        metavar="U,S",
        parse=parse_steps,
        without="10,10",
    )
    proposer: str | None = _option(
        "Who proposes candidates: rules, llm or both.", setting="proposer", choices=PROPOSERS, panel=MODEL
    )
    llm_model: str | None = _option("The language model that is asked.", setting="llm_model", panel=MODEL)
    llm_base_url: str | None = _option(
        "Address of its endpoint, which speaks OpenAI's protocol.", setting="llm_base_url", panel=MODEL
    )
    workers: int | None = _option(
        "How many evaluations run at the same time.", setting="workers", minimum=1, stored=False
    )
    retune: bool = _option("Search anew even if the cache has an answer.", False, stored=False)
    resume: bool = _option(
        "Go on with a run that was killed, or that Ctrl-C or a limit ended, even if the cache has an answer. Give the "
        "same options.",
        False,
        stored=False,
    )
    accept_unfinished: bool = _option(
        "Take a cached result as the answer even if its search was not finished. Without it the search goes on.",
        setting="accept_unfinished",
    )
    invariant: bool = _option(
        "Accept only pairs whose results are bit for bit those of the pair as written.", setting="invariant"
    )
    warm_start: bool = _option(
        "Begin with what the cache has of other shapes, chips and operators, and add to the experience bank what the "
        "run learns. --cold: neither, so that the run depends on no other and changes none.",
        True,
        flags="--warm-start/--cold",
    )

    def __post_init__(self) -> None:
        if self.schedule not in list(Schedule):
            raise CaseError(f"unknown schedule {self.schedule!r}.", f"Known ones: {', '.join(Schedule)}.")
        object.__setattr__(self, "schedule", Schedule(self.schedule))
        for name in declarations():
            check_option(name, getattr(self, name))


def check_option(name: str, value: object) -> None:
    """Checks what is about to become the option ``name``.

    Raises:
        SettingsError: there is no such option.
        CaseError: a value that it can't have.
    """
    if name not in declarations():
        near = did_you_mean(name, declarations())
        raise SettingsError(f"unknown option {name!r}.{near}", f"Known ones: {', '.join(declarations())}.")
    kinds, declared = _kinds(name), declarations()[name]
    fits = type(value) in kinds or (type(value) is int and float in kinds)
    fits = fits or (Schedule in kinds and value in list(Schedule))  # by its name
    fits = fits and (value is None or not declared.choices or value in declared.choices)
    low, high = declared.minimum, declared.maximum
    if fits and isinstance(value, (int, float)) and low is not None:
        fits = low <= value <= (high if high is not None else float("inf"))
    if not fits:
        near = did_you_mean(value, map(str, declared.choices or ())) if isinstance(value, str) else ""
        raise CaseError(f"{name} = {value!r} is no value for this option of a run.{near}", f"Give {_what_fits(name)}.")


@cache
def declarations() -> Mapping[str, Declared]:
    """Every option of a run, in order."""
    return {f.name: f.metadata["declared"] for f in fields(RunOptions)}


@cache
def _kinds(name: str) -> frozenset[type]:
    hint = typing.get_type_hints(RunOptions)[name]
    kinds = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    return frozenset(typing.get_origin(kind) or kind for kind in kinds)


_WORDS = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    tuple: "two counts",
    type(None): "nothing",
}


def _what_fits(name: str) -> str:
    declared, kinds = declarations()[name], _kinds(name)
    choices = declared.choices or (tuple(Schedule) if Schedule in kinds else ())
    if choices:
        return f"one of {', '.join(choices)}"
    words = " or ".join(word for kind, word in _WORDS.items() if kind in kinds)
    low, high = declared.minimum, declared.maximum
    return words + (f", at least {low:g}" if low is not None else "") + (f", at most {high:.12g}" if high else "")


def default_text(name: str) -> str:
    """The default in words, for help texts and tables: the environment variable, then what goes without it."""
    declared = declarations()[name]
    default: object = {f.name: f.default for f in fields(RunOptions)}[name]
    if declared.variable is None:
        words = ("yes" if default else "no") if isinstance(default, bool) else str(default)
        return declared.without or words
    text = declared.variable.default_text
    return f"{declared.variable.name}, else {'no' if _kinds(name) == {bool} else text}"


def table() -> str:
    """The documentation's table of all options, in Markdown."""
    rows = ["| option | flag | default | in a manifest | meaning |", "|---|---|---|---|---|"]
    for name, declared in declarations().items():
        text = default_text(name).replace("|", "\\|")
        manifest = "yes" if declared.stored else "no"
        rows.append(f"| `{name}` | `{flag_of(name)}` | {text} | {manifest} | {declared.text} |")
    return "\n".join(rows) + "\n"


def flag_of(name: str) -> str:
    """The option's flag, as typer takes it."""
    return declarations()[name].flags or f"--{name.replace('_', '-')}"
