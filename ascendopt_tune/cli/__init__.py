"""The command line ``ascendopt-tune``: one file per command, errors as one paragraph and exit code 2."""

from __future__ import annotations

import ctypes
import os
import sys

import typer

from ..errors import AscendOptError
from . import (
    bank,
    bench,
    bench_mkb,
    cache,
    calibrate,
    doctor,
    dsl,
    explain,
    failure,
    fidelity,
    generate,
    llm_check,
    mkb,
    ops,
    prebuild,
    profile,
    run,
    silicon_check,
    toolkit,
    tune,
)

_EPILOG = (
    "Exit codes: 0 success; 1 the operator ran and failed the checks (or doctor found something that must be mended); "
    "2 an input or installation to correct, said in one paragraph; 130 interrupted. Settings: ASCENDOPT_* environment "
    "variables, listed in docs/settings.md."
)

app = typer.Typer(
    name="ascendopt-tune",
    help="Tune custom AscendC operators (host tiling program and device kernel) on an Ascend NPU or the virtual one.",
    epilog=_EPILOG,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
app.command("doctor")(doctor.doctor)
app.command("ops")(ops.ops)
app.command("run", epilog=run.EXAMPLES)(run.run)
app.command("tune", epilog=tune.EXAMPLES)(tune.tune)
app.command("profile", epilog=profile.EXAMPLES)(profile.profile)
app.command("explain", epilog=explain.EXAMPLES)(explain.explain)
app.command("generate", epilog=generate.EXAMPLES)(generate.generate)
app.command("prebuild", epilog=prebuild.EXAMPLES)(prebuild.prebuild_command)
app.add_typer(cache.app)
app.command("toolkit")(toolkit.toolkit)
app.add_typer(bank.app, name="bank")
app.add_typer(bench.app, name="bench")
bench.app.command("mkb", epilog=bench_mkb.EXAMPLES)(bench_mkb.mkb)
app.add_typer(dsl.app, name="dsl")
app.command("import", epilog=mkb.IMPORT_EXAMPLES)(mkb.import_)
app.command("export", epilog=mkb.EXPORT_EXAMPLES)(mkb.export)
app.command("llm-check", epilog=llm_check.EXAMPLES)(llm_check.llm_check)
app.command("calibrate", epilog=calibrate.EXAMPLES)(calibrate.calibrate_command)
app.command("silicon-check")(silicon_check.silicon_check)
app.command("fidelity", epilog=fidelity.EXAMPLES)(fidelity.fidelity)


def _keep_freed_memory() -> None:
    """Lets the C library keep the memory of large tensors for the next ones.

    Expected outputs of large cases are made of many tensors of the same size; getting fresh pages for each from the
    system takes longer than the arithmetic.
    """
    trim_threshold, mmap_max = -1, -4  # parameters of glibc's mallopt
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return  # another C library
    mallopt(mmap_max, 0)
    mallopt(trim_threshold, 2**31 - 1)


def main() -> None:
    """Entry point: exit code 2 for an error the user can mend, told in one paragraph."""
    # References need torch on the CPU only; loading torch_npu as well would cost seconds and a device.
    os.environ.setdefault("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")
    _keep_freed_memory()
    try:
        app()
    except (AscendOptError, OSError) as error:
        sys.exit(failure.tell(error, json="--json" in sys.argv, debug="--debug" in sys.argv))
