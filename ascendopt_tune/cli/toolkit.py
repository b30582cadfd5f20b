"""``ascendopt-tune toolkit``: where the toolkit is that kernels and host programs are compiled against."""

from __future__ import annotations

from typing import Annotated

import typer

from ..build.toolkit import virtual
from ..report.text import json_text
from . import options


def toolkit(
    prefix: Annotated[bool, typer.Option("--prefix", help="Print the root folder and nothing else.")] = False,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Build the virtual NPU's toolkit if needed and tell where it is (include/ and lib64/, laid out as CANN's)."""
    found = virtual()
    if json:
        print(json_text({"kind": found.kind, "prefix": str(found.prefix), "version": found.version}))
    elif prefix:
        print(found.prefix)
    else:
        print(f"virtual toolkit {found.version}\n  include: {found.include}\n  lib64:   {found.lib64}")
        print("compile a host program with:")
        print(f"  g++ main.cpp -I{found.include} -L{found.lib64} -Wl,-rpath,{found.lib64} -lascendcl -lacl_rtc")
