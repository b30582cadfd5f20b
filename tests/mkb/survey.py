"""Imports and runs public solutions of MultiKernelBench, and prints a row of docs/multikernelbench.md for each.

``ASCENDOPT_MKB=<checkout> ASCENDOPT_MKB_SOLUTIONS=<folder of *.py> python tests/mkb/survey.py [--gate] [TASK...]``; the
checkout is MultiKernelBench at 667f7ec. Without ``--gate`` on one draw of the task's own inputs, as MultiKernelBench
compares, against the gate's tolerances; with it also through the gate. Hours for all of them.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from imported import checked, gate_of, wrong_on

from ascendopt_tune.build import toolkit
from ascendopt_tune.errors import AscendOptError
from ascendopt_tune.evaluate.evaluator import Evaluator, ProcessLimits
from ascendopt_tune.mkb.folder import import_solution
from ascendopt_tune.nouns.operator import Operator
from ascendopt_tune.nouns.outcome import Timed
from ascendopt_tune.sources.registry import load_folder

#: The categories whose tasks need vector cores alone.
CATEGORIES = (
    "activation", "broadcast", "index", "loss", "math", "normalization", "optimizer", "pooling", "reduce", "resize"
)  # fmt: skip
#: Tasks of these categories that need a cube, and names of solutions that differ by more than underscores.
CUBE = ("matmul",)
ALIASES = {"softplus": "softplus_akg", "logic_and_broadcast": "land_bc"}
#: Texts of tasks with smaller sizes, with which kernels of scalar loops end in a minute on the virtual NPU.
SMALLER: dict[str, dict[str, str]] = {
    "bilinear_upsample": {"8, 256, 64, 64": "1, 4, 16, 16"},
    "downsample_bilinear": {"4, 128, 240, 320": "1, 4, 240, 320"},
    "embedding": {"(512, 128)": "(8, 16)"},
    "frobenius_norm": {"batch_size = 16": "batch_size = 2", "dim1 = 256": "dim1 = 32"},
    "grid_sample_random_warp": {"4, 3, 256, 256": "1, 3, 32, 32"},
    "index_add": {"(1024, 4096)": "(32, 256)", "0, 1024, (8192,)": "0, 32, (128,)", "(8192, 4096)": "(128, 256)"},
    "index_copy": {"(8192, 1024)": "(256, 64)", "0, 8192, (2048,)": "0, 256, (64,)", "(2048, 1024)": "(64, 64)"},
    "index_select": {"256, 8192": "16, 512", "0, 8192, (2048,)": "0, 512, (128,)"},
    "instance_norm": {"batch_size = 16": "batch_size = 2", "dim1 = 256": "dim1 = 32"},
    "layer_norm": {"batch_size = 16": "batch_size = 2", "dim1 = 256": "dim1 = 32"},
    "logic_and_broadcast": {"128, 512, 1024": "4, 64, 128", "(1, 512, 1)": "(1, 64, 1)"},
    "masked_fill": {"64, 512, 512": "4, 32, 128"},
    "matrix_scalar_multiplication": {"M = 16384": "M = 64"},
    "max_pooling_2d": {"batch_size = 16": "batch_size = 1", "channels = 32": "channels = 2"},
    "max_pooling_3d": {"batch_size = 16": "batch_size = 1", "channels = 32": "channels = 1", "dim1 = 64": "dim1 = 16"},
    "nearest_neighbor_upsample": {"16, 128, 32, 32": "2, 4, 16, 16"},
    "rms_norm": {"batch_size = 16": "batch_size = 2", "dim1 = 256": "dim1 = 16", "dim2 = 256": "dim2 = 16"},
    "scatter_add": {
        "(32, 4096)": "(4, 512)",
        "0, 4096, (32, 1024)": "0, 512, (4, 128)",
        "rand(32, 1024)": "rand(4, 128)",
    },
    "take_along_dim": {"128, 8192": "8, 512", "0, 8192, (128, 4096)": "0, 512, (8, 256)"},
    "where_broadcast": {"(1, 512, 1)": "(1, 32, 1)", "64, 512, 64": "4, 32, 64"},
}
EXAMPLES = ("add", "layer_norm", "leaky_relu", "mse_loss", "reduce_sum")


@dataclass(frozen=True)
class Pair:
    """A task and a solution for it."""

    name: str
    task: Path
    solution: Path


@dataclass(frozen=True)
class Finding:
    """What became of a solution: ``refused`` by the import; else the verdicts on the task's draw and of the gate."""

    name: str
    refused: str = ""
    verdict: str = ""
    us: float = 0.0
    gate: str = ""
    seconds: float = 0.0

    @property
    def runs(self) -> bool:
        """Imported, built, and launched to the end without an error of access, queue or order."""
        return bool(self.us)

    def row(self) -> str:
        time_us = f"{self.us:.4g}" if self.us else "-"
        name = f"{self.name} *" if self.name in SMALLER else self.name
        return f"| {name} | {self.refused or self.verdict} | {time_us} | {self.gate or '-'} |"


