"""``ascendopt-tune dsl``: check, run and lower a program of the tile language."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from ..dsl import interpret, launch_of, read_file
from ..dsl.ir import Number, Program
from ..dsl.lower import lower, write_project
from ..errors import CaseError
from ..nouns.case import TensorSpec
from ..nouns.run_options import RunOptions
from ..report.text import json_text
from ..sources import arguments
from . import options
from .flags import Only, grouped

app = typer.Typer(
    help="Programs of the tile language (docs/dsl.md): check them, run them on numpy, lower them to an operator.",
    no_args_is_help=True,
    add_completion=False,
)

File = Annotated[Path, typer.Argument(help="The file with the program.", metavar="FILE.py")]
Name = Annotated[str | None, typer.Option("--name", help="The host function, where the file has several.")]
Input = Annotated[
    list[str], typer.Option("--input", metavar="NAME=DTYPE[SHAPE]", help="An input: 'x=float32[64,512]'; repeatable.")
]
Attr = Annotated[list[str], typer.Option("--attr", metavar="NAME=VALUE", help="An attribute; repeatable.")]

EXAMPLES = """[bold]Examples[/]

ascendopt-tune dsl check scale.py --input x=float32\\[8,1000]

ascendopt-tune dsl run scale.py --input x=float32\\[8,1000] --outputs y.npz

ascendopt-tune dsl lower scale.py --out my_op --input x=float32\\[8,1000]
"""


@app.command("check", epilog=EXAMPLES)
def check(
    file: File,
    name: Name = None,
    input: Input = [],  # noqa: B006
    attr: Attr = [],  # noqa: B006
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Read a program; with inputs also tell its cores and its Unified Buffer at these shapes. Runs nothing."""
    program = read_file(file, name)
    document: dict[str, object] = {
        "program": program.host.name,
        "inputs": [t.name for t in program.of_kind("input")],
        "outputs": [t.name for t in program.of_kind("output")],
        "attributes": {a.name: a.default for a in program.host.attributes.values()},
    }
    if input:
        shapes = {n: s.shape for n, s in _inputs(program, input).items()}
        launch = launch_of(program, shapes, _attributes(attr))
        document |= {"cores": launch.cores, "ub_bytes": launch.ub_bytes, "shapes": launch.shapes}
    if json:
        print(json_text(document))
        return
    print(f"{program.host.name}: reads {', '.join(map(str, document['inputs']))}; "  # type: ignore[call-overload]
          f"writes {', '.join(t.name for t in program.of_kind('output'))}; no rule is broken.")  # fmt: skip
    if input:
        print(f"At these shapes: {launch.cores} cores, {launch.ub_bytes} bytes of the Unified Buffer.")


@app.command("run", epilog=EXAMPLES)
@grouped
def run(
    how: Annotated[RunOptions, Only("seed")],
    file: File,
    input: Input,
    name: Name = None,
    attr: Attr = [],  # noqa: B006
    outputs: Annotated[Path | None, typer.Option("--outputs", help="Write the outputs to this file (.npz).")] = None,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Run a program on numpy with random inputs, and check what the language promises."""
    program = read_file(file, name)
    specs = _inputs(program, input)
    rng = np.random.default_rng(how.seed)
    arrays = {n: _random(rng, s) for n, s in specs.items()}
    found = interpret(program, arrays, _attributes(attr))
    if outputs is not None:
        arguments.save_arrays(outputs, found)
    if json:
        print(json_text({"program": program.host.name, "outputs": {n: list(a.shape) for n, a in found.items()}}))
        return
    for n, a in found.items():
        print(f"{n} {a.dtype}{list(a.shape)}: {np.array2string(a.reshape(-1)[:6], precision=5)} ...")
    print("No rule is broken: bounds, lengths, unwritten elements, cores.", file=sys.stderr)


@app.command("lower", epilog=EXAMPLES)
def lower_command(
    file: File,
    out: Annotated[Path, typer.Option("--out", help="The operator's folder; it may not exist, or be empty.")],
    name: Name = None,
    input: Input = [],  # noqa: B006
    attr: Attr = [],  # noqa: B006
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Write the operator's folder: tiling program, kernel, op.toml, reference. Inputs become its first case."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise CaseError(f"{out} exists and isn't empty.", "Name a new folder, or remove that one first.")
    program = read_file(file, name)
    cases: list[dict[str, object]] = []
    if input:
        specs = _inputs(program, input)
        launch_of(program, {n: s.shape for n, s in specs.items()}, _attributes(attr))
        case = {n: f"{s.dtype}[{','.join(map(str, s.shape))}]" for n, s in specs.items()}
        cases = [{"inputs": case, "attrs": _attributes(attr)}]
    lowered = lower(program, cases)
    write_project(lowered, out)
    if json:
        print(json_text({"folder": str(out), "files": list(lowered.files)}))
        return
    print(f"{out}: {', '.join(lowered.files)}")
    print(f"Next: ascendopt-tune run {out}", file=sys.stderr)


def _inputs(program: Program, given: list[str]) -> dict[str, TensorSpec]:
    known = {t.name: t for t in program.of_kind("input")}
    found = arguments.parse_tensors(given, "--input")
    for name, spec in found.items():
        if name not in known:
            raise CaseError(f"{program.host.name} has no input {name!r}.", f"Its inputs: {', '.join(known)}.")
        if spec.dtype != known[name].dtype.name:
            raise CaseError(f"the input {name} is {known[name].dtype.name}, not {spec.dtype}.")
    missing = [n for n in known if n not in found]
    if missing:
        raise CaseError(f"{program.host.name} needs the input {missing[0]!r}.", f"--input {missing[0]}=float32[64,512]")
    return found


def _attributes(given: list[str]) -> dict[str, Number]:
    found: dict[str, Number] = {}
    for name, value in arguments.parse_attrs(given, None).items():
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise CaseError(f"--attr {name}={value}: the value is no number.", "For example --attr factor=0.5.")
        found[name] = value
    return found


def _random(rng: np.random.Generator, spec: TensorSpec) -> arguments.Array:
    dtype = arguments.numpy_dtype(spec.dtype)
    if spec.dtype.startswith(("float", "bfloat")):
        return rng.standard_normal(spec.shape).astype(dtype)
    return rng.integers(0, 2 if spec.dtype == "bool" else 8, spec.shape).astype(dtype)
