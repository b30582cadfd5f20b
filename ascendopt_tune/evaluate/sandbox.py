"""What the system forbids a candidate's process: other files (Landlock), other processes, connections and what belongs
to the machine (seccomp, system_calls.py), and the sight of other processes at all (namespaces).

None of it needs a privilege on a kernel that allows it to users, and none can be undone by the process; privileges it
has (run by root) are given up. Where the system lacks one of them the rest still holds; :func:`protections` tells what
there is, and docs/gate.md what is off without it.

Numbers and layouts: Linux ``uapi/linux/{landlock,prctl,sched,capability}.h``.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import struct
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

from . import system_calls

_LIBC = ctypes.CDLL(None, use_errno=True)

_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS = 1, 38
_CAPABILITY_VERSION_3 = 0x20080522
_NEW_USER = 0x10000000
_NAMESPACES = {"process": 0x20000000, "network": 0x40000000, "IPC": 0x08000000}  # CLONE_NEWPID, NEWNET, NEWIPC

_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446  # the same on every architecture
_READ_RIGHTS = (1 << 0) | (1 << 2) | (1 << 3)  # execute (map executable), read file, read folder
#: By ABI: 2 adds refer, 3 truncate, 5 commands to devices.
_ALL_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1, 5: (1 << 16) - 1}
_CONNECTIONS = 0b11  # ABI 4: TCP bind and connect
_SCOPES = 0b11  # ABI 6: abstract sockets and signals stay inside
_FILE_RIGHTS = (1 << 0) | (1 << 1) | (1 << 2) | (1 << 14) | (1 << 15)  # the rights that make sense for a plain file


def system_folders() -> list[Path]:
    """What a Python process reads while it runs: libraries, itself, this package."""
    package = Path(__file__).resolve().parent.parent
    system = ["/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/sys/devices/system/cpu"]
    system += ["/dev/null", "/dev/zero", "/dev/urandom"]
    return [*map(Path, system), Path(sys.prefix), Path(sys.base_prefix), package]


def die_with_parent(signal_number: int) -> None:
    """Asks for ``signal_number`` when the parent process ends."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal_number, 0, 0, 0)


def isolate() -> list[str]:
    """Processes that this one forks from now on live in namespaces of their own: they can name no process outside,
    reach no network and no shared memory, and all of them end with this one.

    Returns:
        The kinds of namespaces that the system has given; without privilege it may give none.
    """
    given = [name for name, flag in _NAMESPACES.items() if _LIBC.unshare(flag) == 0]
    if not given:
        user, group = os.getuid(), os.getgid()
        if _LIBC.unshare(_NEW_USER | sum(_NAMESPACES.values())) != 0:
            return []
        given = [*_NAMESPACES, "user"]
        with contextlib.suppress(OSError):  # files go on belonging to whom they belong
            Path("/proc/self/setgroups").write_text("deny")
            Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
            Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    if "process" in given:
        reader, writer = os.pipe()
        if os.fork() == 0:
            os.close(writer)
            _be_init(reader)
        os.close(reader)  # the other end stays open as long as this process lives
    return given


def _be_init(lifeline: int) -> NoReturn:
    """The first process of a namespace: it takes the dead from the table, and with it end all others.

    It ends with its maker. A signal may not tell: the maker can be gone before it is asked for, or be confined and not
    allowed to send it. So the end of ``lifeline``, a pipe that the maker holds, tells as well.
    """
    try:
        die_with_parent(signal.SIGKILL)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.dup2(lifeline, 0)
        os.closerange(1, os.sysconf("SC_OPEN_MAX"))
        os.chdir("/")
        os.read(0, 1)
    finally:
        os._exit(0)


def enter(
    read: Iterable[Path], write: Iterable[Path], *, processes: bool = False, threads: bool = True, network: bool = False
) -> list[str]:
    """Confines this process for good: it may read below ``read``, read and write below ``write``, and no other file.
    It is killed when its parent ends.

    Args:
        processes: whether it may start processes (a compiler does).
        threads: whether it may start threads; meant where it may not start processes.
        network: whether it may open sockets.

    Returns:
        The protections that are in place: ``landlock`` and its version, ``seccomp``.
    """
    in_place = []
    _LIBC.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    abi = _landlock(read, write, network)
    if abi:
        in_place.append(f"landlock {abi}")
    if not processes:
        # A compiler keeps them: the user's own sources may be readable by privilege only.
        _LIBC.capset(struct.pack("=II", _CAPABILITY_VERSION_3, 0), bytes(24))
    die_with_parent(signal.SIGKILL)  # a change of credentials forgets it
    if system_calls.known() and system_calls.refuse(_LIBC, processes=processes, threads=threads, network=network):
        in_place.append("seccomp")
    return in_place


def protections() -> list[str]:
    """What :func:`enter` and :func:`isolate` can put in place here; tried in a process of its own."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            given = [f"{name} namespace" for name in isolate()]
            os.write(writer, "\n".join([*enter([], []), *given]).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader, "rb") as answer:
        text = answer.read().decode()
    os.waitpid(pid, 0)
    return text.split("\n") if text else []


# -- files ------------------------------------------------------------------------------------------------------------


def _landlock(read: Iterable[Path], write: Iterable[Path], network: bool) -> int:
    """The version of Landlock that is in place; 0 for none."""
    abi = int(_LIBC.syscall(_LANDLOCK_CREATE, None, ctypes.c_size_t(0), 1))
    if abi < 1:
        return 0
    rights = _ALL_RIGHTS[min(abi, max(_ALL_RIGHTS))]
    attribute = [rights]  # struct landlock_ruleset_attr, as long as this version knows it
    if abi >= 4:
        attribute.append(0 if network else _CONNECTIONS)
    if abi >= 6:
        attribute.append(0 if network else _SCOPES)
    packed = struct.pack(f"={len(attribute)}Q", *attribute)
    ruleset = _LIBC.syscall(_LANDLOCK_CREATE, packed, ctypes.c_size_t(len(packed)), 0)
    if ruleset < 0:
        return 0
    for paths, allowed in ((read, _READ_RIGHTS), (write, rights)):
        for path in paths:
            _allow(ruleset, path, allowed)
    done = int(_LIBC.syscall(_LANDLOCK_RESTRICT, ruleset, 0)) == 0
    os.close(ruleset)
    return abi if done else 0


def _allow(ruleset: int, path: Path, rights: int) -> None:
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # what isn't there needs no rule
    rights &= -1 if path.is_dir() else _FILE_RIGHTS
    rule = ctypes.create_string_buffer(struct.pack("=Qi", rights, fd))  # struct landlock_path_beneath_attr, packed
    _LIBC.syscall(_LANDLOCK_ADD, ruleset, 1, rule, 0)
    os.close(fd)
