"""HostProgram: a compiled host program, loaded through ctypes; describes its operator, infers shapes, runs tiling.

What a program prints or logs never reaches the process's stdout; it becomes part of the error when the tiling function
refuses a case. A program that crashes takes its process with it: run candidates in a worker.
"""

from __future__ import annotations

import _ctypes
import contextlib
import ctypes
import functools
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import CaseError, HostProgramError, ToolchainError
from ..nouns.case import Argument, AttrValue, Case, TensorSpec
from ..nouns.operator import Signature
from .blocks import TABLE, BlockId
from .host_signature import (
    FORMATS,
    HostDescription,
    attribute_values,
    data_type_name,
    data_type_number,
    dtype_column,
    parse_description,
)
from .storage import variables

if TYPE_CHECKING:
    from ..nouns.chip import Chip

_NO_FUNCTION = 1  # answer of the library: the operator registered no such function
_MAX_RANK = 25
_LIST_ELEMENTS: dict[str, Any] = {
    "list_int": ctypes.c_int64,
    "list_float": ctypes.c_float,
    "list_bool": ctypes.c_uint8,
}


_PLAIN_STRUCT_BYTES = 1 << 16


@dataclass(frozen=True)
class TilingResult:
    """What a tiling function decided.

    ``workspace_bytes`` is the sum of the sizes it asked for; ``data`` the tiling bytes as the kernel reads them;
    ``schedule_mode`` 1 asks that all cores run at once. ``initial_values``: what each output is filled with before the
    kernel runs, None where nothing is promised (OpDef's InitValue, for a tiling function that calls SetNeedAtomic).
    ``tells_shapes``: the kernel decides outputs' shapes (OutputShapeDependOnCompute), and has a parameter for them.
    """

    block_dim: int
    tiling_key: int
    workspace_bytes: int
    data: bytes
    schedule_mode: int = 0
    initial_values: tuple[float | None, ...] = ()
    tells_shapes: bool = False


