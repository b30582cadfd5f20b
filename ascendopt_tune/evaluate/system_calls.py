"""The filter on system calls (seccomp): what a confined process may not ask the kernel for.

Refused is what starts programs, opens connections, changes what belongs to others, or names another process. A call
that may name any process is allowed for the own one.

Numbers and layouts: Linux ``uapi/linux/{seccomp,filter,audit,prctl}.h``, and the system call tables of x86-64 and of
the generic ABI (aarch64).
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct

_PR_SET_SECCOMP = 22
_CLONE_THREAD = 0x00010000

#: (x86-64, aarch64); None where an ABI doesn't have the call.
_SOCKETS = {"socket": (41, 198), "socketpair": (53, 199)}
_PROGRAMS = {"fork": (57, None), "vfork": (58, None), "execve": (59, 221), "execveat": (322, 281)}
_OTHERS = {
    # other processes
    "kill": (62, 129), "tkill": (200, 130), "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240),
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "pidfd_open": (434, 434), "pidfd_send_signal": (424, 424), "pidfd_getfd": (438, 438),
    "process_madvise": (440, 440), "process_mrelease": (448, 448), "move_pages": (279, 239),
    "migrate_pages": (256, 238), "setpriority": (141, 140), "getpriority": (140, 141), "ioprio_set": (251, 30),
    "ioprio_get": (252, 31), "perf_event_open": (298, 241), "setpgid": (109, 154), "setsid": (112, 157),
    "get_robust_list": (274, 100),
    # what other processes can see: memory, messages, keys
    "memfd_create": (319, 279), "memfd_secret": (447, 447), "shmget": (29, 194), "shmat": (30, 196),
    "shmctl": (31, 195), "msgget": (68, 186), "msgsnd": (69, 189), "msgrcv": (70, 188), "msgctl": (71, 187),
    "semget": (64, 190), "semop": (65, 193), "semtimedop": (220, 192), "semctl": (66, 191), "mq_open": (240, 180),
    "mq_unlink": (241, 181), "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    "fanotify_init": (300, 262), "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265),
    # the machine and its namespaces
    "unshare": (272, 97), "setns": (308, 268), "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41),
    "chroot": (161, 51), "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442),
    "bpf": (321, 280), "userfaultfd": (323, 282), "io_setup": (206, 0), "io_submit": (209, 2),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "reboot": (169, 142), "kexec_load": (246, 104), "kexec_file_load": (320, 294), "init_module": (175, 105),
    "finit_module": (313, 273), "delete_module": (176, 106), "swapon": (167, 224), "swapoff": (168, 225),
    "acct": (163, 89), "quotactl": (179, 60), "settimeofday": (164, 170), "clock_settime": (227, 112),
    "adjtimex": (159, 171), "clock_adjtime": (305, 266), "sethostname": (170, 161), "setdomainname": (171, 162),
    "syslog": (103, 116), "iopl": (172, None), "ioperm": (173, None), "personality": (135, 92),
    "vhangup": (153, 58),
    # files of others, as far as Landlock doesn't cover it
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452), "chown": (92, None),
    "fchown": (93, 55), "lchown": (94, None), "fchownat": (260, 54), "setxattr": (188, 5), "lsetxattr": (189, 6),
    "fsetxattr": (190, 7), "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16),
    "setxattrat": (463, 463), "removexattrat": (466, 466), "utime": (132, None), "utimes": (235, None),
    "futimesat": (261, None), "utimensat": (280, 88), "flock": (73, 32),
}  # fmt: skip
#: The first argument names a process: 0 and the own one are allowed.
_OWN_ONLY = {
    "prlimit64": (302, 261), "sched_setparam": (142, 118), "sched_setscheduler": (144, 119),
    "sched_setaffinity": (203, 122), "sched_setattr": (314, 274), "sched_getparam": (143, 121),
    "sched_getscheduler": (145, 120), "sched_getaffinity": (204, 123), "sched_getattr": (315, 275),
    "sched_rr_get_interval": (148, 127), "getpgid": (121, 155), "getsid": (124, 156),
}  # fmt: skip
#: What a compiler's driver does with the programs it starts, and they with themselves.
_FOR_TOOLS = {"kill", "tkill", "getpriority", "setpgid", "flock", "chmod", "fchmod", "fchmodat", "fchmodat2", "utime",
              "utimes", "utimensat", "futimesat", "memfd_create", *_PROGRAMS}  # fmt: skip
_CLONE, _CLONE3, _TGKILL, _PRCTL = (56, 220), (435, 435), (234, 131), (157, 167)
_ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
_PR_SET_PDEATHSIG = 1

_LOAD, _JUMP_EQUAL, _JUMP_GREATER_EQUAL, _JUMP_ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _REFUSE, _KILL = 0x7FFF0000, 0x00050000 | errno.EPERM, 0x80000000
_REFUSE_UNKNOWN = 0x00050000 | errno.ENOSYS
_NUMBER, _ARCH, _ARGUMENT0 = 0, 4, 16  # offsets in struct seccomp_data (argument 0: its low half on little endian)
_X32 = 0x40000000


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]


def known() -> bool:
    """Whether the numbers of this machine's system calls are known."""
    return platform.machine() in _ARCHITECTURES


