"""From what a user writes (``x=float16[1024,4096]``, a file of arrays, ``dim=-1``) to a Case.

Spelling of a tensor: ``NAME=DTYPE[d0,d1,...]``, a storage format may follow as ``:NHWC``. The tensors of a list
parameter are ``NAME.0``, ``NAME.1``, ...; ``NAME=[]`` is one without any. A scalar tensor is ``DTYPE[]``; ``DTYPE[1]``
has one element.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from ..errors import CaseError, did_you_mean
from ..files import parse_json, replacing
from ..nouns.case import DTYPES, Argument, AttrValue, Case, TensorSpec
from ..nouns.operator import AttrDef, Operator, ParamDef, Signature

Array = np.ndarray[Any, Any]
InferOutputs = Callable[[tuple[Argument, ...], tuple[tuple[str, AttrValue], ...]], tuple[Argument, ...]]

_TENSOR = re.compile(r"^(?P<name>\w+(?:\.\d+)?)=(?P<dtype>\w+)\[(?P<shape>\d+(?:,\d+)*|)\](?::(?P<format>\w+))?$")
_EMPTY_LIST = re.compile(r"(?P<name>\w+)=\[\]")
_ALIASES = {"fp16": "float16", "half": "float16", "fp32": "float32", "float": "float32", "bf16": "bfloat16"}


@cache
def dtype_name(dtype: np.dtype[Any]) -> str:
    """torch's name of a numpy dtype; bfloat16 is ml_dtypes'.

    Raises:
        CaseError: CANN has no such dtype.
    """
    name = "bfloat16" if dtype == ml_dtypes.bfloat16 else str(dtype)
    if name not in DTYPES:
        raise CaseError(f"arrays of dtype {name} can't be given to an operator.", f"Known dtypes: {', '.join(DTYPES)}.")
    return name


@cache
def numpy_dtype(name: str) -> np.dtype[Any]:
    """numpy's dtype for torch's name; ml_dtypes' for bfloat16 and int4."""
    return np.dtype(getattr(ml_dtypes, name) if name in ("bfloat16", "int4") else name)


def parse_tensor(text: str) -> tuple[str, TensorSpec]:
    """``x=float16[1024,4096]`` -> ("x", TensorSpec).

    Raises:
        CaseError: another spelling, or an unknown dtype.
    """
    match = _TENSOR.match(text.replace(" ", ""))
    if match is None:
        raise CaseError(
            f"can't read the tensor {text!r}.", "Write NAME=DTYPE[d0,d1,...], for example x=float16[1024,4096]."
        )
    shape = tuple(int(n) for n in match["shape"].split(",") if n)
    dtype = _ALIASES.get(match["dtype"], match["dtype"])
    return match["name"], TensorSpec(dtype, shape, match["format"] or "ND")


def parse_tensors(texts: Iterable[str], option: str) -> dict[str, TensorSpec]:
    """Every tensor of a repeatable option by name; a list without any, ``NAME=[]``, by its name with a dot behind.

    Raises:
        CaseError: as :func:`parse_tensor`, or a name that is given twice.
    """
    found: dict[str, TensorSpec] = {}
    for text in texts:
        empty = _EMPTY_LIST.fullmatch(text.replace(" ", ""))
        name, spec = (f"{empty['name']}.", TensorSpec("float32", (0,))) if empty else parse_tensor(text)
        if name in found:
            raise CaseError(f"{option} {name} is given twice.", "Give it once; the tensors of a list are x.0, x.1, ...")
        found[name] = spec
    return found


def parse_attr(text: str, signature: Signature | None) -> tuple[str, AttrValue]:
    """``dim=-1`` -> ("dim", -1), typed by the operator definition, or by its look where there is none.

    Raises:
        CaseError: unknown attribute (lists those that exist) or a value of another type.
    """
    name, eq, value = text.partition("=")
    name = name.strip()
    if not eq:
        raise CaseError(f"can't read the attribute {text!r}.", "Write NAME=VALUE, for example dim=-1.")
    if signature is None:
        return name, _untyped(value)
    for attr in signature.attrs:
        if attr.name == name:
            return name, _typed(attr, value.strip())
    raise _no_attribute(signature, name)


def _no_attribute(signature: Signature, name: str) -> CaseError:
    known = [a.name for a in signature.attrs]
    text = f"{signature.op_type} has no attribute {name!r}.{did_you_mean(name, known)}"
    return CaseError(text, f"Its attributes: {', '.join(known) or 'none'}.")


