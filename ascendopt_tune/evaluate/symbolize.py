"""From offsets in a kernel binary to the user's file and line, through ``addr2line`` (binutils; comes with g++)."""

from __future__ import annotations

import subprocess
from collections.abc import Collection, Sequence
from pathlib import Path

_TIMEOUT_S = 20


def locate(binary: Path, offsets: Collection[int], foreign: Sequence[Path]) -> dict[int, str]:
    """``file:line (function)`` of each offset: the innermost inlined frame that is not in a ``foreign`` folder.

    Offsets that can't be resolved (no line information, no addr2line) are left out.
    """
    wanted = sorted(set(offsets))
    if not wanted:
        return {}
    command = ["addr2line", "-a", "-i", "-f", "-C", "-e", str(binary), *map(hex, wanted)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return {}
    found: dict[int, str] = {}
    offset = -1
    lines = iter(done.stdout.splitlines())
    for line in lines:
        if line.startswith("0x"):
            offset = int(line, 16)
            continue
        place = next(lines, "??:0").partition(" (discriminator")[0]
        file, _, number = place.rpartition(":")
        if offset in found or file.startswith("??") or number in ("0", "?"):
            continue
        if _is_foreign(Path(file), foreign):
            continue
        found[offset] = f"{file}:{number} ({_short(line)})"
    return found


def _is_foreign(file: Path, foreign: Sequence[Path]) -> bool:
    """Whether the file is one of these folders', also where a cache was copied: a kernel that was compiled before names
    headers by the place they had then."""
    if any(file.is_relative_to(folder) for folder in foreign):
        return True
    below = file.parts[len(file.parts) - file.parts[::-1].index("include") :] if "include" in file.parts else ()
    return bool(below) and any(f.name == "include" and f.joinpath(*below).is_file() for f in foreign)


def demangled(name: str) -> str:
    """A linker's name as it is written in the source; as it is where there is no ``c++filt`` (binutils)."""
    try:
        done = subprocess.run(["c++filt", name], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return name
    return done.stdout.strip() or name


def _short(function: str) -> str:
    """The function's name without its parameters."""
    depth = 0
    for i, c in enumerate(function):
        if c == "(" and depth == 0 and i > 0:
            return function[:i]
        depth += (c == "<") - (c == ">")
    return function
