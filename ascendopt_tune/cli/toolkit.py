"""``ascendopt-tune toolkit``: where the toolkit is that kernels and host programs are compiled against."""

from __future__ import annotations

from typing import Annotated

import typer

from ..build.toolkit import virtual
from . import options


def toolkit(
    prefix: Annotated[bool, typer.Option("--prefix", help="Print the virtual toolkit's root and nothing else.")] = False,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Build the virtual toolkit if needed and tell where it is (include/ and lib64/, laid out as CANN's)."""
    found = virtual()
    if json:
        options.print_json({"kind": found.kind, "prefix": str(found.prefix), "version": found.version})
    elif prefix:
        print(found.prefix)
    else:
        print(f"virtual toolkit {found.version}\n  include: {found.include}\n  lib64:   {found.lib64}")
        print(f"compile a host program with: g++ main.cpp -I{found.include} -L{found.lib64} -lascendcl -lacl_rtc "
              f"-Wl,-rpath,{found.lib64}")  # fmt: skip
