"""Operators that others published and nobody here looked at before: does each load, build and run, and what stops it?

``python tests/found_operators.py FOLDER...`` asks every operator (a folder with op_host/ and op_kernel/) below the
folders, those in build_out/ aside, in plain cases: all inputs of one shape and of the first dtype column, optional ones
left out, attributes as they default. What an operator makes of indices and axes that are no such thing is its own:
counted is what the build, the checks and the clock make of it.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from ascendopt_tune.bench.survey import operators_below
from ascendopt_tune.build.toolkit import virtual
from ascendopt_tune.errors import AscendOptError
from ascendopt_tune.evaluate.evaluator import Evaluator
from ascendopt_tune.evaluate.gate import Gate
from ascendopt_tune.nouns.case import AttrValue, Case, TensorSpec
from ascendopt_tune.nouns.operator import Operator, Signature
from ascendopt_tune.nouns.outcome import Timed
from ascendopt_tune.sources.arguments import build_case
from ascendopt_tune.sources.project import load_project

CHIP = "ascend910b4"
SHAPES = ((64, 512), (7, 33))
_PLAIN: dict[str, AttrValue] = {"float": 1.0, "int": 1, "bool": False, "list_int": (1,), "str": "mean"}


def plain_case(operator: Operator, signature: Signature, shape: tuple[int, ...], evaluator: Evaluator) -> Case:
    """All tensors of one shape; an operator without a shape function gets outputs of it, too."""
    inputs = {
        p.name + (".0" if p.kind == "dynamic" else ""): TensorSpec(p.dtypes[0], shape)
        for p in signature.inputs
        if p.kind != "optional"
    }
    attrs = {a.name: _PLAIN.get(a.type, 1) for a in signature.attrs if a.default is None}
    outputs = {} if signature.has_infer_shape else {p.name: TensorSpec(p.dtypes[0], shape) for p in signature.outputs}
    return build_case(signature, inputs, attrs, outputs, lambda i, a: evaluator.infer_outputs(operator, i, a))


def asked(path: Path, evaluator: Evaluator) -> Iterator[str]:
    """What comes of the operator: of loading it, or else of each case."""
    try:
        operator = load_project(path)
        signature = evaluator.describe(operator).signature
    except AscendOptError as error:
        yield f"not loaded: {error}"
        return
    for shape in SHAPES:
        try:
            gate = Gate(operator, plain_case(operator, signature, shape, evaluator), evaluator, signature=signature)
            outcome = gate.build(operator.baseline).outcome
        except AscendOptError as error:
            yield f"no such case: {error}"
            continue
        if isinstance(outcome, Timed):
            yield f"ran: {outcome.profile.task_duration_us:.2f} us modelled, {outcome.profile.block_dim} blocks"
        else:
            yield f"{type(outcome).__name__}: {outcome.reason}"


def main() -> None:
    found = [p for folder in sys.argv[1:] for p in operators_below(Path(folder)) if "build_out" not in p.parts]
    if not found:
        sys.exit("No operator below these folders; name some that have op_host/ and op_kernel/.")
    best: Counter[str] = Counter()
    with Evaluator(virtual(), CHIP, workers=1) as evaluator:
        for path in found:
            answers = list(asked(path, evaluator))
            kinds = [a.partition(":")[0] for a in answers]
            best["ran" if "ran" in kinds else kinds[0]] += 1
            print(path, *(f"    {' '.join(a.split())[:400]}" for a in answers), sep="\n", flush=True)
    print(f"{len(found)} operators: " + ", ".join(f"{kind} {n}" for kind, n in best.most_common()))


if __name__ == "__main__":
    main()
