"""From flags to what a command works on: an operator, a case, the user's arrays."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

from ..build.host_signature import dtype_column
from ..errors import CaseError, HostProgramError, OperatorError
from ..evaluate.evaluator import Evaluator
from ..files import MALFORMED, read_toml
from ..nouns.case import Argument, AttrValue, Case, TensorSpec, flatten
from ..nouns.operator import Operator, Signature
from ..sources import arguments
from ..sources.kernels import kernels_in
from ..sources.project import load_direct
from ..sources.registry import load_folder, load_operator, operator_names
from ..sources.texts import tilings_of
from .options import CaseFlags, OperatorFlags


@dataclass(frozen=True)
class CommandSubject:
    """What a command works on; ``arrays`` are the user's own inputs by name (empty: random ones are made)."""

    operator: Operator
    signature: Signature
    case: Case
    arrays: Mapping[str, arguments.Array]

    @property
    def reference(self) -> str:
        """What results are compared with: ``reference.py``, or ``baseline`` (the pair as it is written)."""
        return "baseline" if self.operator.reference is None else "reference.py"


def find_operator(given: OperatorFlags) -> Operator:
    """The operator the command line names; one whose reference can't run here comes without.

    Raises:
        OperatorError: nothing or two things named, or it can't be found; a folder that is none.
    """
    operator = _named_operator(given)
    for folder in given.include:
        if not folder.is_dir():
            raise OperatorError(f"-I {folder} is no folder.", "Give a folder with headers in it.")
    folders = tuple(folder.expanduser().resolve() for folder in given.include)
    changed = tuple(dict.fromkeys([*operator.in_place, *given.in_place]))
    return replace(
        operator,
        host_include_dirs=(*operator.host_include_dirs, *folders),
        kernel_include_dirs=(*operator.kernel_include_dirs, *folders),
        settings={**operator.settings, "in_place": list(changed)} if changed else operator.settings,
    )


def _named_operator(given: OperatorFlags) -> Operator:
    op, kernel, entry, block_dim, defines = given.op, given.kernel, given.entry, given.block_dim, given.define
    if kernel is not None:
        if op is not None:
            raise OperatorError(f"both an operator ({op}) and --kernel {kernel} are given.", "Give one of them.")
        entry, block_dim = _entry_and_blocks(kernel, entry, block_dim)
        pairs = tuple((d.partition("=")[0], d.partition("=")[2] or "1") for d in defines)
        return load_direct(kernel, entry, block_dim, pairs)
    if entry is not None or block_dim is not None or defines:
        raise OperatorError("--entry, --block-dim and -D are for a kernel file.", "Name the file with --kernel.")
    if op is None:
        raise OperatorError(
            "no operator is given.", f"Registry: {', '.join(operator_names())}; or give a folder, or --kernel FILE."
        )
    if Path(op).is_file():
        raise OperatorError(f"{op} is a file.", f"Launch it with --kernel {op} --entry NAME --block-dim N.")
    is_folder = op not in operator_names() and Path(op).is_dir()
    operator = load_folder(Path(op)) if is_folder else load_operator(op)
    if operator.reference is not None and find_spec("torch") is None:
        text = (
            "torch is not installed (pip install 'ascendopt_tune[torch]'), so reference.py can't run; "
            "the pair as written is the specification."
        )
        print(f"note: {text}", file=sys.stderr)
        operator = replace(operator, reference=None)
    return operator


def _entry_and_blocks(kernel: Path, entry: str | None, block_dim: int | None) -> tuple[str, int]:
    """What is not given is read from the file: its only kernel, and the blocks of its ``<<<>>>`` launch.

    Raises:
        OperatorError: it can't be read there.
    """
    kernels = kernels_in(kernel)
    if entry is None:
        if len(kernels) != 1:
            known = f"has the kernels {', '.join(kernels)}" if kernels else "has no __global__ function"
            raise OperatorError(f"{kernel} {known}.", "Name the one to launch with --entry, and its --block-dim.")
        (entry,) = kernels
    if block_dim is None:
        block_dim = kernels.get(entry.partition("<")[0])
    if block_dim is None:
        raise OperatorError(
            f"on how many blocks {entry} of {kernel} is to run is not said.",
            "Give --block-dim; it can be left out where the file launches it with <<<NUMBER, ...>>>.",
        )
    return entry, block_dim


