"""What crosses the pipe between the tuner and its evaluation server: requests, results, and how they become JSON.

A dataclass becomes ``{"$": "Case", ...}``; only the classes listed here can be built from a message. Lists arrive as
tuples. Arrays never cross the pipe: they are raw files that an :class:`ArrayFile` describes.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import mmap
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from .. import errors
from ..build.blocks import BlockId
from ..build.host import HostDescription, TilingField, TilingResult, TilingStruct
from ..errors import AscendOptError, CaseError
from ..nouns.case import Case, TensorSpec
from ..nouns.chip import WARM
from ..nouns.operator import AttrDef, DirectLaunch, Operator, Pair, ParamDef, Signature
from ..nouns.outcome import KINDS, Outcome
from ..nouns.profile import Profile
from ..sources.arguments import Array, dtype_name, numpy_dtype
from .accuracy import Errors, Limit

#: Environment variables that compilers and toolkits read; the server gets these and no others (and ASCEND*).
TOOL_VARIABLES = frozenset(
    ("PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "CPATH", "CPLUS_INCLUDE_PATH",
     "C_INCLUDE_PATH", "LIBRARY_PATH", "XDG_CACHE_HOME", "CCACHE_DIR")
)  # fmt: skip

#: Those of them that name folders compilers read.
TOOL_FOLDERS = (
    "PATH",
    "LD_LIBRARY_PATH",
    "CPATH",
    "CPLUS_INCLUDE_PATH",
    "C_INCLUDE_PATH",
    "LIBRARY_PATH",
    "CCACHE_DIR",
)


@dataclass(frozen=True)
class ArrayFile:
    """One tensor in a file: raw bytes, C order. ``dtype`` is torch's name, ``shape`` in elements."""

    path: str
    dtype: str
    shape: tuple[int, ...]

    def load(self) -> Array:
        """The array, read-only and mapped, not copied; processes forked later don't have it.

        Raises:
            CaseError: the file is missing or has another size.
        """
        dtype = numpy_dtype(self.dtype)
        count = int(np.prod(self.shape, dtype=np.int64))
        if count == 0:
            return np.zeros(self.shape, dtype)
        try:
            with open(self.path, "rb") as file:
                memory = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
            memory.madvise(mmap.MADV_DONTFORK)  # what is expected must not be found in a candidate's process
            raw = np.frombuffer(memory, np.uint8)
        except (OSError, ValueError) as e:
            raise CaseError(f"the array file {self.path} can't be read: {e}.") from e
        if raw.nbytes != count * dtype.itemsize:
            wanted = f"{self.dtype}{list(self.shape)} has {count * dtype.itemsize}"
            raise CaseError(f"{self.path} has {raw.nbytes} bytes; {wanted}.")
        return raw.view(dtype).reshape(self.shape)


def save_array(path: Path, array: Array) -> ArrayFile:
    """Writes ``array`` to ``path`` as raw bytes."""
    contiguous = np.ascontiguousarray(array)
    with open(path, "wb") as file:
        file.write(contiguous.reshape(-1).view(np.uint8).data)
    return ArrayFile(str(path), dtype_name(array.dtype), tuple(array.shape))


# One parameter's data: a tensor, a tensor list, or None for an optional one that is absent.
ArrayArgument = ArrayFile | tuple[ArrayFile, ...] | None


def load_arrays(argument: ArrayArgument) -> Array | tuple[Array, ...] | None:
    """The arrays of one parameter; see ArrayFile.load."""
    if argument is None:
        return None
    return tuple(a.load() for a in argument) if isinstance(argument, tuple) else argument.load()


