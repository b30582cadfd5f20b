"""What a host program registered (JSON of libvnpu_host.so) as Signature and TilingStruct, and checks against them."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import CaseError, HostProgramError
from ..nouns.case import DTYPES, Argument, AttrValue, TensorSpec
from ..nouns.operator import AttrDef, ParamDef, Signature

# ge::DataType numbers of types a definition may name but a case can't have (source: CANN graph API reference).
_MORE_TYPES = {
    13: "string",
    17: "complex128",
    18: "qint8",
    19: "qint16",
    20: "qint32",
    21: "quint8",
    22: "quint16",
    28: "undefined",
    29: "int4",
    30: "uint1",
    31: "int2",
    32: "uint2",
    33: "complex32",
    34: "hifloat8",
    35: "float8_e5m2",
    36: "float8_e4m3fn",
    37: "float8_e8m0",
    38: "float6_e3m2",
    39: "float6_e2m3",
    40: "float4_e2m1",
    41: "float4_e1m2",
}
_TYPE_NAMES = {**_MORE_TYPES, **{number: name for name, (_, number, _) in DTYPES.items()}}

# Storage formats and their ge::Format numbers (source: CANN graph API reference).
FORMATS = {
    "NCHW": 0,
    "NHWC": 1,
    "ND": 2,
    "NC1HWC0": 3,
    "FRACTAL_Z": 4,
    "HWCN": 16,
    "NDHWC": 27,
    "FRACTAL_NZ": 29,
    "NCDHW": 30,
    "DHWCN": 31,
    "NDC1HWC0": 32,
    "FRACTAL_Z_3D": 33,
    "CN": 34,
    "NC": 35,
    "DHWNC": 36,
    "NCL": 47,
}
_FORMAT_NAMES = {number: name for name, number in FORMATS.items()}


@dataclass(frozen=True)
class TilingField:
    """One field. ``count`` 0: a scalar; ``struct``: the nested struct's name or ""; ``offset`` in bytes."""

    name: str
    c_type: str
    count: int
    struct: str
    offset: int


@dataclass(frozen=True)
class TilingStruct:
    """Layout of tiling data, padding included as fields ``<name>PH``.

    ``key``: the tiling key it belongs to; None for the operator's default struct, and for one that is only nested in
    others (``nested``). ``size`` in bytes, a multiple of 8.
    """

    name: str
    key: int | None
    size: int
    fields: tuple[TilingField, ...]
    nested: bool = False


@dataclass(frozen=True)
class HostDescription:
    """``tiling_structs`` in an order where a struct stands after those nested in it."""

    signature: Signature
    tiling_structs: tuple[TilingStruct, ...]

    @property
    def default_struct(self) -> TilingStruct | None:
        """The struct of every tiling key that has none of its own."""
        return next((s for s in self.tiling_structs if s.key is None and not s.nested), None)


def data_type_name(number: int) -> str:
    """torch's name of a ge::DataType number."""
    return _TYPE_NAMES.get(number, f"type{number}")


def data_type_number(dtype: str) -> int:
    return DTYPES[dtype][1]


