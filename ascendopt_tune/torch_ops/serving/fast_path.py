"""Hits served in C++ (fast/): is the library there, and what its tables hold.

The library is compiled once per content of the sources, compiler, torch, torch_npu and Python, in a process of its own
(fast_build.py), into the toolkit folder. Until it is there, and where it can't be, hits are served in Python.
``python -m ascendopt_tune.torch_ops.serving.fast_path`` compiles it ahead, for a container image.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import importlib.util
import logging
import os
import platform
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ... import paths
from ...build.toolkit import host_compiler
from ...device.launch import SYSTEM_WORKSPACE
from ...errors import AscendOptError, ToolchainError
from ...nouns.case import TensorSpec
from ...service.policy import scoped
from ...settings import DISABLE, settings
from ..device.faults import is_any_lost
from . import fast_build
from .binding import Fresh, Given, Shared
from .fast_build import Build
from .launcher import Launcher, system_area

log = logging.getLogger("ascendopt_tune")

_SOURCES = Path(__file__).with_name("fast")
_MODULE = "ascendopt_fast_path"
_FLAGS = ("-std=c++17", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-Wall", "-Wextra")
_LIBRARIES = ("torch_npu", "torch_python", "torch_cpu", "torch", "c10")


# -- the library ------------------------------------------------------------------------------------------------------


@dataclass
class _State:
    """``module``: the library. ``remark``: why there is none. ``child``: the process that was to compile it."""

    module: Any = None
    remark: str = ""
    child: subprocess.Popen[bytes] | None = None


_state = _State()


def ready() -> Any:
    """The library, if it is loaded and not switched off."""
    return _state.module if settings().fast_path else None


def library(wait: bool = False) -> Any:
    """The loaded library; None while there is none: it is being compiled (in the background, from now on), that failed,
    or ``ASCENDOPT_FAST_PATH=0``.

    Args:
        wait: compile it now, or wait for who does; half a minute, once.
    """
    if not settings().fast_path:
        return None
    if _state.module is None and not _state.remark:
        try:
            _state.module = _loaded(wait)
        except (AscendOptError, OSError, ImportError) as error:
            _state.remark = str(error)
            log.warning("hits are served in Python: %s", error)
    return _state.module


def is_compiling() -> bool:
    """Whether :func:`library` would have to wait."""
    return library() is None and settings().fast_path and not _state.remark


def remark() -> str:
    """Which language serves hits from now on, and why it isn't C++."""
    if not settings().fast_path:
        return "Python (ASCENDOPT_FAST_PATH=0)"
    if _state.module is not None:
        return "C++"
    return f"Python ({_state.remark or 'the C++ for it is not compiled yet'})"


def _loaded(wait: bool) -> Any:
    """Raises ToolchainError, OSError, or ImportError."""
    try:
        made = build()
    except ToolchainError:
        made = _made_elsewhere()
    if wait:
        try:
            made.run(wait=True)
        finally:
            if _state.child is not None:
                _state.child.wait()
    if not made.file.exists():
        if (reason := made.failure()) is not None:
            raise ToolchainError(
                f"the fast path can't be compiled: {reason}",
                f"Mend that and delete {made.said}, or set ASCENDOPT_FAST_PATH=0.",
            )
        if _state.child is None:
            _state.child = made.in_background()
        if _state.child.poll():
            raise ToolchainError(
                f"the fast path can't be compiled into {made.file.parent}.",
                "`python -m ascendopt_tune.torch_ops.serving.fast_path` tells why.",
            )
        return None
    spec = importlib.util.spec_from_file_location(_MODULE, made.file)
    if spec is None or spec.loader is None:
        raise ToolchainError(f"{made.file} can't be loaded.", "Delete it.")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with contextlib.suppress(OSError):
        os.utime(made.file)  # in use: `cache gc` goes by that
    return module


def build() -> Build:
    """What makes the library. Raises ToolchainError where there is no compiler, or no headers of torch and Python."""
    return _build(host_compiler(), paths.toolkit_dir(), _SOURCES)


def _made_elsewhere() -> Build:
    """The library that came along, where nothing can be compiled. Raises ToolchainError if there is none."""
    found = sorted(paths.toolkit_dir().glob(f"{_name(_SOURCES)}-*.so"))
    return Build((), found[0]) if found else build()


@functools.cache
def _name(sources: Path) -> str:
    """Of libraries made from these sources for these packages; then follows the compiler."""
    import torch_npu

    versions = (sys.version, str(torch.__version__), torch_npu.__version__, platform.machine())
    parts = (_FLAGS, _LIBRARIES, torch._C._GLIBCXX_USE_CXX11_ABI, versions)
    digest = hashlib.sha256(repr(parts).encode())
    for source in sorted(sources.iterdir()):
        digest.update(source.read_bytes())
    return f"fast-path-{digest.hexdigest()[:16]}"