class HostProgram:
    """A compiled host program. Loaded on first use; not thread safe."""

    def __init__(
        self,
        path: Path,
        library: Path,
        names: Sequence[str],
        knobs: Sequence[int] = (),
        marks: Sequence[tuple[int, BlockId]] = (),
    ) -> None:
        """
        Args:
            names: what the operator may be called; picks the definition when the sources hold several.
            knobs: the numbers that the program reads from its table (knobs.py).
            marks: where the program notes which of its blocks ran (blocks.py).
        """
        self.path = path
        self.knobs = tuple(knobs)
        self._marks = tuple(marks)
        self._ran: ctypes.Array[ctypes.c_ubyte] | None = None
        self._base = 0
        self._library_path = library
        self._names = tuple(names)
        self._handle: int | None = None
        self._descriptions: dict[str, HostDescription] = {}

    def ran(self) -> tuple[BlockId, ...] | None:
        """The blocks that ran since the program was loaded; None where that isn't known.

        It is the program's own word, and good for leaving out work, not for believing it.
        """
        return None if self._ran is None else tuple(name for place, name in self._marks if self._ran[place])

    def describe(self, soc: str = "ascend910b") -> HostDescription:
        """The operator definition and tiling structs; ``soc`` is the chip's short name (``chip.short_soc``)."""
        if soc not in self._descriptions:
            library = self._library
            text = library.vnpu_host_describe(self._open(), soc.encode()).decode(errors="replace")
            if not text:
                raise HostProgramError(f"the operator definition in {self.path.name} fails: {_log(library)}")
            self._descriptions[soc] = parse_description(json.loads(text), self._names)
        return self._descriptions[soc]

    def infer_shape(
        self,
        inputs: Sequence[Argument],
        attrs: Mapping[str, AttrValue],
        values: Mapping[int, np.ndarray[Any, Any]] | None = None,
    ) -> tuple[Argument, ...]:
        """Output arguments by the operator's own shape and type functions.

        Without a type function the output types come from the dtype column the inputs select; so they do where it
        answers what the definition has no column for (calls of single operators don't ask it).

        Raises:
            HostProgramError: the operator has no shape function, or it refuses the inputs.
            CaseError: an unknown attribute, or dtypes no column has.
        """
        signature = self.describe().signature
        column = dtype_column(signature, inputs)
        lists = [len(a) for a in inputs if isinstance(a, tuple)]
        outputs: list[Argument] = []
        for p in signature.outputs:
            spec = TensorSpec(p.dtypes[column], (), "ND")
            outputs.append((spec,) * (lists[0] if lists else 1) if p.kind == "dynamic" else spec)
        with _Context(self, signature, inputs, outputs, attrs, values or {}) as ctx:
            status = ctx.library.vnpu_ctx_infer_shape(ctx.handle)
            if status == _NO_FUNCTION:
                raise HostProgramError(
                    f"operator {signature.op_type} has no shape function, so its outputs are unknown.",
                    "Give every output's shape and dtype, as in --output y=float16[1024,512].",
                )
            self._check(status, "shape", signature, inputs, attrs)
            status = ctx.library.vnpu_ctx_infer_data_type(ctx.handle)
            if status != _NO_FUNCTION:
                self._check(status, "data type", signature, inputs, attrs)
            return _as_defined(signature, inputs, ctx.read_outputs(outputs), outputs)

    def tiling(self, case: Case, chip: Chip, values: Mapping[int, np.ndarray[Any, Any]] | None = None) -> TilingResult:
        """Runs the tiling function for ``case`` on ``chip``.

        Args:
            values: contents of value-depend inputs, by the input's position in the definition.

        Raises:
            HostProgramError: there is no tiling function, it refuses the case, or it writes more than it may.
            CaseError: the case has an unknown attribute or lacks a required one.
        """
        description = self.describe(str(chip.values.get("chip.short_soc", "ascend910b")))
        signature = description.signature
        if not signature.has_tiling:
            raise HostProgramError(
                f"operator {signature.op_type} has no tiling function.",
                "Register one with AICore().SetTiling(...) or IMPL_OP_OPTILING, or launch the kernel directly.",
            )
        # A plain struct that both programs include is nowhere registered: there is room for any.
        capacity = max((s.size for s in description.tiling_structs), default=_PLAIN_STRUCT_BYTES)
        attrs = dict(case.attrs)
        with _Context(self, signature, case.inputs, case.outputs, attrs, values or {}) as ctx:
            lib, handle = ctx.library, ctx.handle
            for key, value in chip.values.items():
                lib.vnpu_ctx_chip(handle, key.encode(), str(value).encode())
            self._check(lib.vnpu_ctx_tiling(handle, capacity), "tiling", signature, case.inputs, attrs)
            size, limit = lib.vnpu_ctx_tiling_size(handle), lib.vnpu_ctx_tiling_capacity(handle)
            if size > limit:
                raise HostProgramError(
                    f"the tiling function of {signature.op_type} sets {size} bytes of tiling data, over the limit of "
                    f"{limit}.",
                    "Register the tiling struct with REGISTER_TILING_DATA_CLASS, which raises the limit to its size.",
                )
            count = lib.vnpu_ctx_workspace_count(handle)
            return TilingResult(
                block_dim=lib.vnpu_ctx_block_dim(handle),
                tiling_key=lib.vnpu_ctx_tiling_key(handle),
                workspace_bytes=sum(lib.vnpu_ctx_workspace(handle, i) for i in range(count)),
                data=ctypes.string_at(lib.vnpu_ctx_tiling_data(handle), size),
                schedule_mode=lib.vnpu_ctx_schedule_mode(handle),
                tells_shapes=any(p.shape_from_kernel for p in signature.outputs),
                initial_values=_initial_values(signature, case) if lib.vnpu_ctx_need_atomic(handle) else (),
            )

    def state(self) -> dict[str, bytes]:
        """What the program's static and global variables hold now, by the linker's name. It has to be loaded."""
        own = (v for v in variables(self.path.read_bytes()) if v.name != TABLE)
        return {v.name: ctypes.string_at(self._base + v.address, v.size) for v in own}

    def close(self) -> None:
        """Unloads the program; using it again loads it again."""
        if self._handle is not None:
            self._library.vnpu_host_close(self._handle)
            self._handle = self._ran = None

    @property
    def _library(self) -> ctypes.CDLL:
        return _load_library(str(self._library_path))

    def _open(self) -> int:
        if self._handle is None:
            error = ctypes.create_string_buffer(2048)
            knobs = (ctypes.c_uint64 * len(self.knobs))(*self.knobs)
            with self._file() as file:
                handle = self._library.vnpu_host_open(str(file).encode(), knobs, len(knobs), error, len(error))
                if handle:
                    loaded = ctypes.CDLL(str(file))
                    self._base = ctypes.c_uint64.from_address(loaded._handle).value  # glibc's link_map begins with it
                    if self._marks:
                        marks = ctypes.c_ubyte * (1 + max(place for place, _ in self._marks))
                        self._ran = marks.in_dll(loaded, TABLE)
                    _ctypes.dlclose(loaded._handle)  # the library keeps it open
            if not handle:
                raise HostProgramError(f"the host program {self.path} can't be loaded: {error.value.decode()}")
            self._handle = int(handle)
        return self._handle

    @contextlib.contextmanager
    def _file(self) -> Iterator[Path]:
        """What to load: with knobs a copy, because a process loads a file once, with one table.

        A confined process serves one program and may write nowhere: it loads the file itself.
        """
        with contextlib.ExitStack() as stack:
            path = self.path
            if self.knobs:
                with contextlib.suppress(PermissionError):
                    # Not the folder that tempfile remembers: a confined process has another one than its parent.
                    folder = os.environ.get("TMPDIR")
                    copy = stack.enter_context(tempfile.NamedTemporaryFile(suffix=".so", dir=folder))
                    path = Path(copy.name)
                    shutil.copyfile(self.path, path)
            yield path

    def _check(
        self,
        status: int,
        what: str,
        signature: Signature,
        inputs: Sequence[Argument],
        attrs: Mapping[str, AttrValue],
    ) -> None:
        if status == 0:
            return
        log = " ".join(_log(self._library).split())[-600:]
        raise HostProgramError(
            f"the {what} function of {signature.op_type} refuses {Case(tuple(inputs), (), tuple(attrs.items()))} "
            f"with status {status:#x}" + (f": {log}" if log else " and gives no reason."),
            "Check shapes, dtypes, formats and attributes against the operator's documentation.",
        )


