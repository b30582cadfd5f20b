"""``ascendopt-tune silicon-check``: what the first owner of an NPU runs, and one bundle to send back."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ..calibrate import silicon
from ..nouns.run_options import RunOptions
from ..report.text import json_text
from . import options
from .flags import Only, grouped


@grouped
def silicon_check(
    how: Annotated[RunOptions, Only("target")],
    folder: Annotated[
        Path, typer.Option("--output", "-o", help="A folder for the results; the bundle is FOLDER.tar.gz.")
    ] = Path("silicon-check"),
    chip: Annotated[
        str | None, typer.Option("--chip", help="The chip whose facts are the device's. Default: the one of its name.")
    ] = None,
    reduced: Annotated[bool, typer.Option("--reduced", help="Little of everything, in minutes: to try it.")] = False,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Calibrate on the device at hand, time kernels and operators, tune one, and pack the results into one bundle.

    About half an hour on an NPU that nobody else uses; interrupted, the same command goes on. The bundle has times,
    chip file, logs and versions, no data of yours; nothing is sent anywhere. Exit code 1 when a step failed.
    """
    options.check_cache_folder()
    options.check_file(folder / "summary.md", "--output")

    def say(step: str) -> None:
        if not json:
            print(f"{step} ...", file=sys.stderr, flush=True)

    done = silicon.check(folder, how.target, chip, reduced=reduced, progress=say)
    archive = folder.with_name(f"{folder.name}.tar.gz")
    if json:
        print(json_text({"bundle": str(archive), "steps": {d.step.name: d.code for d in done}}))
    else:
        print(silicon.summary(done))
        print(f"{archive}: please send it back, with how the machine was used meanwhile")
    if any(d.code != 0 for d in done):
        raise typer.Exit(1)
