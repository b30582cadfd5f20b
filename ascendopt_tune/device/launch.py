"""One launch: device buffers of exact size, the kernel's arguments, and what the launch left behind.

Everything goes through device/acl.py, so the same code runs on the virtual NPU and on a real one. Argument order and
workspace as CANN's generated entry has them: inputs, outputs, user workspace, tiling (aclnn documentation; tensor lists
as in "how to develop operators with dynamic inputs").
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import numpy as np

from ..nouns.case import Argument, Case, TensorSpec
from ..sources.arguments import Array, dtype_name, numpy_dtype
from .acl import Acl
from .acl import Argument as LaunchArgument
from .options import LaunchOptions

SYSTEM_WORKSPACE = 16 << 20  # bytes the system keeps before the user's workspace on architecture 2201
_BLOCK = 32  # bytes; aclrtMalloc rounds up to this and adds the same again (runtime manual)

_LIBC = ctypes.CDLL(None)

#: Arrays of one parameter: one, a list's, or None for an absent one.
Arrays = Array | tuple[Array, ...] | None


def empty_arrays(argument: Argument) -> Arrays:
    """Arrays for one parameter's data."""
    if argument is None:
        return None
    if isinstance(argument, TensorSpec):
        return np.empty(argument.shape, numpy_dtype(argument.dtype))
    return tuple(np.empty(spec.shape, numpy_dtype(spec.dtype)) for spec in argument)


