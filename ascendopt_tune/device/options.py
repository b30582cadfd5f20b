"""What the virtual NPU is told of a launch, as its library takes it."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

from ascendopt_tune.errors import DeviceError
from ascendopt_tune.nouns.chip import STATES, WARM


class MachineOptions(ctypes.Structure):
    """vnpu::LaunchOptions (vnpu/core/launch.h)."""

    _fields_ = [
        ("size", ctypes.c_uint32),
        *((name, ctypes.c_uint8) for name in ("timing", "hazards", "trace", "log", "writes", "guard")),
        *((name, ctypes.c_uint8) for name in ("fill", "stack", "state", "keep")),
        ("threads", ctypes.c_uint16),
        ("chip", ctypes.c_char_p),
    ]


@dataclass(frozen=True)
class LaunchOptions:
    """What the virtual NPU is told of a launch beside its kernel and arguments; a real NPU isn't.

    Args:
        chip: a name or a chip file; "" is ``ASCENDOPT_CHIP``'s, else ascend910b2.
        timing: model the time.
        hazards: look for hazards and for unwritten bytes that are used.
        trace: keep a timeline for :meth:`Acl.write_trace`.
        log: keep what cores issue and touch for :meth:`Acl.access_log`.
        writes: keep what cores store: writes of the same bytes by two cores need no order.
        guard: check the kernel's own loads and stores.
        state: what the launch finds: one of STATES (nouns/chip.py).
        fill: byte that local memory holds where nobody has written.
        stack: byte that a kernel's stack holds where nobody has written.
        keep: local memory holds what a core or launch before left there, instead of ``fill``.
        threads: on which cores run as long as their order can't matter, 1 to 256; 0 is ``ASCENDOPT_CORE_THREADS``'s,
            else 1.
    """

    chip: str = ""
    timing: bool = True
    hazards: bool = True
    trace: bool = False
    log: bool = False
    writes: bool = False
    guard: bool = True
    state: str = WARM
    fill: int = 0xFF
    stack: int = 0
    keep: bool = False
    threads: int = 0

    def machine(self) -> MachineOptions:
        """As the library takes it. Raises DeviceError for a state or number that can't be."""
        if self.state not in STATES:
            raise DeviceError(f"state {self.state!r} is none of {', '.join(STATES)}.")
        for name, most in (("fill", 0xFF), ("stack", 0xFF), ("threads", 256)):
            if not 0 <= getattr(self, name) <= most:
                raise DeviceError(f"{name} is a number from 0 to {most}, not {getattr(self, name)}.")
        flags = {name: getattr(self, name) for name in ("timing", "hazards", "trace", "log", "writes", "guard")}
        return MachineOptions(
            ctypes.sizeof(MachineOptions),
            **flags,
            fill=self.fill,
            stack=self.stack,
            keep=self.keep,
            state=STATES.index(self.state),
            threads=self.threads,
            chip=self.chip.encode() or None,
        )
