"""``ascendopt-tune explain``: the evolvable region of an operator's tiling program."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table

from ..errors import LlmError, OperatorError, SettingsError
from ..llm.client import Client
from ..llm.endpoint import Endpoint
from ..llm.roles import Refinement, refine_template
from ..nouns.chip import load_chip
from ..nouns.operator import Operator
from ..nouns.run_options import RunOptions
from ..report.lines import print_lines
from ..report.region import MarkedSite, elsewhere, marked_sites, marked_text
from ..report.text import counted, json_text
from ..search.tiling.context import Context, CubeCores, ProductShape, keys_of
from ..search.tiling.rules import mutations
from ..search.tiling.slice import Template, synthesize
from ..settings import settings
from . import options
from .flags import Only, grouped
from .subject import find_operator

EXAMPLES = """[bold]Examples[/]

ascendopt-tune explain rms_norm

ascendopt-tune explain path/to/my_op --all --marked

ascendopt-tune explain softmax --json > region.json
"""
_SHOWN = 16  # sites, unless --all
_AROUND = 1  # lines shown around a marked one


@grouped
def explain(
    how: Annotated[RunOptions, Only("chip")],
    op: options.Op = None,
    everything: Annotated[bool, typer.Option("--all", help=f"Every site; otherwise the worthiest {_SHOWN}.")] = False,
    llm: Annotated[
        bool, typer.Option("--llm", help="A language model says which sites matter, too (docs/llm.md).")
    ] = False,
    marked: Annotated[bool, typer.Option("--marked", help="Print the whole program with its markers.")] = False,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Show what Stage I may change in an operator's tiling program: where, what it is, why, and by which rules.

    The region is found by following block dim, tiling key, tiling data and workspace back through the program. Values
    that rules would write depend on the case; here they are for three float16 tensors of a million elements.
    """
    operator = find_operator(options.OperatorFlags(op))
    template = synthesize(operator.baseline.tiling)
    if not template.sites:
        raise OperatorError(
            f"no evolvable region was found in the tiling program of {operator.name}.",
            "It has to set a block dim, a tiling key, tiling data or a workspace (docs/search.md).",
        )
    refinement = _refined(operator) if llm else Refinement()
    template = refinement.apply(template)
    context = _context(operator, how.chip)
    known = mutations(template, context)
    sites = marked_sites(template, known)
    shown = sites if everything else sites[:_SHOWN]
    if json:
        document = _document(operator, template, sites, elsewhere(sites, known))
        print(json_text({**document, "notes": refinement.notes.splitlines()}))
        return
    console = Console(highlight=False)
    files = len({m.site.path for m in sites})
    console.print(f"{operator.name}: {counted(len(sites), 'site')} in {counted(files, 'file')}", markup=False)
    for path, text in sorted(marked_text(template, sites if marked else shown).items()):
        _print_program(console, path, text, whole=marked)
    console.print(_table(shown))
    for family, changes in elsewhere(sites, known).items():
        more = f" and {len(changes) - 1} more" if len(changes) > 1 else ""
        print_lines(console, f"{family}: {changes[0]}{more}")
    for note in refinement.notes.splitlines():
        print_lines(console, f"the model's note: {note}")
    if len(shown) < len(sites):
        console.print(f"{len(sites) - len(shown)} more sites of less worth: --all shows them")


def _refined(operator: Operator) -> Refinement:
    """What the configured model says about the region, as Stage I would be told.

    Raises:
        SettingsError: no model is configured.
        LlmError: it gives no usable answer.
    """
    endpoint = Endpoint.of(settings())
    if endpoint is None:
        raise SettingsError("no language model is configured.", "Set ASCENDOPT_LLM_MODEL (docs/llm.md).")
    client = Client(endpoint)
    found = refine_template(client, operator, operator.baseline)
    client.close()
    if found == Refinement():
        raise LlmError(
            client.given_up or f"{endpoint.model_offline} gave no answer about {operator.name} that can be used.",
            "`ascendopt-tune llm-check` tells whether it answers at all.",
        )
    return found


def _context(operator: Operator, chip: str) -> Context:
    values = load_chip(chip).values
    cores = int(values["core.aiv"])
    return Context(
        cores=cores,
        ub_bytes=int(values["memory.ub_bytes"]),
        element_bytes=2,
        tensors=3,
        elements_per_core=-(-(1 << 20) // cores),
        even_cores=(),
        tiling_keys=keys_of(operator.baseline.kernel),
        product=ProductShape(1, 1024, 1024, 1024),
        cube=CubeCores.of(values),
    )


def _document(
    operator: Operator, template: Template, sites: list[MarkedSite], others: dict[str, list[str]]
) -> dict[str, Any]:
    sinks = [{"kind": s.kind, "name": s.name, "function": s.function.name, "path": s.path} for s in template.flow.sinks]
    return {
        "operator": operator.name,
        "sinks": sinks,
        "sites": [m.to_json() for m in sites],
        "elsewhere": others,
        "template": marked_text(template, sites),
    }


def _print_program(console: Console, path: str, text: str, *, whole: bool) -> None:
    """The marked text, or its marked lines with a little around them."""
    console.rule(path, align="left")
    if whole:
        console.print(Syntax(text, "cpp", line_numbers=True, word_wrap=True, background_color="default"))
        return
    lines = text.splitlines()
    near = {
        n
        for i, line in enumerate(lines)
        if "/*<" in line or ">*/" in line
        for n in range(max(0, i - _AROUND), min(len(lines), i + _AROUND + 1))
    }
    last = -1
    for n in sorted(near):
        if n > last + 1:
            console.print("   ...")
        console.print(f"{n + 1:4d} {lines[n]}", markup=False, soft_wrap=True)
        last = n


def _table(sites: list[MarkedSite]) -> Table:
    table = Table("#", "role", "where", "what", "why", "rules", show_lines=False)
    for m in sites:
        s = m.site
        what = " ".join(s.text.split())
        where = f"{Path(s.path).name}:{m.line} {s.function}"
        table.add_row(str(m.number), s.purpose, where, what[:60], m.why, ", ".join(m.families))
    return table
