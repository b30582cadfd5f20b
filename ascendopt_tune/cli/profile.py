"""``ascendopt-tune profile``: what msprof measured of a kernel on a device, and what bounds it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from ..device import msprof
from ..evaluate.diagnosis import diagnose
from ..nouns.chip import load_chip
from ..nouns.run_options import RunOptions
from ..report.lines import print_lines
from ..report.text import json_text, print_profile, profile_table
from . import options
from .flags import Only, grouped

EXAMPLES = """[bold]Examples[/]

msprof op --aic-metrics=PipeUtilization --output=prof ./my_app && ascendopt-tune profile prof

ascendopt-tune profile PROF_000001/mindstudio_profiler_output --op RmsNorm --chip ascend910b3
"""


@grouped
def profile(
    how: Annotated[RunOptions, Only("chip")],
    path: Annotated[
        Path, typer.Argument(metavar="PATH", help="A folder that msprof wrote, or one of its CSV files.", dir_okay=True)
    ],
    op: Annotated[
        str | None,
        typer.Option("--op", help="The operator, where the files tell of several: its name or a part of it."),
    ] = None,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Show a profile that msprof took on a device: times, where they went, and what bounds the kernel.

    Read are OpBasicInfo.csv with PipeUtilization.csv (`msprof op`) and op_summary_*.csv (`msprof`).
    """
    model = load_chip(how.chip)
    found = msprof.read(path, op)
    if json:
        document = {
            "operator": found.operator,
            "chip": model.name,
            "target": "npu",
            "source": "msprof",
            "launches": found.launches,
            "clock_mhz": found.clock_mhz,
            "files": [str(file) for file in found.files],
            "profile": found.profile.to_json(),
            "diagnosis": diagnose(found.profile, model).paragraph,
        }
        print(json_text(document))
        return
    console = Console(highlight=False)
    middle = "" if found.launches == 1 else f", the one of middle duration of {found.launches} launches"
    print_lines(console, f"{found.operator} on a device{middle}, as msprof measured it")
    if found.slowed:
        print_lines(console, found.slowed)
    console.print(profile_table("npu", {found.operator: found.profile}))
    print_profile(console, "npu", found.profile, model)
