"""Tasks whose inputs are too large for a virtual NPU: what their tiling decides at the full shapes, and a slice's time.

The operator is generated from a slice of the first axis that all inputs share, and run on it; its host program and the
budget of the Unified Buffer are asked at the full shapes, which nobody allocates. The time is the slice's, times how
many slices there are: it leaves out what a launch takes once, and L2, which holds a slice and not the whole.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..build import toolkit
from ..dsl import launch_of
from ..errors import AscendOptError, CaseError
from ..evaluate.evaluator import EvaluateRequest, Evaluator, ProcessLimits
from ..evaluate.gate import Gate
from ..generator import Generated, generate_file
from ..generator.gated import example_case
from ..generator.module_file import read
from ..nouns.case import flatten
from ..nouns.outcome import Timed
from ..sources.registry import load_folder
from ..store.lines import append_lines, read_lines

if TYPE_CHECKING:
    import torch

_SLICE = 24 << 20  # bytes of a slice's inputs
_WIDE = 1 << 31  # elements: more, or bytes of twice as many, are beyond 32 bits
_MOST = 128 << 20  # and at the most, so that every core has a line
_CORES = 48


@dataclass
class Scaled:
    """A task at its full shapes. ``cores``, ``ub_bytes``: of the launch there. ``largest``: bytes of its largest
    tensor. ``slice``: of all of it. Times in us, modelled; ``reason``: why something is missing."""

    task: str
    shapes: str = ""
    schedule: str = ""
    cores: int = 0
    ub_bytes: int = 0
    largest: int = 0
    slice: str = ""
    slice_us: float | None = None
    scaled_us: float | None = None
    reason: str = ""

    @property
    def tiled(self) -> bool:
        return self.cores > 0


def scaled(files: Sequence[Path], results: Path, chip: str, seconds: float) -> Iterator[Scaled]:
    """These tasks at full shapes; what has been done is a line of ``results`` and not done again.

    Args:
        seconds: that the launch of a slice may take.
    """
    known = {s.task: s for s in records(results)}
    results.parent.mkdir(parents=True, exist_ok=True)
    with Evaluator(toolkit.find("virtual"), chip, ProcessLimits(run_s=seconds)) as evaluator:
        for file in files:
            found = known.get(file.stem)
            if found is None:
                found = Scaled(file.stem)
                try:
                    _run(found, file, results.parent, evaluator)
                except (AscendOptError, RuntimeError) as error:
                    found.reason = found.reason or " ".join(str(error).split())[:300]
                append_lines(results, [json.dumps(asdict(found))])
            yield found


def records(results: Path) -> Iterator[Scaled]:
    """What has been done; lines that can't be read are left out."""
    for line in read_lines(results):
        try:
            yield Scaled(**json.loads(line))
        except (ValueError, TypeError):
            continue


def _run(record: Scaled, file: Path, folder: Path, evaluator: Evaluator) -> None:
    import torch

    of = read(file)
    with torch.no_grad():
        module = of.model(*of.init_inputs())
        with torch.device("meta"):
            drawn = of.inputs()
    full = [torch.zeros((), dtype=t.dtype).expand(t.shape) if isinstance(t, torch.Tensor) else t for t in drawn]
    record.shapes = " ".join(f"{_name(t)}{list(t.shape)}" for t in full if isinstance(t, torch.Tensor))
    generated = generate_file(file, example_inputs=full)
    record.schedule = generated.schedule
    target = folder / "scaled" / generated.name
    shutil.rmtree(target, ignore_errors=True)
    generated.write(target)
    operator = load_folder(target)
    whole = _shapes(generated, module, full)
    launch = launch_of(generated.program, whole)
    case = example_case(operator, evaluator, generated, whole)
    request = EvaluateRequest(operator, operator.baseline, case, evaluator.chip, "virtual", ())
    result = evaluator.tile(request)
    if result.block_dim != launch.cores:
        raise CaseError(f"the tiling function takes {result.block_dim} cores, the program {launch.cores}.")
    record.cores, record.ub_bytes = launch.cores, launch.ub_bytes
    record.largest = max(t.nbytes for t in flatten((*case.inputs, *case.outputs)))
    sliced, share = _sliced(module, full)
    if sum(t.numel() * t.element_size() for t in sliced if isinstance(t, torch.Tensor)) > _MOST:
        record.reason = "one line of the first axis is too large to run"
        return
    record.slice = f"1/{share:.4g}" if share > 1 else "all of it"
    part = example_case(operator, evaluator, generated, _shapes(generated, module, sliced))
    outcome = Gate(operator, part, evaluator).build(operator.baseline).outcome
    if not isinstance(outcome, Timed):
        record.reason = outcome.reason
        return
    record.slice_us = round(outcome.profile.task_duration_us, 3)
    record.scaled_us = round(record.slice_us * share, 1)