def parse_attrs(texts: Iterable[str], signature: Signature | None) -> dict[str, AttrValue]:
    """Every attribute by name.

    Raises:
        CaseError: as :func:`parse_attr`, or a name that is given twice.
    """
    found: dict[str, AttrValue] = {}
    for name, value in (parse_attr(text, signature) for text in texts):
        if name in found:
            raise CaseError(f"--attr {name} is given twice.", "Give it once.")
        found[name] = value
    return found


def _untyped(value: str) -> AttrValue:
    try:
        parsed = parse_json(value)
    except ValueError:
        try:
            parsed = parse_json(f"[{value}]")  # lists are written 1,2,3
        except ValueError:
            return value
    return tuple(parsed) if isinstance(parsed, list) else parsed


def _typed(attr: AttrDef, value: str) -> AttrValue:
    def one(kind: str, text: str) -> Any:
        if kind == "bool":
            return {"true": True, "1": True, "false": False, "0": False}[text.lower()]
        return {"int": int, "float": float, "str": str}[kind](text)

    if not attr.type:
        return _untyped(value)
    try:
        if attr.type.startswith("list_"):
            items = value.strip("[]() ")
            return tuple(one(attr.type[5:], t.strip()) for t in items.split(",") if t.strip())
        return one(attr.type, value)  # type: ignore[no-any-return]
    except (ValueError, KeyError):
        raise CaseError(
            f"attribute {attr.name} = {value!r} is not of type {attr.type}.",
            "Lists are written 1,2,3; booleans true or false.",
        ) from None


def parse_domain(text: str, signature: Signature | None) -> tuple[str, dict[str, Any]]:
    """``x=0:100`` -> the values in [0, 100]; ``x=0:`` from 0 on; ``index=x`` or ``index=x:1`` -> indices into axis 0 or
    1 of input x; ``offsets=[0,3,8]`` -> these values. As a ``[domain]`` table of op.toml.

    Raises:
        CaseError: another spelling, or a name that is no input.
    """
    name, _, value = text.replace(" ", "").partition("=")
    names = [p.name for p in signature.inputs] if signature is not None else None
    if names is not None and name not in names:
        raise CaseError(f"--domain {text!r} names no input.", f"Inputs: {', '.join(names) or 'none'}.")
    first, colon, second = value.partition(":")
    try:
        if value.startswith("["):
            return name, {"values": parse_json(value)}
        if re.fullmatch(r"[A-Za-z_]\w*", first):
            return name, {"index": first, "axis": int(second or 0)}
        if colon and (first or second):
            bounds = {"low": first, "high": second}
            return name, {k: float(v) if set(v) & set(".einf") else int(v) for k, v in bounds.items() if v}
    except ValueError:
        pass
    raise CaseError(
        f"can't read the domain {text!r}.",
        "Write NAME=LOW:HIGH, NAME=[v,v,...] or NAME=INPUT:AXIS for indices, for example index=0:99.",
    )


def parse_formats(texts: Iterable[str]) -> dict[str, str]:
    """``x=NCHW`` -> {"x": "NCHW"}. Raises CaseError for another spelling."""
    found = {}
    for text in texts:
        name, eq, value = text.partition("=")
        if not eq or not re.fullmatch(r"\w+", value):
            raise CaseError(f"can't read the format {text!r}.", "Write NAME=FORMAT, for example x=NCHW.")
        found[name.strip()] = value
    return found


def load_arrays(path: Path) -> dict[str, Array]:
    """Arrays by name from an ``.npz`` or ``.safetensors`` file (the latter for bfloat16).

    Raises:
        CaseError: no such file, another kind of file, or one that can't be read.
    """
    if path.exists() and not path.is_file():
        raise CaseError(f"{path} is no plain file.", "Give an .npz or .safetensors file.")
    try:
        if path.suffix == ".npz":
            with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
                arrays = {k: archive[k] for k in archive.files}
            strange = [k for k, v in arrays.items() if not isinstance(v, np.ndarray)]
            if strange:
                raise ValueError(f"{strange[0]} is no array")
            return arrays
        if path.suffix == ".safetensors":
            from safetensors.numpy import load_file

            return dict(load_file(str(path)))
    except Exception as e:  # each of the two libraries has errors of its own
        raise CaseError(f"can't read the arrays in {path}: {e}.", "Give an .npz or .safetensors file.") from e
    raise CaseError(f"{path} is neither .npz nor .safetensors.", "Save the arrays with numpy.savez or safetensors.")