def parse_description(doc: Mapping[str, Any], names: Sequence[str]) -> HostDescription:
    """Picks the operator among what was registered and types it.

    ``names``: operator type, entry or folder names, the first that fits counts; compared without case and
    underscores. With one definition registered they don't matter.

    Raises:
        HostProgramError: no definition (OP_ADD) is there, or several and none has one of the names.
    """
    ops = list(doc["ops"])
    called = (next((o for o in ops if _plain(o["op_type"]) == _plain(n)), None) for n in names)
    op = ops[0] if len(ops) == 1 else next((o for o in called if o is not None), None)
    if op is None:
        if not ops:
            raise HostProgramError("the host sources register no operator definition.", "Add OP_ADD(YourOperator).")
        found = ", ".join(o["op_type"] for o in ops)
        raise HostProgramError(
            f"the host sources register several operators ({found}), none of them called {' or '.join(names)}."
        )
    op_type = str(op["op_type"])
    inputs, outputs = _params(op)
    signature = Signature(
        op_type=op_type,
        inputs=inputs,
        outputs=outputs,
        attrs=tuple(_attr(a) for a in op["attrs"]),
        has_infer_shape=bool(op["has_infer_shape"]),
        has_tiling=bool(op["has_tiling"]),
    )
    return HostDescription(signature, _structs(doc["tiling_structs"], op_type))


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def _params(op: Mapping[str, Any]) -> tuple[tuple[ParamDef, ...], tuple[ParamDef, ...]]:
    raw = [*op["inputs"], *op["outputs"]]
    columns = _columns(raw)
    each = math.prod(len(p["dtype_list"]) or 1 for p in raw)  # columns that become of one of the definition's
    params = [
        ParamDef(
            name=p["name"],
            dtypes=tuple(data_type_name(c[i]) for c in columns),
            kind=p["kind"],
            init_values=tuple(float(v) for v in p["init_values"]),
            formats=_formats(p, each),
            shape_from_kernel=bool(p.get("shape_from_kernel")),
            value_depend=p["value_depend"] or (i < len(op["inputs"]) and bool(op["tiling_value_inputs"] >> i & 1)),
        )
        for i, p in enumerate(raw)
    ]
    split = len(op["inputs"])
    return tuple(params[:split]), tuple(params[split:])


def _formats(param: Mapping[str, Any], each: int) -> tuple[str, ...]:
    """A format for each column, where the definition has columns of them."""
    numbers = [f for f in param["formats"] for _ in range(each)] or param["format_list"]
    return tuple(_FORMAT_NAMES.get(f, f"format{f}") for f in numbers)


def _columns(params: Sequence[Mapping[str, Any]]) -> list[list[int]]:
    """The dtype combinations: DataType gives columns, DataTypeList is multiplied out, Follow copies another's type."""
    count = max((len(p["dtypes"]) for p in params), default=0) or 1
    listed = [i for i, p in enumerate(params) if p["dtype_list"]]
    position = {p["name"]: i for i, p in reversed(list(enumerate(params)))}
    undefined = 28
    columns = []
    for base in range(count):
        for choice in itertools.product(*(params[i]["dtype_list"] for i in listed)):
            column = [p["dtypes"][min(base, len(p["dtypes"]) - 1)] if p["dtypes"] else undefined for p in params]
            for i, dtype in zip(listed, choice, strict=True):
                column[i] = dtype
            for i, p in enumerate(params):
                if p["follow"] in position and not p["dtypes"] and not p["dtype_list"]:
                    column[i] = column[position[p["follow"]]]
            columns.append(column)
    return columns


def _attr(raw: Mapping[str, Any]) -> AttrDef:
    default = raw["default"]
    if default is None and not raw["required"]:
        # An optional attribute without a value reaches the tiling function as its type's zero.
        default = {"bool": False, "int": 0, "float": 0.0, "str": ""}.get(raw["type"], [])
    if isinstance(default, list):
        default = tuple(default)
    if raw["type"] == "float" and default is not None:
        default = float(default)
    return AttrDef(raw["name"], raw["type"], default)


def _structs(raw: Sequence[Mapping[str, Any]], op_type: str) -> tuple[TilingStruct, ...]:
    """The operator's own structs and those nested in them."""
    by_name = {s["name"]: s for s in raw}
    structs: dict[tuple[str, int | None, bool], TilingStruct] = {}

    def add(s: Mapping[str, Any], key: int | None, nested: bool) -> None:
        for f in s["fields"]:
            if f["struct"]:
                add(by_name[f["struct"]], None, True)
        fields = tuple(TilingField(f["name"], f["type"], f["count"], f["struct"], f["offset"]) for f in s["fields"])
        structs.setdefault((s["name"], key, nested), TilingStruct(s["name"], key, s["size"], fields, nested))

    for s in raw:
        match = re.fullmatch(re.escape(op_type) + r"(?:_(\d+))?", s["registered"])
        if match:
            add(s, int(match[1]) if match[1] else None, False)
    return tuple(structs.values())


