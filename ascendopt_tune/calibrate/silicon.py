"""What the first owner of an NPU runs: the steps of ``ascendopt-tune silicon-check``, and the bundle of their results.

Each step is a command that anybody can run, in a process of its own: what it prints is kept, and a step that fails
stops no other. Steps that are done are not done again, so an interrupted check goes on.
"""

from __future__ import annotations

import importlib.metadata
import json
import statistics
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..files import replacing, write_whole
from ..sources.registry import operator_names

_OURS = "ascendopt_tune"
_TIMEOUT_S = 3600.0
#: What ``--reduced`` runs of the registry, at small cases, instead of every operator at its own.
_REDUCED = {
    "add": ("x=float16[64,1024]", "y=float16[64,1024]"),
    "dynamic_quant": ("x=bfloat16[8,5120]",),
}
_REDUCED_TUNED = ("x=bfloat16[16,4096]", "gamma=bfloat16[4096]")


@dataclass(frozen=True)
class CheckStep:
    """``words`` follow ``python -m``; the last line of what it prints is JSON."""

    name: str
    words: tuple[str, ...]


@dataclass(frozen=True)
class StepDone:
    """What became of a step: its exit code, its JSON document (None when it printed none), and its errors."""

    step: CheckStep
    code: int
    document: Mapping[str, Any] | None
    errors: str


def steps(folder: Path, target: str, chip: str | None, *, reduced: bool) -> Iterator[CheckStep]:
    """The steps in order; results go to ``folder``, and from the second on they use the chip file of the first."""
    calibrated = str(folder / "calibrated.toml")
    start = ["--chip", chip] if chip else []
    less = ["--reduced"] if reduced else []
    on = ["--target", target]
    yield CheckStep("doctor", (_OURS, "doctor", "--json"))
    yield CheckStep("calibrate", (_OURS, "calibrate", "-o", calibrated, *on, *start, *less, "--json"))
    scenarios = ("empty/1", "add/4") if reduced else ()
    yield CheckStep("kernels", (f"{_OURS}.calibrate.scenarios", *on, "--chip", calibrated, *scenarios))
    yield CheckStep("kernels-modelled", (_OURS, "fidelity", *scenarios, "--chip", calibrated, "--json"))
    cases: Mapping[str, Sequence[str]] = _REDUCED if reduced else dict.fromkeys(operator_names(), ())
    for name, inputs in cases.items():
        for suffix, where in (("", target), ("-modelled", "virtual")):
            words = (_OURS, "run", name, *_given(inputs), "--target", where, "--chip", calibrated, "--json")
            yield CheckStep(f"run-{name}{suffix}", words)
    case, budget = (_given(_REDUCED_TUNED), "4") if reduced else ((), "40")
    tune = (_OURS, "tune", "rms_norm", *case, *on, "--chip", calibrated, "--budget", budget, "--retune", "--json")
    yield CheckStep("tune", tune)


def _given(inputs: Sequence[str]) -> tuple[str, ...]:
    return tuple(word for tensor in inputs for word in ("--input", tensor))


def run(step: CheckStep, folder: Path) -> StepDone:
    """Runs a step, or reads what it left when it was done before, by the same words."""
    log, kept = folder / f"{step.name}.log", folder / f"{step.name}.json"
    begin = _anonymous(f"$ python -m {' '.join(step.words)}\n")
    before = _kept(log, kept, begin)
    if before is not None:
        return StepDone(step, 0, before, "")
    kept.unlink(missing_ok=True)  # of another check in this folder
    command = [sys.executable, "-m", *step.words]
    try:
        result = subprocess.run(
            command, capture_output=True, encoding="utf-8", errors="replace", check=False, timeout=_TIMEOUT_S
        )
        code, out, errors = result.returncode, result.stdout, result.stderr
    except subprocess.TimeoutExpired:
        code, out, errors = -1, "", f"it was not done after {_TIMEOUT_S:.0f} s"
    errors, out = _anonymous(errors), _anonymous(out)
    write_whole(log, begin + f"{errors}\nexit code {code}\n", durable=True)
    document = _document(out)
    if document is not None:
        # What failed is kept too, under another name: it is tried again.
        place = kept if code == 0 else folder / f"{step.name}.failed.json"
        write_whole(place, json.dumps(document, indent=1), durable=True)
    return StepDone(step, code, document, errors)