def check_output_file(path: Path, outputs: Iterable[TensorSpec]) -> None:
    """Whether :func:`save_arrays` can write these outputs to ``path``, asked before anything is run.

    Raises:
        CaseError: another suffix, no such folder, or bfloat16 into ``.npz``.
    """
    if path.suffix not in (".npz", ".safetensors"):
        raise CaseError(f"{path} is neither .npz nor .safetensors.", "Choose one of these suffixes.")
    if not path.parent.is_dir():
        raise CaseError(f"the folder of {path} does not exist.", "Make it, or name another file.")
    if path.suffix == ".npz" and any(t.dtype == "bfloat16" for t in outputs):
        raise CaseError(f"an output is bfloat16, which {path} can't hold.", "Write to a .safetensors file instead.")


def save_arrays(path: Path, arrays: Mapping[str, Array]) -> None:
    """Writes arrays by name, as ``.npz`` (no bfloat16) or ``.safetensors``; the file is there whole or not at all.

    Raises:
        CaseError: it can't be written.
    """
    try:
        with replacing(path) as temporary:
            if path.suffix == ".safetensors":
                from safetensors.numpy import save_file

                save_file({k: np.ascontiguousarray(v) for k, v in arrays.items()}, str(temporary))
            else:
                np.savez(temporary, **dict(arrays))  # type: ignore[arg-type]
    except Exception as e:  # safetensors has errors of its own
        raise CaseError(f"can't write the results to {path}: {e}.", "Name a file that can be written.") from e


def _listed(name: str, single: TensorSpec | None, listed: Mapping[int, TensorSpec]) -> tuple[TensorSpec, ...]:
    """The tensors of a list: one given whole, or numbered ones."""
    if single is not None and listed:
        raise CaseError(f"{name} is given both whole and as {name}.{min(listed)}.", "Number all its tensors.")
    if single is None and sorted(listed) != list(range(len(listed))):
        raise CaseError(f"the list {name} has a gap: {sorted(listed)}.", "Number its tensors from 0.")
    return (single,) if single is not None else tuple(listed[i] for i in sorted(listed))


def collect(params: Iterable[ParamDef], tensors: Mapping[str, TensorSpec], what: str, op_type: str) -> list[Argument]:
    """One Argument per parameter, in the definition's order.

    Raises:
        CaseError: an unknown name (lists those that exist), a gap in a list, or a required parameter left out.
    """
    params = list(params)
    known = {p.name: p for p in params}
    for name in tensors:
        if name.partition(".")[0] not in known:
            near = did_you_mean(name, known)
            raise CaseError(f"{op_type} has no {what} {name!r}.{near}", f"Its {what}s: {', '.join(known) or 'none'}.")
    out: list[Argument] = []
    for p in params:
        empty = f"{p.name}." in tensors
        numbers = {n: n.partition(".")[2] for n in tensors if n.startswith(f"{p.name}.")}
        listed = {int(number): tensors[n] for n, number in numbers.items() if number}
        single = tensors.get(p.name)
        if empty and (p.kind != "dynamic" or single is not None or listed):
            raise CaseError(f"{p.name}=[] is for a list without tensors.", "Leave it out, or name none beside it.")
        if p.kind == "dynamic":
            items = _listed(p.name, single, listed)
            if not items and not empty and what == "input":
                raise CaseError(
                    f"{op_type} needs the tensor list {p.name}.",
                    f"Give {p.name}.0, {p.name}.1, ..., or {p.name}=[] where it has none.",
                )
            out.append(items)
        elif listed:
            raise CaseError(f"{p.name} is one tensor, not a list.", f"Give it as {p.name}=DTYPE[...].")
        elif single is None and p.kind == "required" and what == "input":
            raise CaseError(f"{op_type} needs the input {p.name}.", f"Give --input {p.name}=DTYPE[d0,d1,...].")
        else:
            out.append(single)
    return out


