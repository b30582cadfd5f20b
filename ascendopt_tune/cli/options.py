"""What several commands share: the flags that name an operator and a case, and checks before long work."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from .. import paths
from ..errors import CacheError, SettingsError, did_you_mean
from ..files import check_space, hold
from ..nouns.chip import STATES, WARM
from ..nouns.run_options import CASE as _CASE
from ..settings import override
from ..sources.registry import operator_names

_OPERATOR = "What to work on"

Op = Annotated[
    str | None,
    typer.Argument(
        metavar="OP",
        help="The operator: a name that `ascendopt-tune ops` lists, or a folder with op_host/ and op_kernel/ in it.",
        autocompletion=operator_names,
    ),
]
Kernel = Annotated[
    Path | None,
    typer.Option(
        "--kernel",
        help="Instead of OP: a kernel file, which is launched without a tiling program.",
        rich_help_panel=_OPERATOR,
    ),
]
Entry = Annotated[
    str | None,
    typer.Option(
        "--entry",
        help="With --kernel: which __global__ function, if the file has several. A template with its arguments: "
        "scale<half>.",
        rich_help_panel=_OPERATOR,
    ),
]
BlockDim = Annotated[
    int | None,
    typer.Option(
        "--block-dim",
        help="With --kernel: the number of blocks. Default: that of the <<<>>> launch in the file.",
        min=1,
        rich_help_panel=_OPERATOR,
    ),
]
Define = Annotated[
    list[str],
    typer.Option("-D", metavar="MACRO=V", help="With --kernel: define a macro; repeatable.", rich_help_panel=_OPERATOR),
]
Input = Annotated[
    list[str],
    typer.Option(
        "--input",
        metavar="NAME=DTYPE[d0,..]",
        help="A random input, e.g. x=float16[1024,4096]; repeatable. Tensor lists: x.0=..., x.1=...",
        rich_help_panel=_CASE,
    ),
]
Inputs = Annotated[
    Path | None,
    typer.Option("--inputs", help="Your arrays by name: .npz, or .safetensors for bfloat16.", rich_help_panel=_CASE),
]
Format = Annotated[
    list[str],
    typer.Option(
        "--format",
        metavar="NAME=FORMAT",
        help="Format of one of your arrays, e.g. x=NCHW; repeatable.",
        rich_help_panel=_CASE,
    ),
]
Domain = Annotated[
    list[str],
    typer.Option(
        "--domain",
        metavar="NAME=LOW:HIGH",
        help="Which values a random input may have: a range; or NAME=\\[v,..]; or NAME=INPUT:AXIS for indices into an "
        "axis of another input; repeatable.",
        rich_help_panel=_CASE,
    ),
]
InPlace = Annotated[
    list[str],
    typer.Option(
        "--in-place",
        metavar="NAME",
        help="An input that the kernel also writes, although the definition has no output for it; repeatable.",
        rich_help_panel=_OPERATOR,
    ),
]


def _remember(ctx: typer.Context, value: Path | None) -> Path | None:
    """Where the setting is read, and in the processes that the command starts."""
    if value is not None:
        ctx.with_resource(override(matmul_headers=value.resolve()))
    return value


MatmulHeaders = Annotated[
    Path | None,
    typer.Option(
        "--matmul-headers",
        metavar="FOLDER",
        help="Compile with the high-level Matmul of this asc-devkit or CANN, not the virtual NPU's own.",
        rich_help_panel=_OPERATOR,
        callback=_remember,
    ),
]
IncludeDir = Annotated[
    list[Path],
    typer.Option("-I", metavar="FOLDER", help="A folder with headers; repeatable.", rich_help_panel=_OPERATOR),
]
Output = Annotated[
    list[str],
    typer.Option(
        "--output",
        metavar="NAME=DTYPE[d0,..]",
        help="Dtype and shape of an output, where the operator has no InferShape (or a wrong one); repeatable.",
        rich_help_panel=_CASE,
    ),
]
Attr = Annotated[
    list[str],
    typer.Option(
        "--attr",
        metavar="NAME=VALUE",
        help="An attribute, e.g. dim=-1 or sizes=1,2; repeatable.",
        rich_help_panel=_CASE,
    ),
]
Outputs = Annotated[
    Path | None,
    typer.Option(
        "--outputs", help="Save the computed outputs to this file: .npz or .safetensors.", rich_help_panel=_CASE
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout and nothing else there.")]
State = Annotated[
    str,
    typer.Option(
        "--state",
        help="What the timed launch finds. warm: the same kernel ran just before; flushed: another kernel filled L2; "
        "cold: it is the first launch after loading. flushed and cold are always modelled.",
    ),
]
Ray = Annotated[
    str | None,
    typer.Option(
        "--ray",
        metavar="ADDRESS",
        help="Run on a Ray cluster. auto: the one this host is part of; local: one that is started here.",
    ),
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]

_FREE_BYTES = 128 << 20  # a run writes some tens of megabytes of compiled candidates


@dataclass(frozen=True)
class OperatorFlags:
    """What names an operator on the command line."""

    op: Op = None
    kernel: Kernel = None
    entry: Entry = None
    block_dim: BlockDim = None
    define: Define = field(default_factory=list)
    include: IncludeDir = field(default_factory=list)
    in_place: InPlace = field(default_factory=list)
    matmul_headers: MatmulHeaders = None


@dataclass(frozen=True)
class CaseFlags:
    """What names a case on the command line."""

    input: Input = field(default_factory=list)
    inputs: Inputs = None
    output: Output = field(default_factory=list)
    attr: Attr = field(default_factory=list)
    format: Format = field(default_factory=list)
    domain: Domain = field(default_factory=list)
    outputs: Outputs = None


def check_cache_folder() -> None:
    """Before anything is compiled: the writable cache can be written and locked, and has room.

    Raises:
        CacheError: it can't, or it hasn't.
    """
    folder = paths.cache_dir()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            hold(file.fileno(), wait=False)  # its file system may have no locks
        check_space(folder, _FREE_BYTES)
    except OSError as e:
        raise CacheError(
            f"the cache folder {folder} can't be written: {e.strerror or e}.",
            "Make it writable, or point ASCENDOPT_CACHE_DIR at another folder.",
        ) from e


def check_file(path: Path | None, option: str) -> None:
    """Before a long run: the file an option names can be written later.

    Raises:
        CacheError: it can't.
    """
    if path is None:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as e:
        raise CacheError(f"{option} {path} can't be written: {e.strerror or e}.", "Name another file.") from e
    if path.is_dir():
        raise CacheError(f"{option} {path} is a folder.", "Name a file.")


def check_state(state: str, target: str) -> None:
    """Raises SettingsError for a ``--state`` that there isn't, or that launches on this target can't have."""
    if state not in STATES:
        near = did_you_mean(state, STATES)
        raise SettingsError(f"--state {state!r} is unknown.{near}", f"Known ones: {', '.join(STATES)}.")
    if state != WARM and target != "virtual":
        raise SettingsError(
            f"--state {state} is modelled, and the target is {target}, whose launches are timed one behind the other.",
            "Add --target virtual, or leave --state out.",
        )


def words_of(text: str, known: Iterable[str], what: str) -> tuple[str, ...]:
    """The words of an option, in its order. Raises SettingsError for one that isn't known."""
    words = tuple(word for word in text.split(",") if word)
    unknown = sorted(set(words) - set(known))
    if unknown:
        raise SettingsError(f"unknown {what}: {', '.join(unknown)}.", f"Known ones: {', '.join(known)}.")
    return words