def refuse(libc: ctypes.CDLL, *, processes: bool, threads: bool, network: bool) -> bool:
    """Puts the filter in place for good; whether that worked. ``PR_SET_NO_NEW_PRIVS`` has to be set.

    Args:
        processes: whether programs may be started (compilers do), which then may signal each other.
        threads: whether threads may be started; meant where programs may not.
        network: whether sockets may be opened.
    """
    words = _words(processes, threads, network)
    program = _Program(len(words), b"".join(words))
    return int(libc.prctl(_PR_SET_SECCOMP, 2, ctypes.byref(program), 0, 0)) == 0


def _words(processes: bool, threads: bool, network: bool) -> list[bytes]:
    column, architecture = _ARCHITECTURES[platform.machine()]

    def op(code: int, k: int, if_true: int = 0, if_false: int = 0) -> bytes:
        return struct.pack("=HBBI", code, if_true, if_false, k)

    words = [op(_LOAD, _ARCH), op(_JUMP_EQUAL, architecture, 1, 0), op(_RETURN, _KILL), op(_LOAD, _NUMBER)]
    if platform.machine() == "x86_64":  # the x32 ABI would offer every call under a second number
        words += [op(_JUMP_GREATER_EQUAL, _X32, 0, 1), op(_RETURN, _REFUSE)]
    refused = {**_OTHERS, **_PROGRAMS, **({} if network else _SOCKETS)}
    for name, numbers in refused.items():
        number = numbers[column]
        if number is not None and not (processes and name in _FOR_TOOLS):
            words += [op(_JUMP_EQUAL, number, 0, 1), op(_RETURN, _REFUSE)]
    if processes:
        return [*words, op(_RETURN, _ALLOW)]
    own = os.getpid()
    for numbers in _OWN_ONLY.values():
        number = numbers[column]
        words += [op(_JUMP_EQUAL, number, 0, 5), op(_LOAD, _ARGUMENT0), op(_JUMP_EQUAL, 0, 2, 0)]
        words += [op(_JUMP_EQUAL, own, 1, 0), op(_RETURN, _REFUSE), op(_RETURN, _ALLOW)]
    # It ends when its parent does, and can't take that back.
    words += [op(_JUMP_EQUAL, _PRCTL[column], 0, 4), op(_LOAD, _ARGUMENT0)]
    words += [op(_JUMP_EQUAL, _PR_SET_PDEATHSIG, 0, 1), op(_RETURN, _REFUSE), op(_RETURN, _ALLOW)]
    # A process is never started, a thread perhaps. clone3 hides its flags in memory: libc falls back to clone.
    words += [op(_JUMP_EQUAL, _CLONE3[column], 0, 1), op(_RETURN, _REFUSE_UNKNOWN)]
    flag = _CLONE_THREAD if threads else 0
    words += [op(_JUMP_EQUAL, _CLONE[column], 0, 4), op(_LOAD, _ARGUMENT0), op(_JUMP_ANY_BIT, flag, 1, 0)]
    words += [op(_RETURN, _REFUSE), op(_RETURN, _ALLOW)]
    # abort() signals its own process, which is fine.
    words += [op(_JUMP_EQUAL, _TGKILL[column], 0, 4), op(_LOAD, _ARGUMENT0), op(_JUMP_EQUAL, own, 1, 0)]
    return [*words, op(_RETURN, _REFUSE), op(_RETURN, _ALLOW), op(_RETURN, _ALLOW)]
