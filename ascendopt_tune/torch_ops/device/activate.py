"""Makes the unmodified torch_npu wheel run on the virtual NPU where there is no real one.

``import ascendopt_tune`` calls :func:`install`. From then on the first ``import torch`` (or ``import torch_npu``) finds
the virtual toolkit's libraries already loaded, under the SONAMEs torch_npu links against, and ``torch.npu`` works.
Where ``torch`` was imported before without torch_npu, :func:`install` brings torch_npu in at once. The one line is::

    import ascendopt_tune  # before torch

A real CANN is never shadowed: when one is found, nothing is done unless ``ASCENDOPT_TARGET=virtual`` asks for it.

What has to be done before torch_npu is loaded, and why:

* the libraries are matched by SONAME, so loading ours first is enough; no environment variable takes part;
* ``TASK_QUEUE_ENABLE=0``: with torch_npu's task queue a failing operation is reported once, and every later one on the
  stream is dropped without a word;
* a CUDA build of torch makes torch_npu end the process (SIGABRT in a static initializer), so it is refused before.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import importlib.machinery
import importlib.util
import io
import os
import re
import sys
from collections.abc import Iterator, Sequence
from importlib.abc import MetaPathFinder
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from ...errors import ToolchainError
from ...nouns.chip import load_chip
from .runtime import is_virtual

if TYPE_CHECKING:
    from ...build.toolkit import Toolkit

# What torch_npu 2.13 needs to be found by SONAME; libvnpu.so first, because the others need it.
_LIBRARIES = ("libvnpu.so", "libascendcl.so", "libacl_op_compiler.so", "libhccl.so", "libge_runner.so", "libgraph.so",
              "libacl_tdt_channel.so", "libacl_rtc.so", "libmspti.so")  # fmt: skip
_NO_CANN_NOTICE = "ASCEND_HOME_PATH environment variable is not set"

_prepared: Toolkit | None = None


class _Hook(MetaPathFinder):
    """Prepares the process when torch or torch_npu is executed; asking where they are does nothing."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in ("torch", "torch_npu"):
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path)
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            if fullname == "torch":
                if _autoload():
                    prepare()
                execute(module)
            elif (virtual := prepare()) is None:
                execute(module)
            else:
                with _without_notice():
                    execute(module)
                from . import fallback, profiler  # need torch, which importing this package must not

                fallback.take_over()
                profiler.take_over(virtual.prefix)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


@contextlib.contextmanager
def _without_notice() -> Iterator[None]:
    """Sends what torch_npu prints while it is imported to stderr, without its notice that there is no CANN."""
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            yield
    finally:
        for line in printed.getvalue().splitlines():
            if _NO_CANN_NOTICE not in line:
                print(line, file=sys.stderr)


def _autoload() -> bool:
    """Whether ``import torch`` imports torch_npu (PyTorch's own switch)."""
    return os.environ.get("TORCH_DEVICE_BACKEND_AUTOLOAD", "1") != "0"


def _folder(package: str) -> Path | None:
    """Where an importable package lies, without importing it."""
    if package in sys.modules:
        file = sys.modules[package].__file__
        return Path(file).parent if file else None
    spec = importlib.machinery.PathFinder.find_spec(package)
    locations = list(spec.submodule_search_locations or []) if spec is not None else []
    return Path(locations[0]) if locations else None


def _refuse_cuda_build() -> None:
    """Raises ToolchainError when the installed torch is one that torch_npu can't live with."""
    folder = _folder("torch")
    file = folder / "version.py" if folder is not None else None
    if file is None or not file.exists():
        return
    text = file.read_text(encoding="utf-8")
    cuda = re.search(r"^cuda\b.*=\s*'(.+)'", text, re.MULTILINE)
    version = re.search(r"^__version__ = '(\d+)\.(\d+)", text, re.MULTILINE)
    # Seen to abort: 2.13.0+cu130, 2.14.0+cu130. Seen to work: 2.9.0+cu128.
    if cuda and version and (int(version[1]), int(version[2])) > (2, 9):
        raise ToolchainError(
            f"The installed torch is a CUDA {cuda[1]} build; torch_npu ends the process when it is loaded into one.",
            "Install the CPU build of torch 2.13.0, or set TORCH_DEVICE_BACKEND_AUTOLOAD=0 to use torch alone.",
        )


