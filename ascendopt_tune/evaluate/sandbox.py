"""What the system forbids a candidate's process: other files (Landlock), processes, signals and sockets (seccomp).

Both need no privilege and can't be undone by the process; privileges it has (run by root) are given up. Where the
system lacks one of them the rest still holds; a network namespace then replaces the filter on sockets. :func:`enter`
tells what it could put in place.

Numbers and layouts: Linux ``uapi/linux/{seccomp,filter,audit,landlock,prctl,sched,capability}.h`` and the system call
tables of x86-64 and of the generic ABI (aarch64).
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys
from collections.abc import Iterable
from pathlib import Path

_LIBC = ctypes.CDLL(None, use_errno=True)

_PR_SET_PDEATHSIG, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 1, 22, 38
_CAPABILITY_VERSION_3 = 0x20080522
_CLONE_THREAD, _CLONE_NEWUSER, _CLONE_NEWNET = 0x00010000, 0x10000000, 0x40000000

# (audit architecture, system call numbers). Refused outright:
_REFUSED = {
    "x86_64": (0xC000003E, {
        "fork": 57, "vfork": 58, "execve": 59, "execveat": 322, "socket": 41, "socketpair": 53, "kill": 62,
        "tkill": 200, "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311, "pidfd_send_signal": 424,
        "pidfd_getfd": 438, "rt_sigqueueinfo": 129, "rt_tgsigqueueinfo": 297, "unshare": 272, "setns": 308,
        "mount": 165, "bpf": 321, "perf_event_open": 298, "io_uring_setup": 425, "keyctl": 250, "userfaultfd": 323,
        "chmod": 90, "fchmod": 91, "fchmodat": 268, "fchmodat2": 452, "chown": 92, "fchown": 93, "lchown": 94,
        "fchownat": 260, "setxattr": 188, "lsetxattr": 189, "fsetxattr": 190, "utime": 132, "utimes": 235,
        "futimesat": 261, "utimensat": 280, "memfd_create": 319, "shmget": 29, "msgget": 68, "semget": 64,
        "mq_open": 240,
    }, {"clone": 56, "clone3": 435, "tgkill": 234}),
    "aarch64": (0xC00000B7, {
        "execve": 221, "execveat": 281, "socket": 198, "socketpair": 199, "kill": 129, "tkill": 130, "ptrace": 117,
        "process_vm_readv": 270, "process_vm_writev": 271, "pidfd_send_signal": 424, "pidfd_getfd": 438,
        "rt_sigqueueinfo": 138, "rt_tgsigqueueinfo": 240, "unshare": 97, "setns": 268, "mount": 40, "bpf": 280,
        "perf_event_open": 241, "io_uring_setup": 425, "keyctl": 219, "userfaultfd": 282,
        "fchmod": 52, "fchmodat": 53, "fchmodat2": 452, "fchownat": 54, "fchown": 55, "setxattr": 5, "lsetxattr": 6,
        "fsetxattr": 7, "utimensat": 88, "memfd_create": 279, "shmget": 194, "msgget": 186, "semget": 190,
        "mq_open": 180,
    }, {"clone": 220, "clone3": 435, "tgkill": 131}),
}  # fmt: skip

_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446  # the same on every architecture
_READ_RIGHTS = (1 << 0) | (1 << 2) | (1 << 3)  # execute (map executable), read file, read folder
_ALL_RIGHTS_BY_ABI = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1}  # 2 adds refer, 3 adds truncate
_FILE_RIGHTS = (1 << 0) | (1 << 1) | (1 << 2) | (1 << 14)  # the rights that make sense for a plain file


def system_folders() -> list[Path]:
    """What a Python process reads while it runs: libraries, itself, this package."""
    package = Path(__file__).resolve().parent.parent
    system = ["/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/sys/devices/system/cpu"]
    system += ["/dev/null", "/dev/zero", "/dev/urandom"]
    return [*map(Path, system), Path(sys.prefix), Path(sys.base_prefix), package]


def die_with_parent(signal_number: int) -> None:
    """Asks for ``signal_number`` when the parent process ends."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal_number, 0, 0, 0)


