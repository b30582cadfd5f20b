"""The command line ``ascendopt-tune``: one file per command, errors as one paragraph and exit code 2."""

from __future__ import annotations

import os
import sys
import traceback

import typer

from ..errors import AscendOptError
from . import doctor, ops, run, toolkit, tune

app = typer.Typer(
    name="ascendopt-tune",
    help="Tune custom AscendC operators: host tiling program and device kernel, on an Ascend NPU or the virtual one.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("doctor")(doctor.doctor)
app.command("ops")(ops.ops)
app.command("run")(run.run)
app.command("tune")(tune.tune)
app.command("toolkit")(toolkit.toolkit)


def main() -> None:
    """Entry point: exit code 0 on success, 2 for an error the user can mend."""
    # References need torch on the CPU only; loading torch_npu as well would cost seconds and a device.
    os.environ.setdefault("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")
    debug = "--debug" in sys.argv
    if debug:
        sys.argv.remove("--debug")
    try:
        app()
    except AscendOptError as e:
        if debug:
            traceback.print_exc()
        log = getattr(e, "log", "")
        print(f"error: {e}" + (f"\n{log.rstrip()}" if log and log not in str(e) else ""), file=sys.stderr)
        sys.exit(2)