def dtype_column(signature: Signature, inputs: Sequence[Argument], outputs: Sequence[Argument] = ()) -> int:
    """Index of the dtype column that fits the arguments (absent ones fit any); of several the first of those whose
    formats fit most of them: a kernel is built for a column's formats, too.

    Raises:
        CaseError: too many or too few arguments, or no column has these dtypes.
    """
    if len(inputs) != len(signature.inputs):
        raise CaseError(
            f"operator {signature.op_type} takes {len(signature.inputs)} inputs, {len(inputs)} were given.",
            f"Its signature: {signature.to_text()}.",
        )
    given = [*zip(signature.inputs, inputs, strict=True), *zip(signature.outputs, outputs, strict=False)]
    known = [(p, spec.dtype, spec.format) for p, a in given if (spec := _spec(a)) is not None]
    count = len(signature.inputs[0].dtypes) if signature.inputs else len(signature.outputs[0].dtypes)
    fitting = [c for c in range(count) if all(p.dtypes[c] == dtype for p, dtype, _ in known)]
    if fitting:
        return max(fitting, key=lambda c: sum(p.formats[c : c + 1] == (form,) for p, _, form in known))
    raise CaseError(
        f"operator {signature.op_type} has no version for " + ", ".join(f"{p.name}: {d}" for p, d, _ in known) + ".",
        f"Its signature: {signature.to_text()}.",
    )


def _spec(argument: Argument) -> TensorSpec | None:
    if isinstance(argument, tuple):
        return argument[0] if argument else None
    return argument if isinstance(argument, TensorSpec) else None


def attribute_values(signature: Signature, attrs: Mapping[str, AttrValue]) -> list[tuple[str, AttrValue]]:
    """(type, value) of every attribute in the definition's order, defaults filled in, values of the right Python type.

    Raises:
        CaseError: an attribute the operator doesn't have, a required one that is missing, or a value of a wrong type.
    """
    unknown = sorted(set(attrs) - {a.name for a in signature.attrs})
    if unknown:
        raise CaseError(
            f"operator {signature.op_type} has no attribute {unknown[0]!r}.", f"Its signature: {signature.to_text()}."
        )
    result: list[tuple[str, AttrValue]] = []
    for a in signature.attrs:
        value = attrs.get(a.name, a.default if a.type else None)
        if value is None:
            raise CaseError(f"operator {signature.op_type} needs attribute {a.name} ({a.type}).", f"Give {a.name}=...")
        kind = a.type or _type_of(value)
        try:
            result.append((kind, _convert(kind, value)))
        except (TypeError, ValueError) as e:
            raise CaseError(
                f"attribute {a.name} of {signature.op_type} is {value!r}, not of type {a.type}.",
                f"Its signature: {signature.to_text()}.",
            ) from e
    return result


def _type_of(value: AttrValue) -> str:
    """Of an attribute whose definition says only that there is one (``.Attr("layout").AttrType(OPTIONAL)``)."""
    if isinstance(value, tuple | list):
        return f"list_{_type_of(value[0]) if value else 'int'}"
    return type(value).__name__  # bool, int, float, str


def _convert(kind: str, value: AttrValue) -> AttrValue:
    if kind.startswith("list_"):
        items = value if isinstance(value, tuple | list) else (value,)
        return tuple(_convert(kind[5:], v) for v in items)  # type: ignore[return-value]
    if isinstance(value, tuple):
        raise TypeError(kind)
    if kind == "str":
        if not isinstance(value, str):
            raise TypeError(kind)
        return value
    if isinstance(value, str):
        raise TypeError(kind)
    if kind == "int":
        if isinstance(value, float) and not value.is_integer():
            raise ValueError(kind)
        return int(value)
    return float(value) if kind == "float" else bool(value)