def _sliced(module: torch.nn.Module, full: Sequence[Any]) -> tuple[list[Any], float]:
    """What the module takes; where it doesn't take shorter vectors beside shorter tables, these alone are cut."""
    import torch

    found = cut(full, lowest=0)
    try:
        with torch.no_grad():
            module(*found[0])
    except RuntimeError:
        return cut(full, lowest=max(t.dim() for t in full if isinstance(t, torch.Tensor)))
    return found


def cut(full: Sequence[Any], lowest: int) -> tuple[list[Any], float]:
    """Fewer lines of the first axis, so that they fit and every core has one where that is possible; and how many such
    slices there are. Nothing is allocated.

    Args:
        lowest: axes of a tensor that is cut.
    """
    import torch

    tensors = [t for t in full if isinstance(t, torch.Tensor)]
    lines = tensors[0].shape[0]
    size = sum(t.numel() * t.element_size() for t in tensors)
    kept = max(1, lines * _SLICE // size, min(_CORES, lines * _MOST // size))
    kept = min(lines, kept - kept % _CORES if kept > _CORES else kept)
    made: list[Any] = []
    for t in full:
        cuts = isinstance(t, torch.Tensor) and t.dim() > 0 and t.dim() >= lowest and t.shape[0] == lines
        made.append(t[:kept] if cuts else t)
    return made, lines / kept


def _shapes(generated: Generated, module: torch.nn.Module, full: Sequence[Any]) -> dict[str, tuple[int, ...]]:
    """Of every input of the program."""
    given = dict(zip((name for name, _ in generated.arguments), full, strict=True))
    state = module.state_dict()
    found = {}
    for i in generated.graph.inputs:
        if i.shape is not None:
            found[i.name] = tuple((state[i.parameter] if i.parameter else given[i.name]).shape)
    return found


def table(of: Sequence[Scaled]) -> list[str]:
    """A row per task, and a count."""
    rows = [
        "| task | inputs | schedule | cores | bytes of UB | largest tensor | offsets | slice | slice (us) |"
        " scaled (us) |",
        "|---|---|---|--:|--:|--:|---|---|--:|--:|",
    ]
    for s in of:
        wide = "64 bits needed" if s.largest >= _WIDE else "32 bits would do"
        times = [f"{t:g}" if t is not None else s.reason for t in (s.slice_us, s.scaled_us)]
        times = [times[0], ""] if s.slice_us is None else times
        rows.append(
            f"| {s.task} | {s.shapes} | {s.schedule} | {s.cores or ''} | {s.ub_bytes or ''} | {_bytes(s.largest)} |"
            f" {wide if s.tiled else ''} | {s.slice} | {' | '.join(times)} |"
        )
    timed = sum(s.scaled_us is not None for s in of)
    return [
        *rows,
        "",
        f"{sum(s.tiled for s in of)} of {len(of)} tiled at the full shapes, {timed} with a slice's time.",
    ]


def _bytes(count: int) -> str:
    return f"{count / (1 << 20):.0f} MiB" if count else ""


def _name(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")