class _Context:
    """One call's context in the library: parameters in, results out; freed on exit."""

    def __init__(
        self,
        program: HostProgram,
        signature: Signature,
        inputs: Sequence[Argument],
        outputs: Sequence[Argument],
        attrs: Mapping[str, AttrValue],
        values: Mapping[int, np.ndarray[Any, Any]],
    ) -> None:
        # Everything that may be refused, before anything is allocated.
        checked = attribute_values(signature, attrs)
        described_inputs = [(i, _described(t)) for i, a in enumerate(inputs) for t in _tensors(a)]
        described_outputs = [(i, _described(t)) for i, a in enumerate(outputs) for t in _tensors(a)]
        self.library = program._library
        self.handle = self.library.vnpu_ctx_new(program._open(), signature.op_type.encode())
        # The context keeps the address only, so the arrays live as long as it.
        self._alive = {i: np.ascontiguousarray(v) for i, v in values.items()}
        for i, tensor in described_inputs:
            data = self._alive[i].ctypes.data if i in self._alive else None
            self.library.vnpu_ctx_input(self.handle, i, *tensor, data)
        for i, tensor in described_outputs:
            self.library.vnpu_ctx_output(self.handle, i, *tensor)
        for kind, value in checked:
            self._push_attr(kind, value)

    def __enter__(self) -> _Context:
        return self

    def __exit__(self, *exc: object) -> None:
        self.library.vnpu_ctx_free(self.handle)

    def _push_attr(self, kind: str, value: AttrValue) -> None:
        push = getattr(self.library, f"vnpu_ctx_attr_{kind}")
        if isinstance(value, tuple):
            push(self.handle, len(value), (_LIST_ELEMENTS[kind] * max(len(value), 1))(*value))
        else:
            push(self.handle, value.encode() if isinstance(value, str) else value)

    def read_outputs(self, outputs: Sequence[Argument]) -> tuple[Argument, ...]:
        """The output arguments with the shapes and types now in the context."""
        dims = (ctypes.c_int64 * _MAX_RANK)()
        specs = []
        for i in range(self.library.vnpu_ctx_output_count(self.handle)):
            rank = self.library.vnpu_ctx_output_shape(self.handle, i, dims)
            number = self.library.vnpu_ctx_output_data_type(self.handle, i)
            specs.append(TensorSpec(data_type_name(number), tuple(dims[:rank])))
        it = iter(specs)
        return tuple(tuple(next(it) for _ in a) if isinstance(a, tuple) else next(it) for a in outputs)


def _as_defined(
    signature: Signature, inputs: Sequence[Argument], inferred: tuple[Argument, ...], defined: Sequence[Argument]
) -> tuple[Argument, ...]:
    """What was inferred; with the types of ``defined`` where no dtype column has the inferred ones."""
    try:
        dtype_column(signature, inputs, inferred)
    except CaseError:
        return tuple(_typed(a, b) for a, b in zip(inferred, defined, strict=True))
    return inferred


