"""The offline roles: template synthesis (Stage I), rewind and distillation (Stage II).

Rewind and distillation are plain callables of the bank's types (``Remover``, ``Distiller``), beside those of the rules.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from ..bank.distill import Evidence, Texts, by_rules, diff
from ..bank.rewind import Removal
from ..bank.symptoms import symptoms
from ..nouns.case import Case
from ..nouns.chip import Chip
from ..nouns.operator import Operator, Pair
from ..search.kernel.motifs import MOTIFS
from ..search.tiling.marked import marks
from ..search.tiling.slice import Template, synthesize
from . import facts
from .client import Asks
from .dialogue import converse
from .listings import deciding_lines, listing, of_the_launch, tiling_first
from .prompts import make_prompt
from .replies import ProposedChange, ReplyError, has_blocks, passed, plain, read_change, read_fields, read_json

_LISTED = 60  # places of a template that are shown
_RAISED, _LOWERED = 2.0, 0.25  # factors on a site's rank
_NOTE, _NOTES = 200, 12
_REMOVALS = 3  # proposals for one kernel
_TITLE, _TEXT = 80, 900  # characters


@dataclass(frozen=True)
class Refinement:
    """What a model adds to a template: ids of sites that matter more or less than the rules think, and remarks.

    Ids stay the same while other sites are edited, so that one refinement serves all descendants of a program.
    ``marked``: the files of the tiling program with marks at further places (search/tiling/marked.py), if there are
    any; ``knobs``: what is marked.
    """

    raised: frozenset[str] = frozenset()
    lowered: frozenset[str] = frozenset()
    notes: str = ""
    marked: Mapping[str, str] = field(default_factory=dict)
    knobs: tuple[str, ...] = ()

    def apply(self, template: Template) -> Template:
        """The template with the sites' ranks changed, best first."""
        if not self.raised and not self.lowered:
            return template

        def factor(site_id: str) -> float:
            return _RAISED if site_id in self.raised else _LOWERED if site_id in self.lowered else 1.0

        sites = [replace(s, rank=round(s.rank * factor(s.id), 4)) for s in template.sites]
        return replace(template, sites=tuple(sorted(sites, key=lambda s: -s.rank)))


SameLaunch = Callable[[Mapping[str, str]], bool]  # whether a tiling program decides what the pair's decides


def refine_template(
    client: Asks, operator: Operator, pair: Pair, case: Case | None = None, chip: Chip | None = None,
    same_launch: SameLaunch | None = None,
) -> Refinement:  # fmt: skip
    """What the offline model says about the evolvable region of the pair's tiling program; empty without answer.

    ``case`` and ``chip``: what it is about, where that is known. With ``same_launch`` it may mark further places, too.
    """
    files = pair.tiling
    template = synthesize(files)
    code = listing(of_the_launch(files), tiling_first(files), facts.CODE)
    numbered = list(template.sites[:_LISTED])
    if not numbered:
        return Refinement()
    prompt = make_prompt(
        "template",
        operator=operator.name,
        case=str(case) if case is not None else "",
        code=code,
        other=listing(pair.kernel, facts.kernel_first(operator), facts.CONTEXT, deciding_lines(pair.kernel)),
        **({"chip": facts.chip_facts(chip)} if chip is not None else {}),
        sites=[
            f"{i}. {s.path} {s.function}: {s.name} = `{facts.shortened(s.text, 60)}` ({s.purpose})"
            for i, s in enumerate(numbered)
        ],
        marks=same_launch is not None,
    )

    def read(reply: str) -> Refinement:
        if passed(reply) is not None:
            return Refinement()
        document = read_json(reply)

        def chosen(name: str) -> frozenset[str]:
            numbers = document.get(name, [])
            if not isinstance(numbers, list) or not all(isinstance(n, int) and 0 <= n < len(numbered) for n in numbers):
                raise ReplyError(f'"{name}" must be a list of numbers of the list.')
            return frozenset(numbered[n].id for n in numbers)

        notes = document.get("notes", [])
        if not isinstance(notes, list):
            raise ReplyError('"notes" must be a list of texts.')
        lines = [plain(str(note), _NOTE) for note in notes[:_NOTES]]
        told = "\n".join(line for line in lines if line)
        marked, knobs = dict[str, str](), list[str]()
        if same_launch is not None and has_blocks(reply):
            offered = {f.path: files[f.path] for f in code}
            change = read_change(reply, offered, frozenset(f.path for f in code if f.cut))
            marked = {**files, **change.files}
            knobs = _checked_marks(marked, same_launch)
        return Refinement(chosen("important"), chosen("unimportant"), told, marked, tuple(knobs))

    (found,) = converse(client, [prompt], [read], offline=True)
    return found or Refinement()


