"""The offline roles: template synthesis (Stage I), rewind and distillation (Stage II)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..operator import Operator
from ..search.slice import Template
from . import facts
from .client import Client
from .dialogue import converse
from .prompts import make_prompt
from .replies import ReplyError, plain, read_json

_LISTED = 60  # places of a template that are shown
_RAISED, _LOWERED = 2.0, 0.25  # factors on a site's rank
_NOTE, _NOTES = 200, 12


@dataclass(frozen=True)
class Refinement:
    """What a model adds to a template: ids of sites that matter more or less than the rules think, and remarks.

    Ids stay the same while other sites are edited, so that one refinement serves all descendants of a program.
    """

    raised: frozenset[str] = frozenset()
    lowered: frozenset[str] = frozenset()
    notes: str = ""

    def apply(self, template: Template) -> Template:
        """The template with the sites' ranks changed, best first."""

        def factor(site_id: str) -> float:
            return _RAISED if site_id in self.raised else _LOWERED if site_id in self.lowered else 1.0

        sites = [replace(s, rank=round(s.rank * factor(s.id), 4)) for s in template.sites]
        return replace(template, sites=tuple(sorted(sites, key=lambda s: (-s.rank, s.path, s.start))))


def refine_template(client: Client, operator: Operator, template: Template) -> Refinement:
    """What the offline model says about the evolvable region of the baseline's tiling program; empty without answer."""
    files = operator.baseline.tiling
    code = facts.listing(files, facts.tiling_first(files), facts.CODE)
    numbered = list(template.sites[:_LISTED])
    if not numbered:
        return Refinement()
    prompt = make_prompt(
        "template",
        operator=operator.name,
        code=code,
        other=facts.listing(operator.baseline.kernel, facts.kernel_first(operator), facts.CONTEXT),
        sites=[
            f"{i}. {s.path} {s.function}: {s.name} = `{facts.shortened(s.text, 60)}` ({s.role})"
            for i, s in enumerate(numbered)
        ],
    )

    def read(reply: str) -> Refinement:
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
        return Refinement(chosen("important"), chosen("unimportant"), "\n".join(line for line in lines if line))

    (found,) = converse(client, [prompt], [read], offline=True)
    return found or Refinement()
