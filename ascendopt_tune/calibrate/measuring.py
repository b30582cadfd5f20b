"""The process that talks to the device: ``python -m ascendopt_tune.calibrate.measuring``, its orders as JSON on stdin.

A process of its own, because a real NPU's libraries and the virtual NPU's have the same names, and because a device
that hangs or dies must not take the measurements with it. It writes JSON lines: ``{"device": ...}`` first, then every
measurement, or ``{"failed": kind, "message": ..., "hint": ...}`` last.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ..build import toolkit as toolkits
from ..device.acl import Acl
from ..errors import AscendOptError, CaseError, DeviceError
from ..nouns.chip import Chip, chip_names, load_chip
from ..settings import settings
from .measure import Effort, Measured, Measurements, measure
from .microbenchmarks import microbenchmarks

_VECTOR_CORES, _L2_BYTES = 201, 302  # aclrtDevAttr


@dataclass(frozen=True)
class Orders:
    """What to measure on: ``target`` as everywhere, ``chip`` whose facts are the device's (None: its own name's).

    ``path``: where measurements are kept, and gone on from.
    """

    target: str
    chip: str | None
    path: str
    reduced: bool
    effort: Effort


@dataclass(frozen=True)
class Session:
    """What was measured, on which device (soc, toolkit, target), with which chip's facts."""

    device: Mapping[str, str]
    chip: str
    measured: tuple[Measured, ...]


def run(orders: Orders, progress: Callable[[str], None] = lambda _: None) -> Session:
    """Measures in a process of its own; goes on with what is in the file.

    Raises:
        CaseError: no chip file fits the device, or the file is another device's.
        DeviceError: the device refused, or its process died.
    """
    command = [sys.executable, "-m", __name__]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(asdict(orders)))
        process.stdin.close()
        head: dict[str, Any] = {}
        done: dict[str, Measured] = {}
        for line in process.stdout:
            if not line.startswith("{"):
                continue  # what a library printed
            document = json.loads(line)
            if "failed" in document:
                kind = CaseError if document["failed"] == "CaseError" else DeviceError
                raise kind(document["message"], document["hint"])
            if "device" in document:
                head = document
            else:
                one = Measured(**document)
                done[one.name] = one
                progress(f"{one.name}: {one.us:.4g} us ({len(done)} of {head['count']})")
    if process.returncode != 0:
        raise DeviceError(
            f"the process that measures ended with code {process.returncode}.",
            f"What it had measured is in {orders.path}: run the same again to go on.",
        )
    return Session(head["device"], head["chip"], tuple(done.values()))


def chip_of(acl: Acl, name: str | None) -> Chip:
    """The chip whose facts are the device's. Raises CaseError when none is known, or they are not."""
    soc = acl.soc_name()
    if name is None:
        name = settings().chip if acl.virtual else soc.lower()
        if name not in chip_names() and not name.endswith(".toml"):
            raise CaseError(
                f"there is no chip file for a {soc}.",
                f"Name the one whose facts (cores, sizes, clock) come closest: --chip, of {', '.join(chip_names())}.",
            )
    chip = load_chip(name)
    acl.options = replace(acl.options, chip=chip.option)
    if acl.virtual:  # it is the chip that its launches name
        return chip
    for attribute, key in ((_VECTOR_CORES, "core.aiv"), (_L2_BYTES, "memory.l2_bytes")):
        value = ctypes.c_int64()
        try:
            acl.call("aclrtGetDeviceInfo", ctypes.c_uint32(0), ctypes.c_int(attribute), ctypes.byref(value))
        except (DeviceError, AttributeError):
            continue  # an older CANN doesn't tell
        if value.value != int(chip.values[key]):
            raise CaseError(
                f"the device says {key} is {value.value}, the chip file {name} says {chip.values[key]}.",
                "Facts are not fitted: copy the chip file, correct them, and name it with --chip.",
            )
    return chip


def _say(document: Mapping[str, object]) -> None:
    print(json.dumps(document), flush=True)


def _main() -> None:
    document = json.loads(sys.stdin.read())
    orders = Orders(**{**document, "effort": Effort(**document["effort"])})
    try:
        toolkit = toolkits.find(orders.target)
        acl = Acl(toolkit)
        chip = chip_of(acl, orders.chip)
        soc = str(chip.values["chip.soc_version"]) if acl.virtual else acl.soc_name()
        device = {"soc": soc, "target": toolkit.target, "toolkit": toolkit.version, "chip": chip.name}
        chosen = microbenchmarks(chip, reduced=orders.reduced)
        measurements = Measurements(Path(orders.path), device)
        _say({"device": device, "chip": chip.name, "count": len(chosen)})
        missing = measurements.missing(chosen)
        for one in chosen:
            if one not in missing:
                _say(asdict(measurements.done[one.name]))
        acl.options = replace(acl.options, hazards=False)
        for done in measure(acl, chip, missing, orders.effort):
            measurements.add(done)
            _say(asdict(done))
    except AscendOptError as error:
        _say({"failed": type(error).__name__, "message": error.message, "hint": error.hint})


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt, BrokenPipeError):  # whoever gave the orders is gone, or says so
        _main()