def make_subject(operator: Operator, evaluator: Evaluator, flags: CaseFlags) -> CommandSubject:
    """Operator and case from what the command line says; without inputs, the first case of ``op.toml``.

    Raises:
        CaseError: a name, dtype, shape or value that doesn't fit the operator, or ``outputs`` can't hold the results.
        HostProgramError: the definition doesn't compile, or there is no tiling function.
    """
    arrays = arguments.load_arrays(flags.inputs) if flags.inputs is not None else {}
    specs = {name: TensorSpec(arguments.dtype_name(a.dtype), tuple(a.shape)) for name, a in arrays.items()}
    for name, layout in arguments.parse_formats(flags.format).items():
        if name not in specs:
            raise CaseError(f"--format names {name}, which is not in --inputs.", "Write --input x=DTYPE[...]:FORMAT.")
        specs[name] = replace(specs[name], format=layout)
    for name, spec in arguments.parse_tensors(flags.input, "--input").items():
        if name in specs:
            raise CaseError(f"{name} is given by --input and in {flags.inputs}.", "Give it once.")
        specs[name] = spec
    given = arguments.parse_tensors(flags.output, "--output")
    if operator.direct is not None:
        attrs = arguments.parse_attrs(flags.attr, None)
        signature = arguments.direct_signature(operator, specs, given, attrs)
        case = arguments.build_case(signature, specs, attrs, given, None, operator.in_place)
    else:
        signature = evaluator.describe(operator).signature
        if not signature.has_tiling:
            others = ", ".join(tilings_of(operator.baseline.tiling.values()))
            raise HostProgramError(
                f"operator {signature.op_type} in {operator.root} has no tiling function"
                + (f"; its sources register one for {others}." if others else "."),
                "Register one with AICore().SetTiling(...) or IMPL_OP_OPTILING, or launch the kernel with --kernel.",
            )
        attrs = arguments.parse_attrs(flags.attr, signature)
        if not specs and signature.inputs:
            specs, example_attrs, example_outputs = _example(operator, signature)
            attrs, given = {**example_attrs, **attrs}, {**example_outputs, **given}

        def infer(inputs: tuple[Argument, ...], attrs: tuple[tuple[str, AttrValue], ...]) -> tuple[Argument, ...]:
            dtype_column(signature, inputs)  # dtypes that the operator doesn't have aren't a question of shapes
            try:
                return evaluator.infer_outputs(operator, inputs, attrs)
            except (HostProgramError, CaseError) as e:
                names = " ".join(f"--output {p.name}=DTYPE[...]" for p in signature.outputs)
                raise HostProgramError(
                    f"the outputs' shapes are unknown: {e.message}",
                    f"A shape function that needs an input's values has none here: name the outputs, {names}.",
                ) from e

        case = arguments.build_case(signature, specs, attrs, given, infer, operator.in_place)
    if flags.outputs is not None:
        arguments.check_output_file(flags.outputs, flatten(case.outputs))
    if flags.domain:
        given_domains = dict(arguments.parse_domain(text, signature) for text in flags.domain)
        domains = {**operator.settings.get("domain", {}), **given_domains}
        operator = replace(operator, settings={**operator.settings, "domain": domains})
    return CommandSubject(operator, signature, case, arrays)


