"""``ascendopt-tune calibrate``: a chip file from the device at hand."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from ..calibrate.calibration import Calibration, calibrate
from ..calibrate.fit import Residual
from ..calibrate.measure import Effort
from ..nouns.run_options import RunOptions
from ..report.text import json_text
from . import failure, options
from .flags import Only, grouped

Samples = Annotated[
    int | None,
    typer.Option("--samples", min=1, help="Of each microbenchmark. Default: 100, on the virtual NPU 2."),
]
Reduced = Annotated[bool, typer.Option("--reduced", help="A few microbenchmarks of each kind only, to try it.")]


@grouped
def calibrate_command(
    how: Annotated[RunOptions, Only("target")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The chip file to write; measurements are kept beside it.")
    ] = Path("calibrated.toml"),
    chip: Annotated[
        str | None,
        typer.Option("--chip", help="The chip whose facts are the device's. Default: the one of its name."),
    ] = None,
    samples: Samples = None,
    reduced: Reduced = False,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Time microbenchmarks on the device at hand and fit the constants of the virtual NPU's clock to them.

    Takes minutes, and wants the device to itself. What the microbenchmarks don't determine keeps its value and is said.
    """
    options.check_cache_folder()
    options.check_file(output, "--output")

    def say(text: str) -> None:
        if not json:
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)

    try:
        result = calibrate(
            output,
            target=how.target,
            chip=chip,
            effort=Effort(samples) if samples is not None else None,
            reduced=reduced,
            progress=say,
        )
    except KeyboardInterrupt:
        print("\ninterrupted; the same command goes on where this one was.", file=sys.stderr)
        raise typer.Exit(failure.INTERRUPTED) from None
    say("")
    if json:
        print(json_text(document(result, output)))
    else:
        show(result, output)


def document(result: Calibration, output: Path) -> dict[str, Any]:
    """The calibration as JSON."""
    nominal = result.nominal.constants
    return {
        "device": dict(result.session.device),
        "time": result.kind,
        "from": result.nominal.name,
        "chip_file": str(output),
        "determined": {
            key: {
                "nominal": nominal[key].value, "value": d.value, "low": d.low, "high": d.high,
                "standard_error_percent": 100 * d.error,
            }
            for key, d in result.fit.determined.items()
        },
        "not_determined": dict(result.fit.undetermined),
        "residuals": [_row(r) for r in result.fit.residuals],
        "held_out": [_row(r) for r in result.held],
    }  # fmt: skip


def _row(r: Residual) -> dict[str, Any]:
    return {"name": r.name, "measured_us": r.measured_us, "fitted_us": r.modelled_us, "percent": r.percent}


def show(result: Calibration, output: Path) -> None:
    """The calibration as a table, and what to do with it."""
    device = result.session.device
    out = Table("constant", title=f"{device['soc']} ({device['target']}), from {result.nominal.name}")
    for column in ("nominal", "fitted", "low", "high", "error %"):
        out.add_column(column, justify="right")
    for key, d in result.fit.determined.items():
        nominal = result.nominal.constants[key].value
        numbers = (nominal, d.value, d.low, d.high)
        out.add_row(key, *(f"{v:.4g}" for v in numbers), f"{100 * d.error:.2g}")
    console = Console(width=110)
    console.print(out)
    for key, why in result.fit.undetermined.items():
        print(f"not determined: {key}: {why}")
    print(
        f"the fitted clock is off by {result.median_percent():.2g} % (median) on "
        f"{len(result.fit.residuals)} {result.kind} microbenchmarks; most on "
        + ", ".join(f"{r.name} ({r.percent:+.1f} %)" for r in result.worst())
    )
    for r in result.held:
        print(f"held out of the fit: {r.name}: {r.measured_us:.4g} us {result.kind}, fitted clock {r.percent:+.1f} %")
    print(f"{output}: to be used with --chip {output}")