def _typed(argument: Argument, like: Argument) -> Argument:
    if isinstance(argument, tuple):
        listed = like if isinstance(like, tuple) else (like,) * len(argument)
        return tuple(_typed(a, b) for a, b in zip(argument, listed, strict=True))  # type: ignore[misc]
    if isinstance(argument, TensorSpec) and isinstance(like, TensorSpec):
        return replace(argument, dtype=like.dtype)
    return argument


def _initial_values(signature: Signature, case: Case) -> tuple[float | None, ...]:
    """What each output of the case is filled with before the kernel runs; None: nothing."""
    column = dtype_column(signature, case.inputs, case.outputs)

    def value(values: tuple[float, ...]) -> float | None:
        return values[min(column, len(values) - 1)] if values else None

    found = tuple(value(p.init_values) for p in signature.outputs)
    return found if any(v is not None for v in found) else ()


def _tensors(argument: Argument) -> tuple[TensorSpec, ...]:
    return () if argument is None else argument if isinstance(argument, tuple) else (argument,)


def _described(tensor: TensorSpec) -> tuple[int, int, int, Any]:
    dims = (ctypes.c_int64 * max(len(tensor.shape), 1))(*tensor.shape)
    if tensor.format not in FORMATS:
        raise CaseError(f"unknown storage format {tensor.format!r}.", f"Known formats: {', '.join(FORMATS)}.")
    return data_type_number(tensor.dtype), FORMATS[tensor.format], len(tensor.shape), dims


def _log(library: ctypes.CDLL) -> str:
    text: bytes = library.vnpu_ctx_log()
    return text.decode(errors="replace")


@functools.cache
def _load_library(path: str) -> ctypes.CDLL:
    """libvnpu_host.so with its functions' types declared (vnpu/host/src/c_abi.cpp)."""
    try:
        lib = ctypes.CDLL(path)
    except OSError as e:
        raise ToolchainError(f"{path} can't be loaded: {e}.", "Rebuild the toolkit: delete its folder.") from e
    pointer, u32, u64, i32, text = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_int, ctypes.c_char_p
    i64s = ctypes.POINTER(ctypes.c_int64)
    signatures: dict[str, tuple[Any, list[Any]]] = {
        "vnpu_host_open": (pointer, [text, ctypes.POINTER(u64), ctypes.c_size_t, text, ctypes.c_size_t]),
        "vnpu_host_close": (None, [pointer]),
        "vnpu_host_describe": (text, [pointer, text]),
        "vnpu_ctx_new": (pointer, [pointer, text]),
        "vnpu_ctx_free": (None, [pointer]),
        "vnpu_ctx_chip": (None, [pointer, text, text]),
        "vnpu_ctx_input": (None, [pointer, u32, i32, i32, u32, i64s, pointer]),
        "vnpu_ctx_output": (None, [pointer, u32, i32, i32, u32, i64s]),
        "vnpu_ctx_attr_bool": (None, [pointer, i32]),
        "vnpu_ctx_attr_int": (None, [pointer, ctypes.c_int64]),
        "vnpu_ctx_attr_float": (None, [pointer, ctypes.c_float]),
        "vnpu_ctx_attr_str": (None, [pointer, text]),
        "vnpu_ctx_attr_list_bool": (None, [pointer, u32, ctypes.POINTER(ctypes.c_uint8)]),
        "vnpu_ctx_attr_list_int": (None, [pointer, u32, i64s]),
        "vnpu_ctx_attr_list_float": (None, [pointer, u32, ctypes.POINTER(ctypes.c_float)]),
        "vnpu_ctx_infer_shape": (u32, [pointer]),
        "vnpu_ctx_infer_data_type": (u32, [pointer]),
        "vnpu_ctx_tiling": (u32, [pointer, ctypes.c_size_t]),
        "vnpu_ctx_log": (text, []),
        "vnpu_ctx_output_count": (u32, [pointer]),
        "vnpu_ctx_output_shape": (u32, [pointer, u32, i64s]),
        "vnpu_ctx_output_data_type": (i32, [pointer, u32]),
        "vnpu_ctx_block_dim": (u32, [pointer]),
        "vnpu_ctx_tiling_key": (u64, [pointer]),
        "vnpu_ctx_schedule_mode": (u32, [pointer]),
        "vnpu_ctx_need_atomic": (u32, [pointer]),
        "vnpu_ctx_workspace_count": (u32, [pointer]),
        "vnpu_ctx_workspace": (u64, [pointer, u32]),
        "vnpu_ctx_tiling_size": (u64, [pointer]),
        "vnpu_ctx_tiling_capacity": (u64, [pointer]),
        "vnpu_ctx_tiling_data": (pointer, [pointer]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    return lib