def _real_cann_on_search_path() -> bool:
    """Whether the dynamic linker would find a real libascendcl.so (a CANN that its environment script has set up)."""
    try:
        return not hasattr(ctypes.CDLL("libascendcl.so"), "vnpu_last_report")
    except OSError:
        return False


def prepare() -> Toolkit | None:
    """Loads the virtual toolkit's libraries into this process if torch_npu is to run on it. Repeating it is free.

    Returns:
        The virtual toolkit, or None when there is nothing to do: torch_npu is not installed, a real CANN serves, or
        ``ASCENDOPT_TARGET=npu`` asks for one.

    Raises:
        ToolchainError: torch is a CUDA build, the toolkit can't be built, its libraries can't be loaded, or a real NPU
            is asked for and there is no CANN.
        SettingsError: an ``ASCENDOPT_`` variable has a bad name or value.
        CaseError: there is no chip of that name.
    """
    global _prepared
    if _prepared is not None:
        return _prepared
    from ... import settings
    from ...build import toolkit

    target = settings.settings().target
    if _folder("torch_npu") is None:
        return None
    cann = toolkit.real_cann() is not None or _real_cann_on_search_path()
    if target == "npu" and not cann:  # torch would say that a library of CANN's is missing, and not who wants it
        raise ToolchainError(
            "ASCENDOPT_TARGET=npu asks for a real NPU, and no CANN toolkit was found.",
            "Install CANN >= 9.0 and source its set_env.sh, or take the virtual NPU: ASCENDOPT_TARGET=virtual.",
        )
    if cann and target != "virtual":
        return None
    _refuse_cuda_build()
    chip = settings.settings().chip
    if not chip.endswith(".toml"):  # a file is read, and kept, where it is needed
        load_chip(chip)  # else torch_npu says "Unsupported soc version", at the first tensor
    virtual = toolkit.virtual()
    from ...device.acl import load_library

    for name in _LIBRARIES:
        load_library(name, virtual.lib64)
    os.environ["TASK_QUEUE_ENABLE"] = "0"
    if cann:
        # torch_npu would take operators from there, and those would run against the wrong runtime.
        for name in ("ASCEND_HOME_PATH", "ASCEND_OPP_PATH"):
            os.environ.pop(name, None)
    else:
        # For children that import torch before this package (multiprocessing's spawn).
        paths = os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
        if str(virtual.lib64) not in paths:
            os.environ["LD_LIBRARY_PATH"] = os.pathsep.join(p for p in (str(virtual.lib64), *paths) if p)
    _prepared = virtual
    return virtual


def watch_imports() -> None:
    """Arranges for torch_npu to work whenever it is imported; called by ``import ascendopt_tune``.

    Cheap (no toolkit is built, torch is not imported) unless torch has been imported without torch_npu.
    """
    if "torch_npu" in sys.modules or any(isinstance(finder, _Hook) for finder in sys.meta_path):
        return
    sys.meta_path.insert(0, _Hook())
    # While torch itself is being imported (its backends are) this package may be, too: then the hook does the work.
    complete = hasattr(sys.modules.get("torch"), "npu") or hasattr(sys.modules.get("torch"), "_import_device_backends")
    if complete and _folder("torch_npu") is not None and prepare() is not None:
        importlib.import_module("torch_npu")


def activate() -> bool:
    """Imports torch and torch_npu, on the virtual NPU where there is no real one. Returns :func:`is_virtual`.

    Raises:
        ToolchainError: torch or torch_npu is not installed, or as :func:`prepare`.
    """
    watch_imports()
    for package in ("torch", "torch_npu"):
        if _folder(package) is None:
            raise ToolchainError(
                f"The package {package} is not installed.",
                "Install both: pip install torch==2.13.0 torch-npu==2.13.0 (the CPU build of torch).",
            )
        importlib.import_module(package)
    return is_virtual()
