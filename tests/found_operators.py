"""Operators that others published and nobody here looked at before: does each load, build and run, and what stops it?

``python tests/found_operators.py FOLDER...`` asks every operator (a folder with op_host/ and op_kernel/) below the
folders, those in build_out/ aside, in plain cases: all inputs of one shape and of the first dtype column, optional ones
left out, attributes as they default. Where neither case of two axes runs, others follow (images, rows, volumes), until
one does; outputs are what the operator's shape function says, or of the inputs' shape if it refuses or says nothing.
What an operator makes of indices and axes that are no such thing is its own: counted is what the build, the checks and
the clock make of it.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
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
FURTHER = ((2, 3, 16, 32), (2, 16, 32), (4096,), (2, 3, 4, 8, 16))
_PLAIN: dict[str, AttrValue] = {"float": 1.0, "int": 1, "bool": False, "str": "mean"}


def plain_case(
    operator: Operator, signature: Signature, shape: tuple[int, ...], evaluator: Evaluator, inferred: bool = True
) -> Case:
    """All tensors of one shape; so are outputs of an operator without a shape function, or where none are inferred."""
    inputs = {
        p.name + (".0" if p.kind == "dynamic" else ""): TensorSpec(p.dtypes[0], shape)
        for p in signature.inputs
        if p.kind != "optional"
    }
    for_each_axis = (2,) * max(1, len(shape) - 2)  # of an image's axes behind batch and channels
    attrs = {a.name: _PLAIN.get(a.type, 1) for a in signature.attrs if a.default is None}
    attrs |= {a.name: for_each_axis for a in signature.attrs if a.default is None and a.type == "list_int"}
    inferred = inferred and signature.has_infer_shape
    outputs = {} if inferred else {p.name: TensorSpec(p.dtypes[0], shape) for p in signature.outputs}
    return build_case(signature, inputs, attrs, outputs, lambda i, a: evaluator.infer_outputs(operator, i, a))


def asked(path: Path, evaluator: Evaluator) -> Iterator[str]:
    """What comes of the operator: of loading it, or else of each case."""
    try:
        operator = load_project(path)
        signature = evaluator.describe(operator).signature
    except AscendOptError as error:
        yield f"not loaded: {error}"
        return
    ran = [answer.startswith("ran") for answer in (yield from _each(operator, signature, SHAPES, evaluator))]
    for shape in FURTHER if not any(ran) else ():
        answers = yield from _each(operator, signature, [shape], evaluator)
        if answers[0].startswith("ran"):
            break


def _each(
    operator: Operator, signature: Signature, shapes: Iterable[tuple[int, ...]], evaluator: Evaluator
) -> Generator[str, None, list[str]]:
    """Yields and returns what comes of each shape's case."""
    answers = []
    for shape in shapes:
        answer = _answer(operator, signature, shape, evaluator, True)
        if not answer.startswith("ran") and signature.has_infer_shape:
            given = _answer(operator, signature, shape, evaluator, False)
            answer = f"{given}, outputs given" if given.startswith("ran") else answer
        answers.append(answer)
        yield answer
    return answers


def _answer(
    operator: Operator, signature: Signature, shape: tuple[int, ...], evaluator: Evaluator, inferred: bool
) -> str:
    try:
        case = plain_case(operator, signature, shape, evaluator, inferred)
        gate = Gate(operator, case, evaluator, signature=signature)
        outcome = gate.build(operator.baseline).outcome
    except AscendOptError as error:
        return f"no such case: {error}"
    if isinstance(outcome, Timed):
        sizes = ",".join(map(str, shape))
        return f"ran: {outcome.profile.task_duration_us:.2f} us modelled, {outcome.profile.block_dim} blocks, [{sizes}]"
    return f"{type(outcome).__name__}: {outcome.reason}"


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