def _round_up(nbytes: int) -> int:
    return -(-nbytes // _BLOCK) * _BLOCK


def list_descriptor(shapes: Sequence[Sequence[int]], pointers: Sequence[int]) -> bytes:
    """What a kernel gets for a tensor list, as device data: offset of the pointers, shape by shape, the pointers."""
    words: list[int] = [0]
    for i, shape in enumerate(shapes):
        words += [i << 32 | len(shape), *shape]
    words[0] = len(words) * 8
    return np.array([*words, *pointers], np.uint64).tobytes()


@dataclass
class _Buffer:
    """Device memory of one tensor; the guard are the 32 bytes behind its last block."""

    name: str
    spec: TensorSpec
    pointer: int

    @property
    def guard(self) -> int:
        return self.pointer + _round_up(self.spec.nbytes)


_SHAPE_BYTES = 9 * 8  # what a kernel tells of one output: the number of its axes, and up to 8 lengths, as uint64


def users_part(asked: int, bare: bool = True) -> int:
    """Bytes of the workspace that are the kernel's own, of those that the tiling function asked for.

    On the device there is what it asked for and no more, and the first SYSTEM_WORKSPACE bytes of that are the system's.

    Args:
        bare: asking for less than those is taken as asking for the kernel's own part alone.
    """
    return asked if bare and asked < SYSTEM_WORKSPACE else max(0, asked - SYSTEM_WORKSPACE)


class DeviceLaunch:
    """The buffers and arguments of one case. Build once, then per launch: ``load``, ``run``, ``outputs``.

    Args:
        names: (input names, output names) in the case's order; an output called like an input is that input's memory.
        tiling: tiling bytes, or None for a kernel without tiling function (direct launch).
        workspace_bytes: what the tiling function asked for; ``bare``: as of :func:`users_part`.
        order: for a direct launch, the kernel's parameters: names of inputs and outputs, or ctypes values.
        unlisted: how many outputs, the last ones, are no parameters of their own: inputs that the kernel changes.
        tells_shapes: the kernel decides outputs' shapes, and has a parameter behind the outputs to tell them in.
        initial_values: what each output is filled with before a launch; None, or no entry: with poison.
        shift: bytes from where the device gives memory to where tensors begin, as those do that are a part of others.

    Raises:
        DeviceError: no device memory.
    """

    def __init__(
        self,
        acl: Acl,
        case: Case,
        names: tuple[Sequence[str], Sequence[str]],
        tiling: bytes | None = None,
        workspace_bytes: int = 0,
        order: Sequence[str | ctypes._SimpleCData[Any] | ctypes.Structure] | None = None,
        unlisted: int = 0,
        tells_shapes: bool = False,
        initial_values: Sequence[float | None] = (),
        shift: int = 0,
        bare: bool = True,
    ) -> None:
        self._acl = acl
        self._shift = shift
        self._case_outputs = case.outputs
        self._initial_values = initial_values
        self._owned: list[int] = []
        #: What a kernel is given besides tensors: device address, bytes, and what it is.
        self._constants: list[tuple[int, bytes, str]] = []
        try:
            self._inputs = [self._allocate(n, a) for n, a in zip(names[0], case.inputs, strict=True)]
            by_name = dict(zip(names[0], range(len(self._inputs)), strict=True))
            #: Position of the input that output i shares its memory with, or None.
            self.in_place = [by_name.get(n) for n in names[1]]
            self._outputs = [
                self._inputs[shared] if shared is not None else self._allocate(n, a)
                for n, a, shared in zip(names[1], case.outputs, self.in_place, strict=True)
            ]
            self._workspace: _Buffer | None = None
            arguments = {n: self._argument(b, a) for n, b, a in zip(names[0], self._inputs, case.inputs, strict=True)}
            results = [
                arguments[n] if shared is not None else self._argument(b, a)
                for n, b, a, shared in zip(names[1], self._outputs, case.outputs, self.in_place, strict=True)
            ]
            self._args: list[LaunchArgument]
            if order is None:
                self._args = [*(arguments[n] for n in names[0]), *results[: len(results) - unlisted]]
                if tells_shapes:
                    self._args.append(self._malloc(_SHAPE_BYTES * len(names[1])))
                workspace = self._allocate_workspace(users_part(workspace_bytes, bare))
                self._args += [workspace, self._upload(tiling or b"", "tiling data")]
            else:
                arguments.update(zip(names[1], results, strict=True))
                if "workspace" in order and "workspace" not in arguments:
                    arguments["workspace"] = self._allocate_workspace(workspace_bytes)
                self._args = [arguments[o] if isinstance(o, str) else o for o in order]
        except BaseException:
            self.free()
            raise

    # -- memory -------------------------------------------------------------------------------------------------------

    def _malloc(self, nbytes: int) -> int:
        pointer = self._acl.malloc(max(nbytes, 1))
        self._owned.append(pointer)
        return pointer

    def _allocate(self, name: str, argument: Argument) -> list[_Buffer]:
        if argument is None:
            return []
        if isinstance(argument, TensorSpec):
            return [self._tensor(name, argument)]
        return [self._tensor(f"{name}.{i}", spec) for i, spec in enumerate(argument)]

    def _tensor(self, name: str, spec: TensorSpec) -> _Buffer:
        return _Buffer(name, spec, self._malloc(self._shift + spec.nbytes) + self._shift)

    def _allocate_workspace(self, nbytes: int) -> int:
        """Kernels get the user's part; never null, because many return at once when it is."""
        pointer = self._malloc(SYSTEM_WORKSPACE + nbytes) + SYSTEM_WORKSPACE
        self._workspace = _Buffer("the workspace", TensorSpec("uint8", (nbytes,)), pointer)
        return pointer

    def _upload(self, data: bytes, what: str) -> int:
        pointer = self._malloc(len(data))
        self._acl.memcpy_h2d(pointer, np.frombuffer(data, np.uint8))
        self._constants.append((pointer, data, what))
        return pointer

    def _argument(self, buffers: list[_Buffer], argument: Argument) -> int:
        """The device address a kernel gets for one parameter: the tensor, a list's descriptor block, or null."""
        if argument is None:
            return 0
        if isinstance(argument, TensorSpec):
            return buffers[0].pointer
        listed = list_descriptor([b.spec.shape for b in buffers], [b.pointer for b in buffers])
        which = f"the list {buffers[0].name.partition('.')[0]}" if buffers else "an empty list"
        return self._upload(listed, f"the description of {which}")

    def free(self) -> None:
        """Frees all device memory. Harmless when repeated."""
        while self._owned:
            self._acl.free(self._owned.pop())

    def __enter__(self) -> DeviceLaunch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.free()

    # -- one launch ---------------------------------------------------------------------------------------------------

    def load(self, inputs: Sequence[Arrays], poison: int, workspace: bool = True) -> None:
        """Copies the inputs in, and fills outputs, guards and the user's workspace with the byte ``poison``.

        Outputs with an initial value are filled with that. Without ``workspace`` it keeps what the launch before left.
        """
        for buffers, value in itertools.zip_longest(self._outputs, self._initial_values):
            for b in buffers:
                if value is not None:
                    self._acl.memcpy_h2d(b.pointer, _packed(np.full(b.spec.shape, value, numpy_dtype(b.spec.dtype))))
                elif b.spec.nbytes:
                    self._acl.memset(b.pointer, poison, b.spec.nbytes)
                    self._acl.unwritten(b.pointer, b.spec.nbytes)
        for buffers, arrays in zip(self._inputs, inputs, strict=True):
            for b, array in zip(buffers, as_tuple(arrays), strict=True):
                self._acl.memcpy_h2d(b.pointer, _packed(array))
        for b in self._all():
            self._acl.memset(b.guard, poison, _BLOCK)
        if self._workspace is not None:
            size = self._workspace.guard + _BLOCK - self._workspace.pointer
            if workspace:
                self._acl.memset(self._workspace.pointer, poison, size)
            else:
                self._acl.memset(self._workspace.guard, poison, _BLOCK)
            self._acl.unwritten(self._workspace.pointer - SYSTEM_WORKSPACE, SYSTEM_WORKSPACE + size, scratch=True)
        self._poison = poison

    def run(self, function: int, block_dim: int, stream: int = 0, options: LaunchOptions | None = None) -> None:
        """Launches. A kernel that fails is reported by the next synchronizing call."""
        self._acl.launch(function, block_dim, self._args, stream, options)

    def outputs(self) -> tuple[Arrays, ...]:
        """Copies of the outputs, in the case's order."""
        arrays = tuple(map(empty_arrays, self._case_outputs))
        self.read(arrays)
        return arrays

    def read(self, into: Sequence[Arrays]) -> None:
        """Copies the outputs into these arrays, in the case's order."""
        for buffers, arrays in zip(self._outputs, into, strict=True):
            for b, array in zip(buffers, as_tuple(arrays), strict=True):
                if b.spec.dtype == "int4":
                    pairs = self._acl.bytes_at(b.pointer, b.spec.nbytes).view(np.int8)
                    halves = np.stack([pairs << 4 >> 4, pairs >> 4], 1).reshape(-1)
                    array[...] = halves[: b.spec.numel].astype(array.dtype).reshape(b.spec.shape)
                else:
                    self._acl.memcpy_d2h(array, b.pointer)

    def damage(self, inputs: Sequence[Arrays]) -> list[str]:
        """What the launch changed and may not have: bytes behind tensors, inputs that no output shares, tiling data.

        Args:
            inputs: the arrays given to ``load``.
        """
        found = []
        for b in self._all():
            guard = self._acl.bytes_at(b.guard, _BLOCK)
            changed = np.flatnonzero(guard != self._poison)
            if changed.size:
                offset = _round_up(b.spec.nbytes) + int(changed[0])
                size = f"{b.spec}, {b.spec.nbytes} bytes"
                found.append(f"{changed.size} bytes behind {b.name} ({size}) from byte {offset} on")
        for pointer, data, what in self._constants:
            if self._acl.bytes_at(pointer, len(data)).tobytes() != data:
                found.append(what)
        for i, (buffers, arrays) in enumerate(zip(self._inputs, inputs, strict=True)):
            if i in self.in_place:
                continue
            for b, array in zip(buffers, as_tuple(arrays), strict=True):
                before = _packed(array).reshape(-1).view(np.uint8)
                after = self._acl.bytes_at(b.pointer, before.size)
                if not same_bytes(after, before):
                    at = int(np.flatnonzero(after != before)[0])
                    found.append(f"the input {b.name} ({b.spec}) from byte {at} on")
        return found

    def _all(self) -> list[_Buffer]:
        unshared = [b for b, shared in zip(self._outputs, self.in_place, strict=True) if shared is None]
        workspace = [self._workspace] if self._workspace is not None else []
        return [*(b for buffers in (*self._inputs, *unshared) for b in buffers), *workspace]


def same_bytes(a: Array, b: Array) -> bool:
    """Whether two contiguous arrays are equal, byte by byte; neither is copied."""
    if (a.shape, a.dtype) != (b.shape, b.dtype):
        return False
    pointers = map(ctypes.c_void_p, (a.ctypes.data, b.ctypes.data))
    return int(_LIBC.memcmp(*pointers, ctypes.c_size_t(a.nbytes))) == 0


def _packed(array: Array) -> Array:
    """The array as it lies on the device: two elements of int4 a byte, the first in the low half."""
    if dtype_name(array.dtype) != "int4":
        return np.ascontiguousarray(array)
    flat = np.zeros(-(-array.size // 2) * 2, np.uint8)
    flat[: array.size] = array.reshape(-1).astype(np.int8).view(np.uint8) & 0xF
    return flat[0::2] | flat[1::2] << 4


def as_tuple(arrays: Arrays) -> tuple[Array, ...]:
    """The tensors of one input or output: none where it is left out, several of a list."""
    if arrays is None:
        return ()
    return arrays if isinstance(arrays, tuple) else (arrays,)
