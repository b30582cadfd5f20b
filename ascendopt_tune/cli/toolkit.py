"""``ascendopt-tune toolkit``: where the toolkit is that kernels and host programs are compiled against."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ..build.toolkit import build_for_others, virtual
from ..errors import SettingsError
from ..report.text import json_text
from . import options


def toolkit(
    prefix: Annotated[bool, typer.Option("--prefix", help="Print the root folder and nothing else.")] = False,
    build: Annotated[
        bool, typer.Option("--build", help="Build one for other machines of this kind into the folder of --out.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FOLDER", help="With --build: a new folder for it.")
    ] = None,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Build the virtual NPU's toolkit if needed and tell where it is (include/ and lib64/, laid out as CANN's)."""
    if build != (out is not None):
        raise SettingsError("--build and --out go together.", "ascendopt-tune toolkit --build --out FOLDER")
    if out is not None:
        _build(out, json)
        return
    found = virtual()
    if json:
        print(json_text({"kind": found.kind, "prefix": str(found.prefix), "version": found.version}))
    elif prefix:
        print(found.prefix)
    else:
        print(f"virtual toolkit {found.version}\n  include: {found.include}\n  lib64:   {found.lib64}")
        print("compile a host program with:")
        print(f"  g++ main.cpp -I{found.include} -L{found.lib64} -Wl,-rpath,{found.lib64} -lascendcl -lacl_rtc")


def _build(out: Path, json: bool) -> None:
    about = build_for_others(out.resolve(), lambda text: print(text, file=sys.stderr, flush=True))
    if json:
        print(json_text({"folder": str(out), **asdict(about)}))
        return
    print(f"virtual toolkit {about.version} in {out}")
    print(f"  for {about.machine} from {about.march} on, with {about.compiler} and {about.libc} or newer")
    print(f"  there: ASCENDOPT_TOOLKIT_BUILT={out}; or build a wheel with it (docs/machines.md)")
