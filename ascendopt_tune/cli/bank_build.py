"""``ascendopt-tune bank build``: rewind strong kernels and add what that teaches to the bank."""

from __future__ import annotations

import shlex
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from ..bank.bank import Bank
from ..bank.experience import Experience
from ..bank.rewind import RewindOptions
from ..build.toolkit import find
from ..deploy.mining import Found, Unit, build
from ..errors import AscendOptError, CaseError, OperatorError, SettingsError
from ..evaluate.evaluator import Evaluator
from ..evaluate.screen import open_evaluator
from ..files import MALFORMED, read_toml
from ..llm.client import Client
from ..llm.endpoint import Endpoint
from ..nouns.chip import load_chip
from ..nouns.operator import Operator
from ..nouns.outcome import reason_of
from ..nouns.run_options import RunOptions
from ..report.text import json_text, time_word
from ..search.kernel.motifs import MOTIFS
from ..settings import settings
from ..sources.registry import operator_names
from . import failure, options
from .flags import Only, grouped
from .subject import CommandSubject, find_operator, make_subject

EXAMPLES = """[bold]Examples[/]

ascendopt-tune bank build rms_norm --case "x=float16\\[512,1024] gamma=float16\\[1024]" --depth 3

ascendopt-tune bank build --registry --resume
"""

To = Annotated[Path | None, typer.Option("--bank", help="The bank's folder. Default: the user's, above the shipped.")]
Cases = Annotated[
    list[str],
    typer.Option("--case", metavar="TEXT", help="Tensors and attributes: 'x=float16[64,512] dim=-1'; repeatable."),
]
#: (operator, chip, motifs: all when there are none; text of a case; None: the cases of its op.toml)
Given = Sequence[tuple[str, str, tuple[str, ...], str | None]]


def open_bank(folder: Path | None) -> Bank:
    """The bank in ``folder``, or the user's."""
    return Bank(folder) if folder is not None else Bank.open()


@dataclass
class Tally:
    """What a build has come to."""

    added: int = 0
    known: int = 0
    negative: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    motifs: Counter[str] = field(default_factory=Counter)
    found: list[Experience] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def take(self, found: Found) -> None:
        e = found.experience
        if found.step.verdict == "refused":
            self.refused[f"{found.step.removal.motif}: {type(found.step.outcome).__name__}"] += 1
        if e is None:
            return
        self.found.append(e)
        if e.kind == "negative":
            self.negative += 1
        else:
            self.motifs[e.motif] += 1
            self.added += found.new
            self.known += not found.new

    def to_json(self, stop: str) -> dict[str, Any]:
        return {
            "stop": stop,
            "added": self.added,
            "known": self.known,
            "negative": self.negative,
            "refused": dict(self.refused),
            "motifs": dict(self.motifs),
            "failed": self.failed,
            "experiences": [e.to_json() for e in self.found],
        }