@dataclass(frozen=True)
class GateTrial:
    """One launch with one set of inputs.

    ``inputs``, ``expected`` and ``leeway``: one entry per parameter of the case. Without ``expected`` nothing is
    compared. ``leeway`` (float32, of the outputs' shapes): by how much more than the tolerance an element may be off,
    because its value depends on more than float32 arithmetic keeps; infinite where the baseline itself is wrong.
    ``limits``: by output, what its errors may be at most. ``again``: the inputs are the first trial's, and whatever
    nobody wrote is other garbage; the outputs have to be the same bit for bit.
    ``poison`` is the byte (0..255) that outputs and workspace are filled with before the launch.
    """

    seed: int
    distribution: str
    inputs: tuple[ArrayArgument, ...]
    expected: tuple[ArrayArgument, ...] | None = None
    poison: int = 0xFF
    leeway: tuple[ArrayArgument, ...] | None = None
    limits: tuple[tuple[str, Limit], ...] = ()
    again: bool = False

    def __str__(self) -> str:
        return f"{self.distribution} inputs, seed {self.seed}"


@dataclass(frozen=True)
class Launchable:
    """A built candidate that can be launched again as it is: the incumbent in an interleaved measurement."""

    binary_path: str
    entry: str
    tiling: TilingResult | None
    block_dim: int


@dataclass(frozen=True)
class Habits:
    """What a kernel does that no rule forbids, and that a candidate may do as much as its baseline and no more.

    ``relies_on``: what it takes from automatic synchronization or from the hardware beyond what is documented (the
    virtual NPU's ``relies_on``). ``slack``: how many bytes past a tensor it accesses, inside the blocks its memory is
    rounded up to, by place (``writes behind y``): a neighbour's, where the tensor is a part of a larger one.
    ``drift``: of each output, see compare.drift. ``variables``: static and global variables that can be written, of the
    kernel; of the tiling program those that a call changes. ``repeats``: a second launch gives the same bits. ``bare``:
    the tiling function asks for less workspace than the system's part of it, as many do whose kernels use no library.
    """

    relies_on: tuple[str, ...] = ()
    slack: Mapping[str, int] = field(default_factory=dict)
    drift: Mapping[str, float] = field(default_factory=dict)
    variables: tuple[str, ...] = ()
    repeats: bool = True
    bare: bool = False


@dataclass(frozen=True)
class Tiled:
    """What a pair's host program says of a case."""

    description: HostDescription
    result: TilingResult
    #: Blocks of the program that ran for it, where that is known (build/blocks.py).
    ran: tuple[BlockId, ...] | None = None
    #: Static variables that a second call found changed.
    variables: tuple[str, ...] = ()


@dataclass(frozen=True)
class EvaluateRequest:
    """Compile, tile, launch, check and (with ``measure``) time one pair on one case.

    ``chip`` is a chip's name; ``target`` is ``virtual`` or ``npu`` and has to be the toolkit's. ``keep_outputs``: the
    result's output files stay until the evaluator is closed. ``incumbent`` is timed in turn with the candidate where
    times vary (``npu``). ``signature`` names the parameters of a kernel for direct launch (others define them).
    ``trace``: the timeline of the first trial is kept (``virtual`` only). ``tiled``: what this pair's program said of
    this case before, so that it isn't asked again.
    ``allowed``: the baseline's habits, which the candidate may have as well. None: any.
    ``clocks``: chip constants to replace; the first trial is timed again under each of them (``virtual`` only).
    ``state``: what the timed launch finds, one of STATES of nouns/chip.py (``virtual`` only).
    ``run_s``: seconds for all launches together, where they are fewer than the evaluator's own limit.
    """

    operator: Operator
    pair: Pair
    case: Case
    chip: str
    target: str = "virtual"
    trials: tuple[GateTrial, ...] = ()
    measure: bool = True
    keep_outputs: bool = False
    incumbent: Launchable | None = None
    signature: Signature | None = None
    trace: bool = False
    tiled: Tiled | None = None
    allowed: Habits | None = None
    clocks: tuple[Mapping[str, float], ...] = ()
    state: str = WARM
    run_s: float | None = None


