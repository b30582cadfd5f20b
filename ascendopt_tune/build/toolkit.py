"""Which toolkit answers: a real CANN on the machine, or the virtual NPU, built here on first use.

The virtual toolkit is laid out as CANN's (``include/``, ``lib64/``) below the toolkit folder of ``paths.py``, one
folder per content hash of its sources, the compiler and the CPU's features. It is built in a temporary folder under a
lock and renamed into place, so that many processes may ask for it at once and none sees half of it.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from .. import paths
from ..errors import ToolchainError
from ..files import locked
from ..settings import settings
from . import headers, libraries, matmul_headers, shipped
from .libraries import VNPU

# Kernels spend their time in the library, so they are compiled for speed of compilation: -Og takes a third less than
# -O1 (rms_norm's kernel), and a launch of scalar reads alone a tenth more. Which of two loads through a pointer of its
# own a kernel makes, and is charged for, the optimization decides with either. -g1 gives reports their lines.
# The same list as in vnpu/runtime/rtc_compile.cpp: a precompiled header serves only compilations with its own flags.
KERNEL_FLAGS = ("-std=c++17", "-Og", "-g1", "-fPIC", "-fvisibility=hidden", "-fno-gnu-unique", "-ffunction-sections",
                "-ffp-contract=off", "-fno-strict-aliasing", "-Wno-attributes", "-fno-omit-frame-pointer",
                "-fno-jump-tables", "-fno-stack-protector", "-fno-ident")  # fmt: skip
# g++ alone has all of them: every load and store of a kernel's own code as a call, see vnpu/core/guard.h.
GUARD_FLAGS = ("-fsanitize=kernel-address", "--param=asan-instrumentation-with-call-threshold=0",
               "--param=asan-stack=0", "--param=asan-globals=0")  # fmt: skip

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Toolkit:
    """``kind`` is ``virtual`` or ``cann``; ``version`` goes into cache keys."""

    kind: str
    prefix: Path
    version: str

    @property
    def include(self) -> Path:
        return self.prefix / "include"

    @property
    def lib64(self) -> Path:
        return self.prefix / "lib64"

    @property
    def target(self) -> str:
        """What a measurement with this toolkit is: ``virtual`` (modelled) or ``npu`` (measured)."""
        return "virtual" if self.kind == "virtual" else "npu"


def find(target: str = "auto", progress: Progress | None = None) -> Toolkit:
    """The toolkit for ``target``: ``auto`` is a real CANN where there is one, else the virtual NPU.

    Raises:
        ToolchainError: ``npu`` was asked for and there is no CANN, the virtual toolkit can't be built, or where the
            settings say (``matmul_headers``) there is no Matmul.
    """
    if target not in ("auto", "virtual", "npu"):
        raise ToolchainError(f"unknown target {target!r}.", "Targets: auto, virtual, npu.")
    prefix = real_cann() if target != "virtual" else None
    if prefix is not None:
        return Toolkit("cann", prefix, _cann_version(prefix))
    if target == "npu":
        raise ToolchainError(
            "no CANN toolkit was found (ASCEND_HOME_PATH, ASCEND_TOOLKIT_HOME, /usr/local/Ascend).",
            "Install CANN >= 9.0 and source its set_env.sh, or use --target virtual.",
        )
    toolkit = virtual(progress) if progress else virtual()  # one toolkit per process, whoever asks
    others = matmul_headers.chosen(toolkit.prefix.parent)
    return replace(toolkit, version=f"{toolkit.version}-matmul-{others.digest}") if others is not None else toolkit


def real_cann() -> Path | None:
    """Prefix of the installed CANN toolkit that has the run-time compiler, or None."""
    roots = [os.environ.get("ASCEND_HOME_PATH"), os.environ.get("ASCEND_TOOLKIT_HOME")]
    roots += ["/usr/local/Ascend/ascend-toolkit/latest", "/usr/local/Ascend/latest", "/usr/local/Ascend/cann"]
    for root in roots:
        if root and (Path(root) / "lib64" / "libascendcl.so").exists():
            return Path(root)
    return None


def _cann_version(prefix: Path) -> str:
    for name in ("version.info", "version.cfg", "compiler/version.info"):
        file = prefix / name
        if file.exists():
            return "cann-" + hashlib.sha256(file.read_bytes()).hexdigest()[:12]
    return "cann-unknown"


@cache
def host_compiler() -> str:
    """Path of the host C++ compiler: ``ASCENDOPT_CXX``, else g++, else clang++.

    Raises:
        ToolchainError: there is none, or the one that was named doesn't run.
    """
    wanted = settings().cxx
    for name in (wanted,) if wanted else ("g++", "clang++"):
        path = shutil.which(name)
        if path:
            return path
    raise ToolchainError(
        f"no C++ compiler: {f'{wanted} is not' if wanted else 'neither g++ nor clang++ is'} on PATH.",
        "Install g++ 12 or newer (Debian: apt-get install g++) or name one in ASCENDOPT_CXX.",
    )


def _source_hash() -> str:
    """Of what decides a modelled result: every source of the virtual NPU, and how it is compiled."""
    h = hashlib.sha256()
    for file in sorted(
        p for p in VNPU.rglob("*") if p.is_file() and p.suffix in (".h", ".hpp", ".cpp", ".map", ".toml")
    ):
        h.update(str(file.relative_to(VNPU)).encode() + b"\0" + file.read_bytes() + b"\0")
    for recipe in (Path(__file__), Path(headers.__file__), Path(libraries.__file__)):
        h.update(recipe.read_bytes())
    return h.hexdigest()[:16]


def _machine_hash(compiler: str) -> str:
    """Of what decides whether a built toolkit runs here: a home folder may be shared by machines of other kinds."""
    h = hashlib.sha256(subprocess.run([compiler, "--version"], capture_output=True, check=False).stdout)
    h.update(" ".join(sorted(shipped.processor_features())).encode())  # -march=native
    return h.hexdigest()[:8]


@cache
def virtual(progress: Progress | None = None) -> Toolkit:
    """The virtual NPU's toolkit; compiles it on first use (once per machine; a minute or two).

    Args:
        progress: told in a line what is being built; default: one line on stderr when a build is needed.

    Raises:
        ToolchainError: no compiler, the compiler fails, or the toolkit folder can't be written.
    """
    compiler = host_compiler()
    # The version goes into cache keys, so it must not name this machine: a result may be shipped to another one.
    version = _source_hash()
    folder = paths.toolkit_dir()
    prefix = folder / f"{version}-{_machine_hash(compiler)}{'-sanitized' if settings().sanitize else ''}"
    toolkit = Toolkit("virtual", prefix, f"vnpu-{version}-{platform.machine()}")
    if (prefix / "complete").exists():
        return toolkit
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder / f"{prefix.name}.lock"):
            if not (prefix / "complete").exists():
                say = progress or (lambda text: print(text, file=sys.stderr, flush=True))
                with tempfile.TemporaryDirectory(dir=folder, prefix="building-") as work:
                    made = Path(work) / "toolkit"
                    made.mkdir()  # with the rights that the user's umask gives: others may be meant to read it
                    if not _take_built(compiler, version, made, say):
                        say("building the virtual NPU's toolkit (once; takes a minute or two) ...")
                        _build(compiler, made, "native")
                    if _source_hash() != version:
                        raise ToolchainError(
                            f"the virtual NPU's sources in {VNPU} changed while they were being compiled.", "Try again."
                        )
                    shutil.rmtree(prefix, ignore_errors=True)
                    os.rename(made, prefix)
                _build_precompiled_header(compiler, prefix)
                (prefix / "complete").write_text(version + "\n")
    except OSError as e:
        raise ToolchainError(
            f"the virtual toolkit can't be written to {folder}: {e.strerror or e}.",
            "Free some space, or point ASCENDOPT_CACHE_DIR at a folder you can write.",
        ) from e
    return toolkit


def _take_built(compiler: str, version: str, work: Path, say: Progress) -> bool:
    """Whether a toolkit that was built elsewhere serves here; then it is copied into ``work``."""
    built = paths.built_toolkit()
    if built is None or settings().sanitize:
        return False
    why = shipped.why_not(built, version, compiler)
    if why:
        say(f"the built toolkit in {built} is not used: {why}")
        return False
    say("taking the virtual NPU's toolkit, which is built already (once; takes seconds) ...")
    shipped.take(built, work)
    return True


def build_for_others(out: Path, progress: Progress) -> shipped.Built:
    """Builds a virtual toolkit into ``out``, an empty or new folder, that machines of this kind can take.

    Args:
        progress: told in a line what is being built.

    Raises:
        ToolchainError: no compiler, it fails, an architecture that this isn't prepared for, or a folder with something
            in it.
    """
    compiler = host_compiler()
    about = shipped.Built.here(_source_hash(), compiler)
    if about is None:
        raise ToolchainError(f"there is no built toolkit for {platform.machine()}.", "It is for x86_64 and aarch64.")
    try:
        out.mkdir(parents=True, exist_ok=True)
        if any(out.iterdir()):
            raise ToolchainError(f"{out} is not empty.", "Name a new folder.")
        progress(f"building the virtual NPU's toolkit for {about.march} (takes a minute or two) ...")
        _build(compiler, out, about.march)
        about.write(out)
    except OSError as e:
        raise ToolchainError(f"the toolkit can't be written to {out}: {e.strerror or e}.") from e
    return about


def _build(compiler: str, work: Path, march: str) -> None:
    include = work / "include"
    for folder in (VNPU / "include", VNPU / "host" / "include"):
        shutil.copytree(folder, include, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.gch"))
    headers.write_forwarding_headers(VNPU / "forwarding.toml", include)
    shutil.copytree(VNPU / "chips", work / "chips")
    libraries.build(compiler, work, march)


def _build_precompiled_header(compiler: str, prefix: Path) -> None:
    # In place: a precompiled header remembers where it was made.
    header = prefix / "include" / "kernel_operator.h"
    guard = () if "clang" in Path(compiler).name else GUARD_FLAGS
    command = [compiler, *KERNEL_FLAGS, *guard, f"-I{prefix / 'include'}"]
    command += ["-x", "c++-header", str(header)]
    libraries.run([*command, "-o", str(header) + ".gch"], "precompiling kernel_operator.h")
