"""``ascendopt-tune generate``: from a torch module to an operator folder."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ..errors import CaseError
from ..report.text import json_text
from . import options

EXAMPLES = """[bold]Examples[/]

ascendopt-tune generate my_module.py --out my_op

ascendopt-tune generate my_module.py --text

ascendopt-tune run my_op
"""


def generate(
    module: Annotated[
        Path, typer.Argument(help="A file with Model, get_inputs() and get_init_inputs().", metavar="MODULE.py")
    ],
    out: Annotated[
        Path | None, typer.Option("--out", help="The operator's folder; it may not exist, or be empty.")
    ] = None,
    text: Annotated[bool, typer.Option("--text", help="Print the program in the tile language.")] = False,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Make an operator of a torch module, by rules: its program in the tile language, interpreted beside the module at
    small shapes, and lowered to a folder that run and tune take. The program is kept in the folder, to be edited.
    """
    from ..generator import generate_file

    if out is not None and out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise CaseError(f"{out} exists and isn't empty.", "Name a new folder.")
    if out is None and not (text or json):
        raise CaseError("there is nothing to do.", "Name a folder by --out, or print the program by --text.")
    generated = generate_file(module)
    files = list(generated.write(out).files) if out is not None else []
    if json:
        document = {
            "name": generated.name,
            "schedule": generated.schedule,
            "checked": list(generated.checked),
            "domains": {n: dict(d) for n, d in generated.domains.items()},
            "folder": str(out) if out is not None else None,
            "program": generated.text,
        }
        print(json_text(document))
        return
    if text:
        print(generated.text, end="")
    shapes = "; ".join(generated.checked) or "none, they are too large to interpret"
    print(f"{generated.name}: schedule {generated.schedule}. Agrees with the module at {shapes}.", file=sys.stderr)
    if out is not None:
        print(f"{out}: {', '.join([*files, generated.kept])}")
        print(f"Next: ascendopt-tune run {out}", file=sys.stderr)
