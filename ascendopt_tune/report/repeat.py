"""The command that repeats a run."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from ..nouns.case import Argument
from ..nouns.operator import Operator
from ..sources.registry import operator_names
from ..tuner import TuneRecord


def command(operator: Operator | None, record: TuneRecord) -> str:
    """``ascendopt-tune tune ...`` with the run's case, chip, target, seed and budget; random inputs in place of the
    caller's own arrays. Without the operator it is called by its name."""
    made, signature = record.entry.provenance, record.entry.signature
    name = record.key.operator
    if operator is not None and operator.name not in operator_names():
        name = str(operator.root.name)
    words = ["ascendopt-tune", "tune", name]
    names = [p.name for p in signature.inputs] if signature is not None else []
    for parameter, value in zip(names, record.case.inputs, strict=False):
        words += [word for tensor in _tensors(parameter, value) for word in ("--input", tensor)]
    for attribute, given in record.case.attrs:
        text = ",".join(map(str, given)) if isinstance(given, tuple) else str(given)
        words += ["--attr", f"{attribute}={text.lower() if isinstance(given, bool) else text}"]
    words += ["--chip", record.key.chip, "--target", record.key.target]
    words += ["--seed", str(made.seed), "--budget", str(made.budget), "--retune"]
    return shlex.join(words)


def _tensors(name: str, value: Argument) -> Iterator[str]:
    """``NAME=DTYPE[d0,..]`` of a tensor, or of each tensor of a list; nothing for one that is left out."""
    if value is None:
        return
    listed = isinstance(value, tuple)
    for i, one in enumerate(value if isinstance(value, tuple) else (value,)):
        shape = ",".join(map(str, one.shape))
        yield f"{name}.{i}={one.dtype}[{shape}]" if listed else f"{name}={one.dtype}[{shape}]"