@functools.cache
def _build(compiler: str, folder: Path, sources: Path) -> Build:
    import torch_npu

    places = [Path(str(package.__file__)).parent for package in (torch, torch_npu)]
    command = [compiler, *_FLAGS]
    for place in fast_build.headers(*places):
        command += ["-isystem", str(place)]
    command += [f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}", str(sources / "module.cpp")]
    command += [*(f"-L{place / 'lib'}" for place in places), *(f"-l{name}" for name in _LIBRARIES)]
    version = subprocess.run([compiler, "--version"], capture_output=True, check=False).stdout
    return Build(tuple(command), folder / f"{_name(sources)}-{hashlib.sha256(version).hexdigest()[:8]}.so")


# -- its tables -------------------------------------------------------------------------------------------------------


class FastTable:
    """The cases of one tuned operator that C++ serves. ``grad``: calls in which a gradient is wanted are Python's."""

    def __init__(self, library: Any, grad: bool) -> None:
        self._library = library
        self.lock = threading.Lock()
        self.table = library.Table(
            environment=os.environ._data,  # type: ignore[attr-defined]
            kill=os.environ.encodekey(DISABLE),
            scope=scoped,
            area_of=system_area,
            grad=grad,
        )

    def put(self, launcher: Launcher) -> None:
        """Has calls of the launcher's form served by it, if they are of a kind that C++ serves."""
        if is_any_lost():
            return  # Python looks whether a tensor is among them
        with self.lock:
            if launcher.fast is None:
                launcher.fast = self._case(launcher)
            if launcher.fast is not None:
                launcher.schedule()
                self.table.put(launcher.fast)

    def remove(self, launcher: Launcher) -> None:
        """Calls already under way are still served, and counted in the launcher's case."""
        with self.lock:
            if launcher.fast is not None:
                self.table.remove(launcher.fast)

    def bound(self, name: str, module: str) -> tuple[Any, Any]:
        """A function that serves one case once it is set, and the handle to set it by."""
        function, handle = self._library.bound(name, module, self.table)
        return function, handle

    def _case(self, launcher: Launcher) -> Any:
        plan, form, outputs = launcher.plan, launcher.form, launcher.entry.outputs
        specs = [*outputs, *(value for value in plan.case.inputs if value is not None)]
        if (
            form is None
            or not hasattr(launcher.launch, "argtypes")  # not a function of a C library
            or not all(isinstance(spec, TensorSpec) for spec in specs)
        ):
            return None
        number = self._library.dtype_number
        made = []
        for place, _, ((shape, _, dtype),), fill in launcher.outputs:
            kind, argument = self._place(place, launcher)
            if isinstance(place, Given) and form.key[argument] != (shape, dtype):
                return None  # what Python says is unfit
            given = not isinstance(place, Shared) or place.listed
            made.append(self._library.Output(kind, argument, given, (shape, number(dtype)), fill))
        own = launcher.workspace_bytes
        return self._library.Case(
            device=launcher.index,
            several=torch.npu.device_count() > 1,  # type: ignore[attr-defined]
            key=[(p[0], number(p[1])) if isinstance(p, tuple) else p for p in form.key],
            function=launcher.function,
            block_dim=launcher.block_dim,
            launch=ctypes.cast(launcher.launch, ctypes.c_void_p).value,
            tiling=launcher.tiling_address,
            workspace_bytes=SYSTEM_WORKSPACE + own if own else 0,
            system_bytes=SYSTEM_WORKSPACE,
            inputs=[-1 if pick is None else form.places[pick] for pick in plan.inputs],
            outputs=made,
            returned=[value if isinstance(value, int) else -1 - form.places[value[0]] for value in plan.returned],
        )

    def _place(self, place: Any, launcher: Launcher) -> tuple[int, int]:
        kinds, form = self._library.Output, launcher.form
        if isinstance(place, Fresh) or form is None:
            return kinds.NEW, -1
        if isinstance(place, Given):
            return (kinds.COPIED_INTO if place.copied else kinds.INTO), form.places[place.pick]
        pick = launcher.plan.inputs[place.position]
        return (kinds.NEW, -1) if pick is None else (kinds.OVER, form.places[pick])


if __name__ == "__main__":
    library(wait=True)
    print(f"hits are served in {remark()}")
    sys.exit(0 if _state.module is not None else 1)
