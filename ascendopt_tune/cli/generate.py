"""``ascendopt-tune generate``: from a torch module to an operator folder."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import CaseError, SettingsError
from ..nouns.run_options import MODEL, RunOptions
from ..report.text import json_text
from ..settings import settings
from . import options
from .flags import Only, grouped

if TYPE_CHECKING:
    from ..generator import Author
    from ..llm.client import Client

EXAMPLES = """[bold]Examples[/]

ascendopt-tune generate my_module.py --out my_op

ascendopt-tune generate my_module.py --text

ascendopt-tune generate my_module.py --out my_op --llm --llm-model my-model --max-money 0.50

ascendopt-tune run my_op
"""


@grouped
def generate(
    how: Annotated[RunOptions, Only("chip", "seed", "llm_model", "llm_base_url", "max_tokens", "max_money")],
    module: Annotated[
        Path, typer.Argument(help="A file with Model, get_inputs() and get_init_inputs().", metavar="MODULE.py")
    ],
    out: Annotated[
        Path | None, typer.Option("--out", help="The operator's folder; it may not exist, or be empty.")
    ] = None,
    text: Annotated[bool, typer.Option("--text", help="Print the program in the tile language.")] = False,
    llm: Annotated[
        bool,
        typer.Option("--llm", help="Where no rule fits, a language model writes the program.", rich_help_panel=MODEL),
    ] = False,
    repairs: Annotated[
        int, typer.Option("--repairs", min=0, help="How often it is told what failed.", rich_help_panel=MODEL)
    ] = 4,
    improvements: Annotated[
        int,
        typer.Option(
            "--improvements", min=0, help="How often it gets a right program's diagnosis.", rich_help_panel=MODEL
        ),
    ] = 1,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Make an operator of a torch module, by rules: its program in the tile language, interpreted beside the module at
    small shapes, and lowered to a folder that run and tune take. The program is kept in the folder, to be edited.

    With --llm, a language model writes the program of a module that no rule fits; the gate judges it.
    """
    from ..generator import generate_file

    if out is not None and out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise CaseError(f"{out} exists and isn't empty.", "Name a new folder.")
    if out is None and not (text or json):
        raise CaseError("there is nothing to do.", "Name a folder by --out, or print the program by --text.")
    with _author(how, repairs, improvements) if llm else nullcontext((None, None)) as (author, client):
        generated = generate_file(module, author=author)
        counts = client.counts.to_json() if client is not None and generated.attempts else {}
    files = list(generated.write(out).files) if out is not None else []
    if json:
        document = {
            "name": generated.name,
            "schedule": generated.schedule,
            "checked": list(generated.checked),
            "domains": {n: dict(d) for n, d in generated.domains.items()},
            "folder": str(out) if out is not None else None,
            "program": generated.text,
            "attempts": [asdict(a) for a in generated.attempts],
            "llm": counts,
        }
        print(json_text(document))
        return
    if text:
        print(generated.text, end="")
    for number, a in enumerate(generated.attempts, 1):
        came = f"{a.failed}: {a.message}" if a.failed else f"passed, {a.time_us or 0:.2f} us modelled"
        print(f"program {number} ({a.role}): {came}", file=sys.stderr)
    shapes = "; ".join(generated.checked) or "none, they are too large to interpret"
    print(f"{generated.name}: schedule {generated.schedule}. Agrees with the module at {shapes}.", file=sys.stderr)
    if out is not None:
        print(f"{out}: {', '.join([*files, generated.kept])}")
        print(f"Next: ascendopt-tune run {out}", file=sys.stderr)


@contextmanager
def _author(how: RunOptions, repairs: int, improvements: int) -> Iterator[tuple[Author, Client]]:
    """The configured model as an author, with a gate, and its client.

    Raises:
        SettingsError: no model is configured.
    """
    from ..build.toolkit import find
    from ..evaluate.evaluator import Evaluator
    from ..generator import Author
    from ..llm.client import Client
    from ..llm.endpoint import Endpoint
    from ..nouns.chip import load_chip

    endpoint = Endpoint.of(settings(), model=how.llm_model, base_url=how.llm_base_url)
    if endpoint is None:
        raise SettingsError(
            "--llm needs a language model, and none is configured.",
            "Set ASCENDOPT_LLM_MODEL and ASCENDOPT_LLM_BASE_URL or ASCENDOPT_LLM_API_KEY (docs/llm.md), then try "
            "`ascendopt-tune llm-check`.",
        )
    bounded = replace(endpoint, max_tokens=how.max_tokens, max_money=how.max_money)
    client = Client(bounded, seed=how.seed, say=lambda text: print(text, file=sys.stderr))
    try:
        with Evaluator(find("virtual"), how.chip) as evaluator:
            yield Author(client, load_chip(how.chip), evaluator, repairs, improvements), client
    finally:
        client.close()