@dataclass(frozen=True)
class EvaluationResult:
    """What became of a request. ``outputs``: per trial, one entry per output (only with ``keep_outputs``).

    ``timings_s``: wall clock of the stages ``compile``, ``tiling``, ``execute``, ``check``; of ``execute`` the part in
    launches, ``launch``, and that in processor time, ``launch_cpu``. ``reused`` names what was found compiled already
    (``tiling``, ``kernel``). ``checks`` counts outputs that were compared.
    ``trace_path``: the timeline (evaluate/timeline.py), where it was asked for and the launch came that far.
    ``replayed``: modelled task durations (us) under the request's ``clocks``.
    ``printed``: what the kernel printed in the first trial.
    """

    outcome: Outcome
    outputs: tuple[tuple[ArrayArgument, ...], ...] = ()
    tiling: TilingResult | None = None
    block_dim: int = 0
    entry: str = ""
    timings_s: Mapping[str, float] = field(default_factory=dict)
    hazards: tuple[Mapping[str, object], ...] = ()
    reused: tuple[str, ...] = ()
    checks: int = 0
    habits: Habits = field(default_factory=Habits)
    binary_path: str | None = None
    tiling_path: str | None = None
    trace_path: str | None = None
    replayed: tuple[float, ...] = ()
    printed: str = ""

    @property
    def launchable(self) -> Launchable | None:
        """The built candidate, or None when it didn't build."""
        if self.binary_path is None:
            return None
        return Launchable(self.binary_path, self.entry, self.tiling, self.block_dim)


_CLASSES: dict[str, type[Any]] = {
    c.__name__: c
    for c in (
        *(ArrayFile, Errors, Limit, GateTrial, Launchable, Habits, Tiled, EvaluateRequest, EvaluationResult),
        *(TensorSpec, Case, Profile, *KINDS, ParamDef, AttrDef, Signature, Pair, DirectLaunch, Operator),
        *(TilingResult, TilingStruct, TilingField, HostDescription),
    )
}


def encode(value: Any) -> Any:
    """``value`` as JSON data. Functions (an operator's reference) become None: they stay with the tuner."""
    if isinstance(value, (str, int, float, bool)) or value is None:
        return value
    if dataclasses.is_dataclass(value) and type(value).__name__ in _CLASSES:
        fields = {f.name: encode(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return {"$": type(value).__name__, **fields}
    if isinstance(value, Mapping):
        return {str(k): encode(v) for k, v in value.items()}
    if isinstance(value, (tuple, list)):
        return [encode(v) for v in value]
    if isinstance(value, bytes):
        return {"$": "bytes", "data": base64.b64encode(value).decode()}
    if isinstance(value, Path):
        return {"$": "Path", "path": str(value)}
    if callable(value):
        return None
    raise TypeError(f"{type(value).__name__} can't cross the pipe")


def decode(data: Any) -> Any:
    """The inverse of :func:`encode`; lists become tuples."""
    if isinstance(data, list):
        return tuple(decode(v) for v in data)
    if not isinstance(data, dict):
        return data
    kind = data.get("$")
    if kind is None:
        return {k: decode(v) for k, v in data.items()}
    if kind == "bytes":
        return base64.b64decode(data["data"])
    if kind == "Path":
        return Path(data["path"])
    return _CLASSES[kind](**{k: decode(v) for k, v in data.items() if k != "$"})


def dumps(document: Any) -> bytes:
    """One line of JSON."""
    return json.dumps(document, separators=(",", ":")).encode()


def loads(line: bytes) -> Any:
    return json.loads(line)


def encode_error(error: AscendOptError) -> dict[str, Any]:
    return {"class": type(error).__name__, "args": list(error.args)}


def value_or_raise(document: Mapping[str, Any]) -> Any:
    """The value of an answer ``{"value": ...}``; raises the project's error of an answer ``{"error": ...}``."""
    if "error" not in document:
        return decode(document["value"])
    kind = getattr(errors, document["error"]["class"], AscendOptError)
    raise kind(*document["error"]["args"])