def build_case(
    signature: Signature,
    inputs: Mapping[str, TensorSpec],
    attrs: Mapping[str, AttrValue],
    outputs: Mapping[str, TensorSpec],
    infer: InferOutputs | None,
    in_place: Sequence[str] = (),
) -> Case:
    """The case for these tensors; outputs not given come from ``infer`` (the operator's own InferShape).

    ``in_place``: inputs that the kernel changes (:attr:`Operator.in_place`); they end the case's outputs.

    Raises:
        CaseError: unknown or missing names, a missing required attribute, outputs that can't be inferred.
    """
    in_args = tuple(collect(signature.inputs, inputs, "input", signature.op_type))
    values: dict[str, AttrValue] = {}
    for attr in signature.attrs:
        if attr.name in attrs:
            values[attr.name] = attrs[attr.name]
        elif attr.default is not None:
            values[attr.name] = attr.default
        else:
            raise CaseError(f"{signature.op_type} needs the attribute {attr.name}.", f"Give --attr {attr.name}=VALUE.")
    for name in attrs:
        if name not in values:
            raise _no_attribute(signature, name)
    attr_items = tuple(sorted(values.items()))
    out_args = collect(signature.outputs, outputs, "output", signature.op_type)
    by_name = dict(zip((p.name for p in signature.inputs), in_args, strict=True))
    # An output that is called as an input is that input's memory, whatever a shape function says.
    out_args = [given or by_name.get(p.name) for p, given in zip(signature.outputs, out_args, strict=True)]
    missing = _missing(signature, out_args)
    if missing and infer is not None and signature.has_infer_shape:
        inferred = infer(in_args, attr_items)
        out_args = [given or found for given, found in zip(out_args, inferred, strict=True)]
        missing = _missing(signature, out_args)
    if missing:
        first = f"{missing[0].name}{'.0' if missing[0].kind == 'dynamic' else ''}"
        names = ", ".join(p.name for p in missing)
        raise CaseError(
            f"the shape of {names} can't be inferred: {signature.op_type} has no InferShape for it.",
            f"Give --output {first}=DTYPE[d0,d1,...].",
        )
    unknown = [name for name in in_place if name not in by_name]
    if unknown:
        raise CaseError(f"in_place names {', '.join(unknown)}, which {signature.op_type} has no input for.")
    return Case(in_args, (*out_args, *(by_name[name] for name in in_place)), attr_items)


def _missing(signature: Signature, outputs: Sequence[Argument]) -> list[ParamDef]:
    """Outputs that the operator needs and that nobody gave."""
    return [p for p, a in zip(signature.outputs, outputs, strict=True) if not a and p.kind != "optional"]


def direct_signature(
    operator: Operator,
    inputs: Mapping[str, TensorSpec],
    outputs: Mapping[str, TensorSpec],
    attrs: Mapping[str, AttrValue],
) -> Signature:
    """The signature of a kernel of direct launch: its parameters, told apart by what the user gives.

    Raises:
        CaseError: a parameter nobody gave, or a name that is no parameter.
    """
    assert operator.direct is not None
    names = [name for name, _ in operator.direct.parameters]
    given = {n.partition(".")[0] for n in (*inputs, *outputs)} | set(attrs)
    listing = ", ".join(f"{c_type} {name}" for name, c_type in operator.direct.parameters)
    for name in sorted(given - set(names)):
        raise CaseError(f"{operator.entry} has no parameter {name!r}.", f"Its parameters: {listing}.")
    for name in names:
        if name not in given and name != "workspace":
            raise CaseError(
                f"{operator.entry} needs {name}.",
                "Give it by --input, --output (a pointer) or --attr (a number, or 0 for a pointer that is null). "
                f"Its parameters: {listing}.",
            )

    def params(tensors: Mapping[str, TensorSpec]) -> tuple[ParamDef, ...]:
        found: dict[str, ParamDef] = {}
        for name, spec in tensors.items():
            base, dot, _ = name.partition(".")
            found.setdefault(base, ParamDef(base, (spec.dtype,), "dynamic" if dot else "required", (spec.format,)))
        return tuple(found[n] for n in names if n in found)

    def kind(name: str, value: AttrValue) -> str:
        listed = value if isinstance(value, tuple) else (value,)
        if not listed or not all(isinstance(v, (bool, int, float)) for v in listed):
            raise CaseError(
                f"{name} = {value!r} is no number.",
                f"What a kernel takes by value are numbers: --attr {name}=1, or for a struct --attr {name}=1,2,3.",
            )
        whole = all(isinstance(v, int) for v in listed)
        if isinstance(value, tuple):
            return "list_int" if whole else "list_float"
        return "bool" if isinstance(value, bool) else "int" if whole else "float"

    attr_defs = tuple(AttrDef(n, kind(n, attrs[n])) for n in names if n in attrs)
    return Signature(operator.entry, params(inputs), params(outputs), attr_defs, has_tiling=False)
