"""A virtual toolkit that was built elsewhere: what it is good for, and whether that is here.

``ascendopt-tune toolkit --build --out FOLDER`` makes one, for any processor of a kind; a wheel may carry it, and
``ASCENDOPT_TOOLKIT_BUILT`` may name it. Its ``built.json`` says what it was built from and with. Where that differs
from what is here it is not used, and whoever asked for a toolkit is told why.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path

_ABOUT = "built.json"
#: Architecture -> what compilers call the least processor that is built for, and the features by which /proc/cpuinfo
#: tells it. x86-64-v3 is the x86-64 psABI's level of 2013 (AVX2, F16C); Armv8.2 with half precision that of servers.
_PORTABLE = {
    "x86_64": ("x86-64-v3", ("abm", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe")),
    "aarch64": ("armv8.2-a+fp16", ("asimd", "asimdhp", "atomics", "fphp")),
}


@dataclass(frozen=True)
class Built:
    """What a toolkit was built from and with: ``version`` of the sources; ``march`` and its ``features``; ``compiler``,
    its kind and major version; ``libc``, the C library that it may need at least."""

    version: str
    machine: str
    march: str
    features: tuple[str, ...]
    compiler: str
    libc: str

    @classmethod
    def here(cls, version: str, compiler: str) -> Built | None:
        """What one that is built here for others is; None on an architecture that there is no list of features for."""
        march, features = _PORTABLE.get(platform.machine(), ("", ()))
        if not march:
            return None
        return cls(version, platform.machine(), march, features, compiler_kind(compiler), _libc())

    def write(self, folder: Path) -> None:
        """Leaves it beside the toolkit."""
        (folder / _ABOUT).write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")


def why_not(folder: Path, version: str, compiler: str) -> str:
    """Why the toolkit in ``folder`` can't be used here with this compiler, in words; empty if it can."""
    try:
        raw = json.loads((folder / _ABOUT).read_text(encoding="utf-8"))
        about = Built(**{**raw, "features": tuple(raw["features"])})
    except (OSError, ValueError, TypeError, KeyError) as error:
        return f"it has no readable {_ABOUT} ({error})"
    missing = sorted(set(about.features) - processor_features())
    differs = (
        (about.version, version, "it is of other sources of the virtual NPU"),
        (about.machine, platform.machine(), f"it is for {about.machine}"),
        (about.compiler, compiler_kind(compiler), f"{about.compiler} built it, here is {compiler_kind(compiler)}"),
    )
    for its, ours, why in differs:
        if its != ours:
            return why
    if missing:
        return f"this processor lacks {', '.join(missing)}"
    if _number(about.libc) > _number(_libc()):
        return f"it needs {about.libc}, here is {_libc() or 'another C library'}"
    return ""


def take(folder: Path, place: Path) -> None:
    """Copies the toolkit into ``place``, an empty folder. Raises OSError."""
    shutil.copytree(folder, place, dirs_exist_ok=True)


def compiler_kind(compiler: str) -> str:
    """Its kind and major version, such as ``g++ 12``: what has to be the same for libraries and kernels to fit."""
    done = subprocess.run([compiler, "-dumpversion"], capture_output=True, text=True, check=False)
    kind = "clang++" if "clang" in Path(compiler).name else "g++"
    return f"{kind} {done.stdout.strip().partition('.')[0]}"


def processor_features() -> set[str]:
    """As /proc/cpuinfo calls them."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith(("flags", "Features")):
            return set(line.split(":", 1)[1].split())
    return set()


def _libc() -> str:
    """Such as ``glibc 2.36``; empty where it is another one."""
    try:
        return os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (ValueError, OSError):
        return ""


def _number(libc: str) -> tuple[int, ...]:
    return tuple(int(part) for part in libc.rpartition(" ")[2].split(".") if part.isdecimal())