def enter(
    read: Iterable[Path], write: Iterable[Path], *, processes: bool = False, threads: bool = True, network: bool = False
) -> list[str]:
    """Confines this process for good: it may read below ``read``, read and write below ``write``, and no other file.

    Args:
        processes: whether it may start processes (a compiler does).
        threads: whether it may start threads; meant where it may not start processes.
        network: whether it may open sockets.

    Returns:
        The protections that are in place: ``landlock``, ``seccomp``, ``network namespace``.
    """
    in_place = []
    _LIBC.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    filtered = not processes and platform.machine() in _REFUSED
    if not network and not filtered and _LIBC.unshare(_CLONE_NEWUSER | _CLONE_NEWNET) == 0:
        in_place.append("network namespace")
    if _landlock(read, write):
        in_place.append("landlock")
    if not processes:
        # A compiler keeps them: the user's own sources may be readable by privilege only.
        _LIBC.capset(struct.pack("=II", _CAPABILITY_VERSION_3, 0), bytes(24))
    if filtered and _seccomp(threads, network):
        in_place.append("seccomp")
    return in_place


# -- files ------------------------------------------------------------------------------------------------------------


def _landlock(read: Iterable[Path], write: Iterable[Path]) -> bool:
    abi = _LIBC.syscall(_LANDLOCK_CREATE, None, ctypes.c_size_t(0), 1)
    if abi < 1:
        return False
    rights = _ALL_RIGHTS_BY_ABI[min(abi, 3)]
    attribute = ctypes.c_uint64(rights)
    ruleset = _LIBC.syscall(_LANDLOCK_CREATE, ctypes.byref(attribute), ctypes.c_size_t(8), 0)
    if ruleset < 0:
        return False
    for paths, allowed in ((read, _READ_RIGHTS), (write, rights)):
        for path in paths:
            _allow(ruleset, path, allowed)
    done = int(_LIBC.syscall(_LANDLOCK_RESTRICT, ruleset, 0)) == 0
    os.close(ruleset)
    return done


def _allow(ruleset: int, path: Path, rights: int) -> None:
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # what isn't there needs no rule
    rights &= -1 if path.is_dir() else _FILE_RIGHTS
    rule = ctypes.create_string_buffer(struct.pack("=Qi", rights, fd))  # struct landlock_path_beneath_attr, packed
    _LIBC.syscall(_LANDLOCK_ADD, ruleset, 1, rule, 0)
    os.close(fd)


# -- system calls -----------------------------------------------------------------------------------------------------

_LOAD, _JUMP_EQUAL, _JUMP_GREATER_EQUAL, _JUMP_ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _REFUSE, _KILL = 0x7FFF0000, 0x00050000 | errno.EPERM, 0x80000000
_REFUSE_UNKNOWN = 0x00050000 | errno.ENOSYS
_NUMBER, _ARCH, _ARGUMENT0 = 0, 4, 16  # offsets in struct seccomp_data (argument 0: its low half on little endian)


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]


def _seccomp(threads: bool, network: bool) -> bool:
    arch, refused, special = _REFUSED[platform.machine()]

    def op(code: int, k: int, if_true: int = 0, if_false: int = 0) -> bytes:
        return struct.pack("=HBBI", code, if_true, if_false, k)

    words = [op(_LOAD, _ARCH), op(_JUMP_EQUAL, arch, 1, 0), op(_RETURN, _KILL), op(_LOAD, _NUMBER)]
    if platform.machine() == "x86_64":  # the x32 ABI would offer every call under a second number
        words += [op(_JUMP_GREATER_EQUAL, 0x40000000, 0, 1), op(_RETURN, _REFUSE)]
    for name, number in refused.items():
        if not (network and name.startswith("socket")):
            words += [op(_JUMP_EQUAL, number, 0, 1), op(_RETURN, _REFUSE)]
    # A process is never started, a thread perhaps. clone3 hides its flags in memory: libc falls back to clone.
    words += [op(_JUMP_EQUAL, special["clone3"], 0, 1), op(_RETURN, _REFUSE_UNKNOWN)]
    flag = _CLONE_THREAD if threads else 0
    words += [op(_JUMP_EQUAL, special["clone"], 0, 4), op(_LOAD, _ARGUMENT0), op(_JUMP_ANY_BIT, flag, 1, 0)]
    words += [op(_RETURN, _REFUSE), op(_RETURN, _ALLOW)]
    # abort() signals its own process, which is fine.
    words += [op(_JUMP_EQUAL, special["tgkill"], 0, 4), op(_LOAD, _ARGUMENT0), op(_JUMP_EQUAL, os.getpid(), 1, 0)]
    words += [op(_RETURN, _REFUSE), op(_RETURN, _ALLOW), op(_RETURN, _ALLOW)]
    program = _Program(len(words), b"".join(words))
    return int(_LIBC.prctl(_PR_SET_SECCOMP, 2, ctypes.byref(program), 0, 0)) == 0