@grouped
def build_bank(
    how: Annotated[RunOptions, Only("chip", "target", "seed", "workers")],
    ops: Annotated[
        list[str] | None, typer.Argument(metavar="OP", help="Operators: registry names, or folders.")
    ] = None,
    registry: Annotated[bool, typer.Option("--registry", help="All operators of the registry.")] = False,
    case: Cases = [],  # noqa: B006
    plan: Annotated[
        Path | None, typer.Option("--plan", help="A TOML file: [[unit]] with op, cases, chips, motifs (docs/bank.md).")
    ] = None,
    tune: Annotated[int, typer.Option("--tune", min=0, help="Evaluations to tune each pair with before.")] = 0,
    depth: Annotated[int, typer.Option("--depth", min=1, help="Removals behind one another.")] = 2,
    per_motif: Annotated[
        int, typer.Option("--per-motif", min=1, help="Places of one kernel at which each motif is taken out.")
    ] = 2,
    forward: Annotated[
        bool,
        typer.Option("--forward", help="Also put in what a pair lacks; where that is faster, it was the slow one."),
    ] = False,
    motif: Annotated[
        list[str], typer.Option("--motif", metavar="NAME", help="Only this motif (docs/motifs.md); repeatable.")
    ] = [],  # noqa: B006
    step: Annotated[
        list[str], typer.Option("--step", metavar="MOTIF:SITE", help="Only this removal; repeated: one after another.")
    ] = [],  # noqa: B006
    proposer: Annotated[
        str, typer.Option("--proposer", help="Who takes optimizations out and words them: rules or llm (docs/llm.md).")
    ] = "rules",
    resume: Annotated[bool, typer.Option("--resume", help="Go on with an interrupted build.")] = False,
    bank: To = None,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Take optimizations out of strong kernels, one at a time, measure, and add what each was worth to the bank.

    Without --case, the cases of the operator's op.toml are used. Ctrl-C keeps what was found; --resume goes on.
    """
    options.check_cache_folder()
    path, only = tuple(_step(text) for text in step), _motifs(motif)
    given = _planned(plan) if plan is not None else _named(ops or [], registry, case, how.chip)
    toolkit = find(how.target)
    console = Console(stderr=True, highlight=False)
    store, tally, stop = open_bank(bank), Tally(), "finished"

    def say(text: str) -> None:
        console.print(f"{text} ...", markup=False, soft_wrap=True)

    client = _client(proposer, how.seed, say)
    if client is not None and any(motifs for *_, motifs, _ in [*given, ("", "", only, None)]):
        raise SettingsError("a language model is not held to motifs.", "Leave out --motif, or take --proposer rules.")
    try:
        for (name, chip_name, planned), texts in _grouped(given).items():
            with open_evaluator(toolkit, chip_name, workers=how.workers, say=say) as evaluator:
                operator = find_operator(options.OperatorFlags(name))
                for text in texts or example_cases(operator):
                    subject = subject_of(operator, text, evaluator)
                    words, removal = (name, "--case", text, *_asking(client)), RewindOptions(depth, per_motif=per_motif)
                    unit = Unit(
                        operator, subject.case, chip_name, words, how.seed, tune, removal, path, forward,
                        motifs=only or planned,
                    )  # fmt: skip
                    roles = _roles(client, unit)
                    try:
                        for found in build(unit, store, toolkit, evaluator=evaluator, resume=resume, say=say, **roles):
                            tally.take(found)
                            console.print(_line(found, time_word(toolkit.target)), markup=False, soft_wrap=True)
                    except AscendOptError as error:  # the other units may do better
                        tally.failed.append(str(error))
                        say(str(error))
    except KeyboardInterrupt:
        stop = "interrupted"
    _summary(tally, stop, json)


def _client(proposer: str, seed: int, say: Callable[[str], None]) -> Client | None:
    """Asks the language model, if that is wanted.

    Raises:
        SettingsError: none is configured, or nobody is called so.
    """
    if proposer not in ("rules", "llm"):
        raise SettingsError(f"nobody called {proposer!r} takes optimizations out.", "Known ones: rules, llm.")
    endpoint = Endpoint.of(settings())
    if proposer == "llm" and endpoint is None:
        raise SettingsError("no language model is configured.", "Set ASCENDOPT_LLM_MODEL (docs/llm.md).")
    return Client(endpoint, seed=seed, say=say) if proposer == "llm" and endpoint is not None else None


def _asking(client: Client | None) -> tuple[str, ...]:
    return ("--proposer", "llm") if client is not None else ()


def _roles(client: Client | None, unit: Unit) -> dict[str, Any]:
    """Who takes optimizations out of the unit's pair, and who puts them into words."""
    if client is None:
        return {}
    from ..llm.roles import LlmDistiller, LlmRewind

    rewind = LlmRewind(client, unit.operator, unit.case, load_chip(unit.chip))
    return {"remover": rewind, "distiller": LlmDistiller(client)}


def _summary(tally: Tally, stop: str, json: bool) -> None:
    if json:
        print(json_text(tally.to_json(stop)))
    else:
        motifs = ", ".join(f"{name} {n}" for name, n in sorted(tally.motifs.items())) or "none"
        print(f"{stop}: {tally.added} experiences added, {tally.known} known before; motifs: {motifs}")
        print(f"removals that did no harm: {tally.negative}; refused by the gate: {sum(tally.refused.values())}")
    if stop == "interrupted":
        print("what was found is kept; the same command with --resume goes on.", file=sys.stderr)
        raise typer.Exit(failure.INTERRUPTED)
    if tally.failed:
        raise typer.Exit(1)


def _named(ops: Sequence[str], registry: bool, cases: Sequence[str], chip: str) -> Given:
    names = [*ops, *(operator_names() if registry else [])]
    if not names:
        raise OperatorError("no operator is given.", f"Name some of {', '.join(operator_names())}, or give --registry.")
    texts: Sequence[str | None] = cases or (None,)
    return [(name, chip, (), text) for name in dict.fromkeys(names) for text in texts]


def _planned(path: Path) -> Given:
    """A plan's rows. Raises CaseError when the file is no plan."""
    try:
        units = read_toml(path)["unit"]
        return [
            (u["op"], chip, _motifs(u.get("motifs", ())), case)
            for u in units
            for chip in u["chips"]
            for case in u["cases"]
        ]
    except (OSError, *MALFORMED) as error:
        raise CaseError(f"the plan {path} can't be read: {error!r}.", "docs/bank.md shows one.") from error


def _grouped(given: Given) -> dict[tuple[str, str, tuple[str, ...]], list[str]]:
    """Operator, chip, motifs -> texts of cases (none: those of op.toml): one evaluator serves them all."""
    out: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for name, chip, motifs, text in given:
        out.setdefault((name, chip, motifs), []).extend([text] if text is not None else [])
    return out


def subject_of(operator: Operator, text: str, evaluator: Evaluator) -> CommandSubject:
    """The case of ``--case``: tensors (``NAME=DTYPE[...]``) and attributes (``NAME=VALUE``), separated by blanks."""
    words = shlex.split(text)
    tensors = [w for w in words if "[" in w]
    attrs = [w for w in words if "[" not in w]
    return make_subject(operator, evaluator, options.CaseFlags(input=tensors, attr=attrs))


def example_cases(operator: Operator) -> list[str]:
    """The cases of an operator's ``op.toml`` as texts of ``--case``. Raises CaseError when there are none."""

    def value(v: object) -> str:
        return ",".join(map(str, v)) if isinstance(v, list) else str(v)

    def text(case: Mapping[str, Any]) -> str:
        attrs = [shlex.quote(f"{n}={value(v)}") for n, v in case.get("attrs", {}).items()]
        return " ".join([*(f"{n}={t}" for n, t in case["inputs"].items()), *attrs])

    found = [text(case) for case in operator.settings.get("case", [])]
    if not found:
        raise CaseError(f"no case is given for {operator.name}.", "Give one with --case.")
    return found


def _motifs(names: Sequence[str]) -> tuple[str, ...]:
    """The names, if all of them are motifs'. Raises CaseError for one that isn't."""
    known = [m.name for m in MOTIFS]
    for name in names:
        if name not in known:
            raise CaseError(f"there is no motif {name!r}.", f"Known ones: {', '.join(sorted(known))}.")
    return tuple(names)


def _step(text: str) -> tuple[str, str]:
    motif, colon, site = text.partition(":")
    if not colon:
        raise CaseError(f"--step {text!r} names no place.", "Write MOTIF:SITE, as `bank show` prints it.")
    return motif, site


def _line(found: Found, word: str) -> str:
    step, e = found.step, found.experience
    if step.before is None or step.after is None:
        reason = reason_of(step.outcome).partition("\n")[0][:100]
        text = f"refused ({type(step.outcome).__name__}: {reason})"
    else:
        slow, fast = step.before.task_duration_us, step.after.task_duration_us
        old, new = (slow, fast) if step.forward else (fast, slow)
        text = f"{old:.2f} -> {new:.2f} us {word} ({new / old:.2f}x as long)"
    mark = {"hurts": "*", "harmless": " "}.get(step.verdict, "!")
    known = "" if e is None or found.new else ", known"
    return (
        f"  {mark} {'with' if step.forward else 'without'} {step.removal.motif} at {step.removal.site}: {text}{known}"
    )
