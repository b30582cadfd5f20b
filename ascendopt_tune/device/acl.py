"""ctypes binding of ``aclrtc*`` (compile kernel source) and ``aclrt*`` (memory, streams, events, load, launch).

The same calls go to a real CANN or to the virtual NPU; which one is a matter of the library that is loaded. In a
process where torch_npu runs already, its libraries are the ones used: they are found by SONAME. What only the virtual
NPU has (``vnpu_last_report``, launch options) is looked up and does nothing when absent.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt
from numpy import ctypeslib  # numpy imports it at its first use, which would be in every forked process anew

from ascendopt_tune.errors import DeviceError, KernelCompileError, ToolchainError

from .options import LaunchOptions

if TYPE_CHECKING:
    from ascendopt_tune.build.toolkit import Toolkit

_UNDEFINED = re.compile(r"undefined reference to [`'‘]([^'’]+)['’]")
_SHOWN = 4  # names that a message lists
#: One kernel argument: a ctypes value, or a device address.
Argument: TypeAlias = "ctypes._SimpleCData[Any] | ctypes.Structure | int"
Array: TypeAlias = npt.NDArray[Any]

_ALREADY_DONE = 100002  # ACL_ERROR_REPEAT_INITIALIZE: torch_npu, or another Acl, was first
_HOST_TO_DEVICE, _DEVICE_TO_HOST = 1, 2  # aclrtMemcpyKind
_OPTIONS_ATTRIBUTE = 0x764E5055  # kOptionsAttribute of vnpu/core/launch.h
_MOST_BYTES = 2**63 - 1  # of one allocation
_EVENT_FLAGS = 0x9  # ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE
_MAGIC_VECTOR_CORE = 0x41415246  # ACL_RT_BINARY_MAGIC_ELF_VECTOR_CORE


class _LoadOption(ctypes.Structure):
    """aclrtBinaryLoadOption: a type and a 16-byte union."""

    _fields_ = [("type", ctypes.c_int), ("value", ctypes.c_uint32 * 4)]


class _LaunchAttribute(ctypes.Structure):
    """aclrtLaunchKernelAttr with a pointer in its 16-byte union."""

    _fields_ = [("id", ctypes.c_int), ("value", ctypes.c_uint32 * 4)]


class _LaunchConfig(ctypes.Structure):
    _fields_ = [("attributes", ctypes.POINTER(_LaunchAttribute)), ("count", ctypes.c_size_t)]


class _LoadOptions(ctypes.Structure):
    _fields_ = [("options", ctypes.POINTER(_LoadOption)), ("count", ctypes.c_size_t)]


def load_library(name: str, folder: Path) -> ctypes.CDLL:
    """The library with SONAME ``name``: the one this process has loaded already, else the one in ``folder``.

    Raises:
        ToolchainError: neither is there, or it can't be loaded.
    """
    try:
        return ctypes.CDLL(name, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    except OSError:
        pass
    try:
        return ctypes.CDLL(str(folder / name))
    except OSError as error:
        raise ToolchainError(
            f"The library {name} can't be loaded from {folder}: {error}.",
            "Check the toolkit with `ascendopt-tune doctor`.",
        ) from None


def _initialize_torch_npu() -> None:
    """Lets torch_npu, where this process has it, initialize before us.

    A device that is set already it takes for somebody else's, and never gives cached memory on it back.
    """
    npu = getattr(sys.modules.get("torch"), "npu", None) if "torch_npu" in sys.modules else None
    if npu is not None:
        with contextlib.suppress(RuntimeError):  # in a fork of an initialized process it refuses, and isn't usable
            npu.init()


class Binary:
    """A kernel binary that is loaded on the device. Unloaded by ``unload`` or at the end of a ``with`` block."""

    def __init__(self, acl: Acl, handle: ctypes.c_void_p) -> None:
        self._acl = acl
        self._handle = handle
        self._functions: dict[str, int] = {}

    def function(self, name: str) -> int:
        """The handle of kernel ``name``. Raises DeviceError when the binary has no such kernel."""
        if name not in self._functions:
            handle = ctypes.c_void_p()
            self._acl.call("aclrtBinaryGetFunction", self._handle, name.encode(), ctypes.byref(handle))
            self._functions[name] = handle.value or 0
        return self._functions[name]

    def unload(self) -> None:
        """Unloads the binary; its function handles are dead from then on. Harmless when repeated."""
        if self._handle:
            self._acl.call("aclrtBinaryUnLoad", self._handle)
            self._handle = ctypes.c_void_p()
            self._functions.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.unload()


class Acl:
    """The device of this process.

    Handles and device addresses are plain integers. Every method raises DeviceError, with the aclError in ``code`` and
    the runtime's own text, when the call fails. A kernel that fails does so at the next synchronizing call
    (``synchronize``, ``memcpy_d2h``, ...), not at its launch.
    """

    def __init__(self, toolkit: Toolkit, device: int = 0) -> None:
        """Initializes the runtime and makes ``device`` this thread's device.

        Raises:
            ToolchainError: the toolkit's libraries can't be loaded, or the process runs the other kind of toolkit.
        """
        self._rt = load_library("libascendcl.so", toolkit.lib64)
        self._rt.aclGetRecentErrMsg.restype = ctypes.c_char_p
        self._rt.aclrtGetSocName.restype = ctypes.c_char_p
        self._lib64 = toolkit.lib64
        #: Folders whose source lines are not the user's.
        self.foreign = [toolkit.include, toolkit.include.resolve()]
        self._rtc: ctypes.CDLL | None = None
        #: What launches are told that bring no options of their own.
        self.options = LaunchOptions()
        #: Whether the virtual NPU answers.
        self.virtual = hasattr(self._rt, "vnpu_last_report")
        if self.virtual:
            self._rt.vnpu_last_report.restype = ctypes.c_char_p
            self._rt.vnpu_last_error.restype = ctypes.c_char_p
            self._rt.vnpu_access_log.restype = ctypes.c_char_p
        if self.virtual != (toolkit.kind == "virtual"):
            loaded = "the virtual NPU" if self.virtual else "a real CANN"
            raise ToolchainError(
                f"This process already runs {loaded}, and the toolkit {toolkit.prefix} is of the other kind.",
                "Start a new process, with ASCENDOPT_TARGET set to the target you want.",
            )
        _initialize_torch_npu()
        code = self._rt.aclInit(None)
        if code not in (0, _ALREADY_DONE):
            self._raise("aclInit", code)
        self.set_device(device)

    # -- calls and errors ---------------------------------------------------------------------------------------------

    def call(self, name: str, *args: object) -> None:
        """Calls a function of libascendcl and checks its result."""
        code = getattr(self._rt, name)(*args)
        if code != 0:
            self._raise(name, code)

    def raw(self, name: str) -> Any:
        """A function of libascendcl for callers that count microseconds: six machine words in, an error code out.

        Whoever calls it checks the code, with :meth:`fail`.
        """
        function = self._rt[name]  # an object of its own, so the argument types are nobody else's
        word = ctypes.c_void_p
        function.argtypes = [word, ctypes.c_uint32, word, word, word, word]
        return function

    def fail(self, name: str, code: int) -> None:
        """Raises DeviceError for what a function returned."""
        self._raise(name, code)

    def recent_message(self) -> str:
        """What the runtime says of this thread's last error; it says so once."""
        return (self._rt.aclGetRecentErrMsg() or b"").decode(errors="replace").strip() or "no message"

    def _raise(self, name: str, code: int) -> None:
        raise DeviceError(f"{name} failed with error {code}: {self.recent_message()}", code=code)

    # -- compile, load, launch ----------------------------------------------------------------------------------------

    def compile(
        self, source: str, name: str, options: Sequence[str] = (), headers: Mapping[str, str] | None = None
    ) -> bytes:
        """Compiles kernel source and returns the binary.

        Args:
            source: the text of the translation unit.
            name: its file name in the compiler's messages.
            options: options of the device compiler, for instance ``--npu-arch=dav-2201``.
            headers: text of headers by the name the source includes them with.

        Raises:
            KernelCompileError: with the compiler's log.
        """
        rtc = self._compiler()
        texts = headers or {}
        program = ctypes.c_void_p()
        header_texts = (ctypes.c_char_p * max(len(texts), 1))(*(text.encode() for text in texts.values()))
        header_names = (ctypes.c_char_p * max(len(texts), 1))(*(text.encode() for text in texts))
        code = rtc.aclrtcCreateProg(
            ctypes.byref(program), source.encode(), name.encode(), len(texts), header_texts, header_names
        )
        if code != 0:
            raise KernelCompileError(f"{name}: aclrtcCreateProg failed with error {code}.")
        try:
            words = (ctypes.c_char_p * max(len(options), 1))(*(option.encode() for option in options))
            code = rtc.aclrtcCompileProg(program, len(options), words)
            if code != 0:
                log = self._compile_log(rtc, program)
                first = next((line for line in log.splitlines() if "error" in line or "aclrtc:" in line), log.strip())
                if missing := sorted(set(_UNDEFINED.findall(log))):
                    shown = ", ".join(missing[:_SHOWN]) + (
                        f" and {more} more" if (more := len(missing) - _SHOWN) > 0 else ""
                    )
                    first = f"it uses {shown}, which neither the file nor what it includes defines"
                uncovered = [line for line in log.splitlines() if line.startswith("virtual NPU: ")]
                message = "\n".join([f"{name} does not compile (error {code}): {first}", *uncovered])
                raise KernelCompileError(message, "", log)
            size = ctypes.c_size_t()
            code = rtc.aclrtcGetBinDataSize(program, ctypes.byref(size))
            data = ctypes.create_string_buffer(max(size.value, 1))
            code = code or rtc.aclrtcGetBinData(program, data)
            if code != 0:
                raise KernelCompileError(f"{name}: the compiled binary can't be read, error {code}.")
            return data.raw[: size.value]
        finally:
            rtc.aclrtcDestroyProg(ctypes.byref(program))

    def _compiler(self) -> ctypes.CDLL:
        if self._rtc is None:
            self._rtc = load_library("libacl_rtc.so", self._lib64)
        return self._rtc

    @staticmethod
    def _compile_log(rtc: ctypes.CDLL, program: ctypes.c_void_p) -> str:
        size = ctypes.c_size_t()
        if rtc.aclrtcGetCompileLogSize(program, ctypes.byref(size)) != 0:
            return ""
        log = ctypes.create_string_buffer(max(size.value, 1))
        rtc.aclrtcGetCompileLog(program, log)
        return log.value.decode(errors="replace")

    def load(self, binary: bytes) -> Binary:
        """Loads a binary of ``compile`` for the vector cores."""
        option = _LoadOption(2, (ctypes.c_uint32 * 4)(_MAGIC_VECTOR_CORE, 0, 0, 0))
        options = _LoadOptions(ctypes.pointer(option), 1)
        handle = ctypes.c_void_p()
        size = ctypes.c_size_t(len(binary))
        self.call("aclrtBinaryLoadFromData", binary, size, ctypes.byref(options), ctypes.byref(handle))
        return Binary(self, handle)

    def launch(
        self,
        function: int,
        block_dim: int,
        args: Sequence[Argument],
        stream: int = 0,
        options: LaunchOptions | None = None,
    ) -> None:
        """Launches a kernel on ``block_dim`` cores.

        Args:
            function: handle from ``Binary.function``.
            args: one per kernel parameter, in order: device addresses as integers, anything else as a ctypes value.
            stream: handle from ``stream``, or torch's raw stream; 0 is the default stream.
            options: of this launch; default: ``self.options``.
        """
        values = [ctypes.c_void_p(argument) if isinstance(argument, int) else argument for argument in args]
        pointers = (ctypes.c_void_p * max(len(values), 1))(*(ctypes.addressof(value) for value in values))
        config = None
        told = options or self.options
        if self.virtual and told != LaunchOptions():
            machine = told.machine()
            attribute = _LaunchAttribute(_OPTIONS_ATTRIBUTE)
            ctypes.memmove(attribute.value, ctypes.byref(ctypes.c_void_p(ctypes.addressof(machine))), 8)
            config = _LaunchConfig(ctypes.pointer(attribute), 1)
        # The values have to live until the call returns; the runtime has copied them by then.
        self.call(
            "aclrtLaunchKernelWithArgsArray",
            ctypes.c_void_p(function),
            ctypes.c_uint32(block_dim),
            ctypes.c_void_p(stream),
            ctypes.byref(config) if config is not None else None,
            pointers,
        )

    @contextlib.contextmanager
    def with_options(self, **changes: Any) -> Iterator[None]:
        """Inside, launches that bring no options have these fields of :class:`LaunchOptions` changed."""
        before, self.options = self.options, replace(self.options, **changes)
        try:
            yield
        finally:
            self.options = before

    # -- memory -------------------------------------------------------------------------------------------------------

    def malloc(self, nbytes: int) -> int:
        """The address of ``nbytes`` of device memory, 512-byte aligned, contents undefined."""
        pointer = ctypes.c_void_p()
        # A size beyond size_t (a candidate's workspace) is more than there is; it must not wrap to a small one.
        self.call("aclrtMalloc", ctypes.byref(pointer), ctypes.c_size_t(min(nbytes, _MOST_BYTES)), 0)
        return pointer.value or 0

    def free(self, pointer: int) -> None:
        """Frees memory of ``malloc``."""
        self.call("aclrtFree", ctypes.c_void_p(pointer))

    def memcpy_h2d(self, pointer: int, array: Array) -> None:
        """Copies all bytes of a C-contiguous ``array`` to device address ``pointer``."""
        self._memcpy(pointer, self._address(array), array.nbytes, _HOST_TO_DEVICE)

    def memcpy_d2h(self, array: Array, pointer: int) -> None:
        """Fills a C-contiguous ``array`` from device address ``pointer``, after everything issued before."""
        self.call("aclrtSynchronizeDevice")
        self._memcpy(self._address(array), pointer, array.nbytes, _DEVICE_TO_HOST)

    def bytes_at(self, pointer: int, nbytes: int) -> Array:
        """``nbytes`` bytes from device address ``pointer`` on, after everything issued before; to be read soon.

        On the virtual NPU this is the device's memory itself, elsewhere a copy.
        """
        if self.virtual and nbytes:
            self.call("aclrtSynchronizeDevice")
            return ctypeslib.as_array((ctypes.c_uint8 * nbytes).from_address(pointer))
        array = np.empty(nbytes, np.uint8)
        self.memcpy_d2h(array, pointer)
        return array

    def memset(self, pointer: int, value: int, nbytes: int) -> None:
        """Sets ``nbytes`` bytes from device address ``pointer`` on to ``value`` (0..255)."""
        size = ctypes.c_size_t(nbytes)
        self.call("aclrtMemset", ctypes.c_void_p(pointer), size, ctypes.c_int32(value), size)

    def unwritten(self, pointer: int, nbytes: int, scratch: bool = False) -> None:
        """Tells the virtual NPU that nobody has written these bytes yet, whatever they hold; nothing on a real one.

        Args:
            scratch: nobody reads what a kernel leaves there (a workspace).

        Raises:
            DeviceError: the bytes are not in one allocation.
        """
        if self.virtual and nbytes:
            self.call("vnpu_unwritten", ctypes.c_void_p(pointer), ctypes.c_uint64(nbytes), ctypes.c_int(scratch))

    def _memcpy(self, destination: int, source: int, nbytes: int, kind: int) -> None:
        size = ctypes.c_size_t(nbytes)
        if nbytes:
            self.call("aclrtMemcpy", ctypes.c_void_p(destination), size, ctypes.c_void_p(source), size, kind)

    @staticmethod
    def _address(array: Array) -> int:
        if not array.flags.c_contiguous:
            raise DeviceError("An array that is copied to or from the device must be C-contiguous.")
        return int(np.asarray(array).ctypes.data)

    # -- streams and events -------------------------------------------------------------------------------------------

    def stream(self) -> int:
        """A new stream."""
        handle = ctypes.c_void_p()
        self.call("aclrtCreateStream", ctypes.byref(handle))
        return handle.value or 0

    def destroy_stream(self, stream: int) -> None:
        """Destroys a stream of ``stream``."""
        self.call("aclrtDestroyStream", ctypes.c_void_p(stream))

    def synchronize(self, stream: int | None = None) -> None:
        """Waits for one stream, or for the whole device when ``stream`` is None; raises what failed there."""
        if stream is None:
            self.call("aclrtSynchronizeDevice")
        else:
            self.call("aclrtSynchronizeStream", ctypes.c_void_p(stream))

    def create_event(self) -> int:
        """A new event that can take the time."""
        handle = ctypes.c_void_p()
        self.call("aclrtCreateEventExWithFlag", ctypes.byref(handle), ctypes.c_uint32(_EVENT_FLAGS))
        return handle.value or 0

    def destroy_event(self, event: int) -> None:
        """Destroys an event of ``create_event``."""
        self.call("aclrtDestroyEvent", ctypes.c_void_p(event))

    def record(self, event: int, stream: int = 0) -> None:
        """Records ``event`` behind everything issued on ``stream``."""
        self.call("aclrtRecordEvent", ctypes.c_void_p(event), ctypes.c_void_p(stream))

    def elapsed_us(self, start: int, end: int) -> float:
        """Microseconds between two recorded events, after waiting for ``end``; modelled time on the virtual NPU."""
        self.call("aclrtSynchronizeEvent", ctypes.c_void_p(end))
        milliseconds = ctypes.c_float()
        self.call("aclrtEventElapsedTime", ctypes.byref(milliseconds), ctypes.c_void_p(start), ctypes.c_void_p(end))
        return milliseconds.value * 1e3

    # -- device -------------------------------------------------------------------------------------------------------

    def set_device(self, device: int) -> None:
        """Makes ``device`` this thread's device."""
        self.call("aclrtSetDevice", ctypes.c_int32(device))

    def soc_name(self) -> str:
        """The part's name as CANN spells it, for instance ``Ascend910B2``."""
        return (self._rt.aclrtGetSocName() or b"").decode()

    def cores_beside(self) -> int:
        """How many cores of this thread's last launch ran beside others (option ``threads``); 0 on a real NPU."""
        return int(self._rt.vnpu_cores_beside()) if self.virtual else 0

    def write_trace(self, path: Path) -> bool:
        """Writes the timeline of this thread's last launch (see ``vnpu_trace_json``); False when there is none.

        Needs ``LaunchOptions.trace``, and the kernel's binary still loaded.
        """
        return self.virtual and self._rt.vnpu_trace_json(str(path).encode()) == 0

    def replay(self, clocks: Sequence[Mapping[str, float]], kept: int | None = None) -> list[float]:
        """Modelled task durations (us) of a launch under other clocks; nothing is executed.

        ``clocks``: chip constants to replace, by key (``launch.base_us``); an empty one is the clock in force.
        ``kept``: a number of :meth:`keep_replay`; default: this thread's last launch.

        Raises:
            DeviceError: an unknown constant, nothing was timed, or this is not the virtual NPU.
        """
        return [float(task) for task in self.replay_times(clocks, kept)[:, 0]]

    def replay_times(self, clocks: Sequence[Mapping[str, float]], kept: int | None = None) -> npt.NDArray[np.float64]:
        """As :meth:`replay`: an array [clocks, 6] of task, core, vector, scalar, MTE2 and MTE3 times (us)."""
        self._need_virtual()
        lines = "\n".join(" ".join(f"{k}={v:.17g}" for k, v in clock.items()) for clock in clocks).encode()
        times = np.empty((len(clocks), 6))
        address = times.ctypes.data_as(ctypes.POINTER(ctypes.c_double))
        if kept is None:
            code = self._rt.vnpu_replay(lines, address, len(clocks))
        else:
            code = self._rt.vnpu_replay_kept(kept, lines, address, len(clocks))
        if code != 0:
            raise DeviceError(self._rt.vnpu_last_error().decode(errors="replace"))
        return times

    def keep_replay(self) -> int:
        """Keeps this thread's last launch for :meth:`replay` until :meth:`release_replay`; its number.

        Raises:
            DeviceError: nothing was timed, or this is not the virtual NPU.
        """
        self._need_virtual()
        number = int(self._rt.vnpu_replay_keep())
        if number == 0:
            raise DeviceError("there is no timed launch to keep.")
        return number

    def release_replay(self, number: int) -> None:
        """Frees a launch of :meth:`keep_replay`."""
        self._need_virtual()
        self._rt.vnpu_replay_release(number)

    def _need_virtual(self) -> None:
        if not self.virtual:
            raise DeviceError("only launches of the virtual NPU can be replayed.", "Use --target virtual.")

    def report(self) -> dict[str, Any]:
        """What the virtual NPU tells of this thread's last launch (see ``vnpu_last_report``); {} on a real one."""
        if not self.virtual:
            return {}
        text = self._rt.vnpu_last_report()
        return dict(json.loads(text)) if text else {}

    def access_log(self) -> dict[str, Any]:
        """What every core of this thread's last launch issued and touched, with option ``log``; virtual NPU only."""
        return dict(json.loads(self._rt.vnpu_access_log()))
