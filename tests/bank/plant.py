"""Makes planted.json: what operators that the bank doesn't know show when one optimization is taken out of each.

Run it with ASCENDOPT_CANN_OPS naming a checkout of cann-ops (``python tests/bank/plant.py``); it takes minutes. Each
motif's first rewind of each kernel goes through the gate and is measured; those that cost more than noise are kept.
Nothing of the operators themselves is: a place is named by a hash.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ascendopt_tune.bank.bank import Bank
from ascendopt_tune.bank.rewind import RewindOptions
from ascendopt_tune.build.toolkit import virtual
from ascendopt_tune.cli.bank_build import subject_of
from ascendopt_tune.deploy.mining import Unit, build
from ascendopt_tune.evaluate.evaluator import Evaluator
from ascendopt_tune.settings import settings
from ascendopt_tune.sources.registry import load_folder

FILE = Path(__file__).with_name("planted.json")
#: operator -> (chip, case)
KERNELS = {
    "math/addcmul": (
        "ascend910b2",
        "input_data=float16[2048,2048] x1=float16[2048,2048] x2=float16[2048,2048] value=float16[1]",
    ),
    "math/clip_by_value_v2": (
        "ascend910b3",
        "x=float32[2048,2048] clip_value_min=float32[1] clip_value_max=float32[1]",
    ),
    "math/addcdiv": (
        "ascend910b1",
        "input_data=float32[1000,2111] x1=float32[1000,2111] x2=float32[1000,2111] value=float32[1]",
    ),
    "math/add_custom": ("ascend910_93", "x=float16[2048,2048] y=float16[2048,2048]"),
    "math/abs": ("ascend910b2", "x=float32[2048,2048]"),
    "math/complex_mat_dot": ("ascend910b4", "matx=complex64[512,1024] maty=complex64[512,1024] m=512 n=1024"),
}


def place(site: str) -> str:
    """A name of a place that quotes nobody's code."""
    return hashlib.sha256(site.encode()).hexdigest()[:12]


def planted(operator: str, folder: Path) -> Iterator[dict[str, str]]:
    """The rows of one operator below ``folder``, a checkout of cann-ops."""
    chip, case = KERNELS[operator]
    with Evaluator(virtual(), chip) as evaluator, tempfile.TemporaryDirectory() as bank:
        project = load_folder(folder / "src" / operator)
        subject = subject_of(project, case, evaluator)
        how = RewindOptions(depth=1, per_motif=1)
        unit = Unit(project, subject.case, chip, (operator,), options=how)
        for found in build(unit, Bank(Path(bank)), virtual(), evaluator=evaluator):
            e = found.experience
            if e is not None and e.kind == "positive":
                yield {"operator": operator, "motif": e.motif, "place": place(e.site), "symptoms": e.bottleneck}


def main() -> None:
    folder = settings().cann_ops
    if folder is None:
        sys.exit("ASCENDOPT_CANN_OPS names no checkout of cann-ops.")
    rows = [row for operator in KERNELS for row in planted(operator, folder)]
    rows.sort(key=lambda row: (row["operator"], row["motif"], row["place"]))
    FILE.write_text(json.dumps({"made by": "tests/bank/plant.py", "kernels": rows}, indent=1) + "\n")
    print(f"{len(rows)} kernels: {FILE}")


if __name__ == "__main__":
    main()