def _kept(log: Path, kept: Path, begin: str) -> Mapping[str, Any] | None:
    """The document of a step that was done; None where it wasn't, or its log begins otherwise, or can't be read."""
    try:
        if not log.read_text(encoding="utf-8").startswith(begin):
            return None
        found = json.loads(kept.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _anonymous(text: str) -> str:
    """Without the name of the user's folder."""
    return text.replace(str(Path.home()), "~")


def _document(out: str) -> Mapping[str, Any] | None:
    """The JSON document of what a command printed; libraries may have printed before it."""
    start = 0 if out.startswith("{") else out.find("\n{") + 1
    try:
        found = json.loads(out[start:])
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


@dataclass(frozen=True)
class Compared:
    """A launch on the device, and what the calibrated clock says to it (us)."""

    name: str
    device_us: float
    modelled_us: float

    @property
    def percent(self) -> float:
        return 100 * (self.modelled_us / self.device_us - 1)


def compared(done: Sequence[StepDone]) -> list[Compared]:
    """Kernels and operators that were timed on the device and modelled."""
    found = {d.step.name: d.document for d in done if d.code == 0 and d.document is not None}
    out = []
    device, model = found.get("kernels", {}), found.get("kernels-modelled", {})
    for name, row in device.get("scenarios", {}).items():
        if name in model.get("scenarios", {}):
            out.append(Compared(name, row["us"], model["scenarios"][name]["task_duration_us"]))
    for name, document in found.items():
        modelled = found.get(f"{name}-modelled")
        if name.startswith("run-") and modelled and document["profile"] and modelled["profile"]:
            times = (d["profile"]["task_duration_us"] for d in (document, modelled))
            out.append(Compared(name.removeprefix("run-"), *times))
    return out


def summary(done: Sequence[StepDone]) -> str:
    """What came out, as Markdown."""
    calibration = next((d.document for d in done if d.step.name == "calibrate" and d.document), None) or {}
    device = calibration.get("device", {})
    measured = calibration.get("time", "unknown")
    said = "." if measured == "measured" else ": the virtual NPU played the device, nothing here is from silicon."
    lines = [
        "# Silicon check",
        "",
        f"ascendopt_tune {importlib.metadata.version('ascendopt_tune')} on {device.get('soc', 'an unknown device')}, "
        f"toolkit {device.get('toolkit', 'unknown')}. Times of the device are {measured}{said}",
        "",
        "| step | result |",
        "|---|---|",
        *(
            f"| {d.step.name} | {'done' if d.code == 0 else f'failed ({d.code}): {_last_line(d.errors)}'} |"
            for d in done
        ),
        "",
    ]
    rows = compared(done)
    if rows:
        middle = statistics.median(abs(r.percent) for r in rows)
        lines += [
            f"The calibrated clock is off by {middle:.1f} % (median) on {len(rows)} kernels it was not fitted to:",
            "",
            f"| kernel | {measured} us | calibrated clock us | difference |",
            "|---|--:|--:|--:|",
            *(f"| {r.name} | {r.device_us:.5g} | {r.modelled_us:.5g} | {r.percent:+.1f} % |" for r in rows),
            "",
        ]
    return "\n".join(lines)


def _last_line(errors: str) -> str:
    return next((line.strip() for line in reversed(errors.splitlines()) if line.strip()), "no message").replace(
        "|", "/"
    )


def bundle(folder: Path, archive: Path) -> None:
    """Packs what the steps left into ``archive`` (.tar.gz), which is there whole or as it was."""
    with replacing(archive) as whole, tarfile.open(whole, "w:gz") as out:
        for file in sorted(folder.iterdir()):
            if file.is_file():
                out.add(file, f"silicon-check/{file.name}", filter=_of_nobody)


def _of_nobody(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    return info


def check(
    folder: Path, target: str, chip: str | None, *, reduced: bool, progress: Callable[[str], None]
) -> list[StepDone]:
    """All steps, the summary and the bundle ``folder.tar.gz``."""
    folder.mkdir(parents=True, exist_ok=True)
    done = []
    for step in steps(folder, target, chip, reduced=reduced):
        progress(step.name)
        done.append(run(step, folder))
    write_whole(folder / "summary.md", summary(done))
    bundle(folder, folder.with_name(f"{folder.name}.tar.gz"))
    return done
