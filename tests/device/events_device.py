"""A toolkit folder of kind ``cann`` whose device tells times by events and nothing else (device.cpp)."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ascendopt_tune.build.toolkit import Toolkit, host_compiler, virtual

_SOURCE = Path(__file__).with_name("device.cpp")


@dataclass(frozen=True)
class EventsDevice:
    """``prefix`` is what ``ASCEND_HOME_PATH`` would name; ``log`` has a line per binary that the device was given."""

    prefix: Path
    log: Path

    @property
    def toolkit(self) -> Toolkit:
        return Toolkit("cann", self.prefix, "cann-of-tests")

    def loads(self) -> int:
        """How many binaries the device was given so far."""
        return len(self.log.read_text().splitlines())


@contextmanager
def events_device(prefix: Path) -> Iterator[EventsDevice]:
    """The device, its libraries below ``prefix``, for the length of a ``with`` block."""
    played = virtual()
    (prefix / "lib64").mkdir(parents=True)
    (prefix / "include").symlink_to(played.include)
    # Processes that use a device may write to /dev and their own folder only (evaluate/worker.py).
    with tempfile.NamedTemporaryFile(prefix="ascendopt-device-", dir="/dev/shm") as log:
        for name, more in (("libascendcl.so", [f'-DLOG="{log.name}"']), ("libacl_rtc.so", [])):
            options = ["-std=c++17", "-O1", "-fPIC", "-shared", f"-Wl,-soname,{name}", "-ldl"]
            target = f'-DTARGET="{played.lib64 / name}"'
            out = str(prefix / "lib64" / name)
            subprocess.run([host_compiler(), str(_SOURCE), *options, target, *more, "-o", out], check=True)
        yield EventsDevice(prefix, Path(log.name))