def _checked_marks(files: Mapping[str, str], same_launch: SameLaunch) -> list[str]:
    """Names of what a marked program marks. Raises ReplyError if it is no template of the baseline."""
    knobs, lost = marks(synthesize(files))
    if lost:
        raise ReplyError(
            f"`{plain(lost[0], 120)}` has a mark, and by the data flow no number of that line decides block dim, "
            "tiling key, tiling data or workspace. Mark a constant that is used where they are computed."
        )
    if not knobs:
        raise ReplyError("The changed program has no mark: write `// knob: ` and other values behind a constant.")
    if not same_launch(files):
        raise ReplyError(
            "With the numbers as they are written, the marked program doesn't compile, or decides something else "
            "than the original does for this case. It has to lead to the same block dim, tiling key, tiling data "
            "and workspace."
        )
    return knobs


class LlmRewind:
    """A ``Remover``: optimizations that the offline model takes out of a kernel, one a question, up to ``count``."""

    def __init__(self, client: Asks, operator: Operator, case: Case, chip: Chip, count: int = _REMOVALS) -> None:
        self._client, self._operator, self._case, self._chip, self._count = client, operator, case, chip, count

    def __call__(self, pair: Pair) -> Iterator[Removal]:
        code = listing(pair.kernel, facts.kernel_first(self._operator), facts.CODE)
        files = {f.path: pair.kernel[f.path] for f in code}
        cut = frozenset(f.path for f in code if f.cut)
        removed: list[str] = []
        for _ in range(self._count):
            prompt = make_prompt(
                "rewind",
                chip=facts.chip_facts(self._chip),
                files=list(files),
                operator=self._operator.name,
                signature="",
                case=str(self._case),
                checks=facts.checks(self._operator, self._case),
                sync=facts.synchronization(self._operator),
                code=code,
                other=listing(pair.tiling, tiling_first(pair.tiling), facts.CONTEXT),
                motifs=[f"{m.name}: {m.title}" for m in MOTIFS],
                removed=removed,
            )

            def read(reply: str) -> tuple[str, str, ProposedChange]:
                motif = _slug(read_fields(reply, ("MOTIF",))["motif"])
                if not motif:
                    return "", "", ProposedChange({}, "")
                site = plain(read_fields(reply, ("SITE",))["site"], _TITLE)
                change = read_change(reply, files, cut)
                if change.title in removed:
                    raise ReplyError("This was proposed already: take out something else, or answer `MOTIF: none`.")
                return motif, site, change

            (found,) = converse(self._client, [prompt], [read], offline=True)
            if found is None or not found[0]:
                return
            motif, site, change = found
            removed.append(change.title)
            yield Removal(motif, site, change.title, replace(pair, kernel={**pair.kernel, **change.files}))


class LlmDistiller:
    """A ``Distiller``: the offline model puts a measured step into words; without an answer the rules' words serve."""

    def __init__(self, client: Asks) -> None:
        self._client = client

    def __call__(self, evidence: Evidence) -> Texts:
        step = evidence.step
        assert step.before is not None
        if step.after is None:  # the gate refused the fast kernel: there is nothing to explain
            return by_rules(evidence)
        shown = symptoms(step.before, evidence.chip, evidence.slow)
        prompt = make_prompt(
            "distill",
            chip=facts.chip_facts(evidence.chip),
            case=str(evidence.case),
            change=step.removal.change,
            diff=facts.shortened(diff(step.slow, step.fast), facts.CONTEXT),
            before=facts.profile_facts(step.before, evidence.chip),
            after=facts.profile_facts(step.after, evidence.chip),
        )

        def read(reply: str) -> Texts:
            found = read_fields(reply, ("TITLE", "DESCRIPTION", "BOTTLENECK", "PRECONDITIONS"))
            title = plain(found["title"], _TITLE)
            if title.lower() in found["bottleneck"].lower():
                raise ReplyError("BOTTLENECK names the optimization: say what the slow kernel shows, not what helps.")
            # The symptoms come along: a search asks with the same words.
            return Texts(
                title=title,
                description=plain(found["description"], _TEXT),
                bottleneck=f"{plain(found['bottleneck'], _TEXT)} {shown}",
                preconditions=plain(found["preconditions"], _TEXT),
            )

        (texts,) = converse(self._client, [prompt], [read], offline=True)
        return texts or self._by_rules(evidence, shown)

    def _by_rules(self, evidence: Evidence, shown: str) -> Texts:
        try:
            return by_rules(evidence)
        except KeyError:  # a removal of a model's own
            change = evidence.step.removal.change
            return Texts(change[:_TITLE], f"The opposite of: {change}.", shown, "Not told.")


def _slug(name: str) -> str:
    """A motif's name: one of the rules' where it is meant, else ``llm-`` and the model's words; empty: no motif."""
    words = re.sub(r"[^a-z0-9]+", "-", name.split(":")[0].lower()).strip("-")[:40]
    if words in ("none", "nothing", ""):
        return ""
    return words if any(m.name == words for m in MOTIFS) else f"llm-{words}"