def make_subjects(operator: Operator, evaluator: Evaluator, file: Path) -> tuple[list[CommandSubject], list[float]]:
    """The cases of a TOML file, and their weights: ``[[case]]`` tables as in ``op.toml``, each with a ``weight``
    (default 1).

    Raises:
        CaseError: the file can't be read or has no case, or a case doesn't fit the operator; the text says which.
    """
    try:
        tables = read_toml(file).get("case", [])
    except (OSError, ValueError) as e:
        raise CaseError(f"--cases {file} can't be read: {e}.", "It needs [[case]] tables as in op.toml.") from e
    if operator.direct is not None or not tables:
        what = "is for operators with a tiling function" if operator.direct is not None else f"{file} has no [[case]]"
        raise CaseError(f"--cases {what}.", "Give one case with --input instead.")
    subjects, weights = [], []
    for number, table in enumerate(tables, start=1):
        if not isinstance(table, dict):
            raise CaseError(f"case {number} of {file} is no table.", "Write [[case]] tables as in op.toml.")
        unknown = sorted(set(table) - {"inputs", "outputs", "attrs", "weight", "name"})
        weight = table.get("weight", 1)
        if unknown or not isinstance(weight, (int, float)) or not weight > 0:
            what = f"has an unknown name {unknown[0]!r}" if unknown else f"has the weight {weight!r}"
            raise CaseError(f"case {number} of {file} {what}.", "Give inputs, outputs, attrs, and a weight above 0.")
        try:
            attrs = [f"{name}={_attr_text(value)}" for name, value in table.get("attrs", {}).items()]
            tensors = {part: [f"{n}={t}" for n, t in table.get(part, {}).items()] for part in ("inputs", "outputs")}
        except MALFORMED as e:
            raise CaseError(f"case {number} of {file} can't be read: {e}.", "Its parts are tables.") from e
        try:
            flags = CaseFlags(input=tensors["inputs"], output=tensors["outputs"], attr=attrs)
            subjects.append(make_subject(operator, evaluator, flags))
        except CaseError as e:
            raise CaseError(f"case {number} of {file}: {e.message}", e.hint) from e
        weights.append(float(weight))
    return subjects, weights


def _attr_text(value: object) -> str:
    """A TOML value as ``--attr`` takes it."""
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def _how_to_call(signature: Signature) -> str:
    """Which inputs and attributes an operator takes, and a command line with all it requires."""
    takes = []
    for p in signature.inputs:
        kind = {"optional": ", optional", "dynamic": ", a list"}.get(p.kind, "")
        takes.append(f"{p.name} ({', '.join(dict.fromkeys(p.dtypes))}{kind})")
    words = [
        f"--input {p.name}{'.0' if p.kind == 'dynamic' else ''}={p.dtypes[0]}[64,1024]"
        for p in signature.inputs
        if p.kind != "optional"
    ]
    for a in signature.attrs:
        if a.default is None:
            takes.append(f"the attribute {a.name} ({a.type})")
            words.append(f"--attr {a.name}=...")
    if not signature.has_infer_shape:
        words += [f"--output {p.name}={p.dtypes[0]}[64,1024]" for p in signature.outputs]
    return f"It takes {', '.join(takes)}. For example, with shapes of yours: {' '.join(words)}."


def _example(
    operator: Operator, signature: Signature
) -> tuple[dict[str, TensorSpec], dict[str, AttrValue], dict[str, TensorSpec]]:
    """Inputs, attributes and outputs of the first ``[[case]]`` of the operator's ``op.toml``.

    Raises:
        CaseError: there is none.
    """
    examples = operator.settings.get("case", [])
    if not examples:
        raise CaseError(f"no inputs are given for {operator.name}.", _how_to_call(signature))

    def tensors(part: str) -> dict[str, TensorSpec]:
        return arguments.parse_tensors([f"{n}={t}" for n, t in examples[0].get(part, {}).items()], part)

    attrs = {k: tuple(v) if isinstance(v, list) else v for k, v in examples[0].get("attrs", {}).items()}
    return tensors("inputs"), attrs, tensors("outputs")
