"""``ascendopt-tune report``: the page of what another command has left."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from ..errors import CacheError, CaseError
from ..report import named
from ..report.text import json_text
from ..store.cache import Cache
from . import options
from .cache import one_result
from .fidelity import modelled_and_measured

EXAMPLES = """[bold]Examples[/]

ascendopt-tune tune rms_norm --record run.json && ascendopt-tune report run.json -o run.html

ascendopt-tune report 3a7bd3e2 -o result.html

ascendopt-tune report path/to/bench/results --fidelity -o suite.html

ascendopt-tune prebuild manifest.toml -o bundle/ --record prebuild.json && ascendopt-tune report prebuild.json
"""
_FIDELITY = "ascendopt-tune fidelity --plot fidelity.html makes one of its own."
_KEY = re.compile(r"[0-9a-f]{4,64}")


def report(
    source: Annotated[
        str,
        typer.Argument(
            metavar="RUN|KEY|BENCH|WARMUP|PREBUILD",
            help="A record of tune, prebuild or a warm-up (JSON); the first digits of a result's key (cache list); or "
            "the folder of bench results.",
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="The page. Default: beside the record; of a key OPERATOR-KEY.html, here."),
    ] = None,
    fidelity: Annotated[
        bool,
        typer.Option("--fidelity", help="Of a benchmark: with modelled against measured times; about a minute."),
    ] = False,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Draw the page of what a command has left: one HTML file, which needs no network.

    That is a run, a result of the cache, a benchmark, a warm-up or a prebuild.
    """
    path = Path(source)
    if not path.exists() and _KEY.fullmatch(source):
        found = named.of_result(one_result(Cache(), source))
    else:
        found = named.of_path(path)
    out = output or found.default
    options.check_file(out, "-o")
    if fidelity and found.kind != "bench":
        raise CaseError(f"{source} is no benchmark: a page of a {found.kind} has no --fidelity.", _FIDELITY)
    try:
        if fidelity:
            from ..report.suite import write_suite

            write_suite(out, found.default.parent, modelled_and_measured())
        else:
            found.write(out)
    except OSError as error:
        raise CacheError(f"{out} can't be written: {error.strerror or error}.", "Name another -o.") from error
    print(json_text({"kind": found.kind, "page": str(out)}) if json else f"page of a {found.kind}: {out}")