def examples(root: Path) -> list[Pair]:
    """The benchmark's own examples of vector kernels, whose tasks are beside them."""
    prompts = root / "prompts"
    return [
        Pair(f"example {n}", prompts / f"cuda_model_{n}.py", prompts / f"ascendc_new_model_{n}.py") for n in EXAMPLES
    ]


def pairs(root: Path, solutions: Path) -> list[Pair]:
    """Vector tasks of the checkout for which there is a solution, by category and name."""
    there = {f.stem.replace("_", ""): f for f in solutions.glob("*.py")}
    found = []
    for category in CATEGORIES:
        for task in sorted((root / "reference" / category).glob("*.py")):
            solution = there.get(ALIASES.get(task.stem, task.stem).replace("_", ""))
            if solution is not None and not any(c in task.stem for c in CUBE):
                found.append(Pair(task.stem, task, solution))
    return found


def survey(pair: Pair, evaluator: Evaluator, through_gate: bool = False) -> Finding:
    """Imports the solution, and runs it."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        out = Path(name) / pair.name
        try:
            found = import_solution(pair.solution, _task(pair, Path(name)), out)
        except AscendOptError as e:
            return Finding(pair.name, refused=_short(e.message, pair))
        operator = load_folder(out)
        try:
            one = checked(operator, evaluator, kinds=("normal",), arrays=found.arrays)
            us = one.outcome.profile.task_duration_us if isinstance(one.outcome, Timed) else 0.0
            verdict = "right" if us else _short(one.outcome.reason, pair)  # type: ignore[union-attr]
            gate = ""
            if through_gate and us:
                gate = _gate(operator, evaluator, pair)
        except AscendOptError as e:
            us, verdict, gate = 0.0, _short(e.message, pair), ""
        return Finding(pair.name, "", verdict, us, gate, time.monotonic() - start)


def _gate(operator: Operator, evaluator: Evaluator, pair: Pair) -> str:
    """The gate's verdict, and the kinds of inputs on which the operator is wrong or gives nothing to compare."""
    gate = gate_of(operator, evaluator)
    found = gate.evaluate(gate.operator.baseline)
    if not isinstance(found.outcome, Timed):
        return _short(found.outcome.reason, pair)
    parts = [f"{kind} ({100 * share:.2g} %)" for kind, share in wrong_on(gate, evaluator).items()]
    parts += [f"{text.partition(' inputs')[0]} (nearly all)" for text in gate.skipped]
    return "passes" + (f"; wrong on {', '.join(dict.fromkeys(parts))}" if parts else "")


def _task(pair: Pair, scratch: Path) -> Path:
    """The task's file, with smaller sizes where it says so."""
    text = pair.task.read_text()
    for large, small in SMALLER.get(pair.name, {}).items():
        assert large in text, f"{pair.task} has no {large}"
        text = text.replace(large, small)
    file = scratch / pair.task.name
    file.write_text(text)
    return file


def _short(text: str, pair: Pair) -> str:
    """One line without paths of this machine and without the trial's number."""
    text = re.sub(r"\S*/(op_host|op_kernel)/", r"\1/", text.replace(f"{pair.solution}: ", ""))
    text = text.replace(str(pair.solution), pair.solution.name)
    return " ".join(re.sub(r" \[trial .*", "", text).split()).replace("|", "\\|")


def main(words: list[str]) -> Iterator[Finding]:
    root, solutions = Path(os.environ["ASCENDOPT_MKB"]), Path(os.environ["ASCENDOPT_MKB_SOLUTIONS"])
    names = [w for w in words if not w.startswith("-")]
    with Evaluator(toolkit.find("virtual"), limits=ProcessLimits(run_s=900)) as evaluator:
        for pair in [*examples(root), *pairs(root, solutions)]:
            if not names or pair.name in names:
                yield survey(pair, evaluator, "--gate" in words)


if __name__ == "__main__":
    os.environ.setdefault("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")
    for finding in main(sys.argv[1:]):
        print(finding.row(), flush=True)
