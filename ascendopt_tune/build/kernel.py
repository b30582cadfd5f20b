"""The kernel's translation unit: what the operator compiler puts around a kernel source, for one dtype column and key.

It defines the dtype and format macros of the column, declares the tiling data classes with the host's layout, and the
``GET_TILING_DATA`` family. Source of the contract: ``ascendc_impl_build.py`` and ``get_op_tiling.py`` of asc-devkit
(names of macros, order of definitions); see docs/architecture.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath

from ..nouns.case import DTYPES, Case
from ..nouns.operator import Operator, Pair, Signature
from ..paths import vnpu
from ..sources.kernels import parameters_of, template_parameters
from ..sources.texts import INCLUDE, KERNEL_SOURCES
from .constants import asked_for, tiling_constants
from .host import TilingResult, TilingStruct, dtype_column
from .plain_structs import plain_structs
from .system_workspace import with_system_workspace
from .template_types import kernel_type_of
from .torch_code import without_torch

_GE_DTYPE = {
    "float32": "DT_FLOAT", "float16": "DT_FLOAT16", "int8": "DT_INT8", "int32": "DT_INT32", "uint8": "DT_UINT8",
    "int16": "DT_INT16", "uint16": "DT_UINT16", "uint32": "DT_UINT32", "int64": "DT_INT64", "uint64": "DT_UINT64",
    "float64": "DT_DOUBLE", "bool": "DT_BOOL", "complex64": "DT_COMPLEX64", "bfloat16": "DT_BF16",
    "int4": "DT_INT4", "complex32": "DT_COMPLEX32",
}  # fmt: skip
_C_TYPE = {**{name: c_type for name, (_, _, c_type) in DTYPES.items()}, "complex32": "complex32"}

_TYPE_PARAMETERS = frozenset(["typename", "class"])
_TEMPLATE_DTYPES = (
    "float32", "float16", "int8", "int32", "uint8", "int16", "uint16", "uint32", "int64", "uint64", "bool", "bfloat16"
)  # fmt: skip
_TYPES_OF_DTYPES = "".join(
    f"template <> struct ascendc_tpl::TypeOf<{DTYPES[name][1]}> {{ using type = {_C_TYPE[name]}; }};\n"
    for name in _TEMPLATE_DTYPES
)

# kernel<<<blocks, l2, stream>>> or kernel<template arguments><<<...>>>; the argument list behind it stays. In a macro
# the name may be pasted.
_LAUNCH = re.compile(r"\b(?:\w+\s*##\s*)*[A-Za-z_]\w*(?:\s*<[^<>;{}]*>)?\s*<<<[^;{}]*?>>>")
_SCOPE = re.compile(r"(?:\bnamespace\s+(?P<name>[\w:]+)\s*)?\{|\}")
_LINE_END = re.compile(r"\\?\n")  # a macro's goes on behind a backslash
_RUNTIME = re.compile(r"\baclrt[A-Z]\w*\s*\(")
_RUNTIME_HEADER = re.compile(r"^\s*#\s*include\s*[<\"]acl/", re.MULTILINE)
_DEFAULT = re.compile(r"\bREGISTER_TILING_DEFAULT\(\s*([\w:]+)\s*\)")
_STRUCT = re.compile(r"\bstruct\s+(?:alignas\s*\([^)]*\)\s*)?(\w+)\s*\{")
_HOST_CODE = """\
#define AOT_HOST_LAUNCH(...) ((void)0)
#define main aot_host_main
"""

#: The virtual toolkit brings tiling data in with its cost; a device compiler gets a copy through the scalar unit.
STRUCT_MACROS = """\
#if defined(__VNPU__)
#define AOT_LOAD_TILING(dst, src, bytes) vnpu::load_tiling(dst, src, bytes)
#else
#define AOT_LOAD_TILING(dst, src, bytes)                                                       \\
  for (uint32_t aot_i = 0; aot_i < (bytes) / 4; aot_i++)                                       \\
    reinterpret_cast<uint32_t*>(dst)[aot_i] = reinterpret_cast<__gm__ const uint32_t*>(src)[aot_i]
#endif
#define GET_TILING_DATA_WITH_STRUCT(S, name, tiling) \\
  S name;                                            \\
  AOT_LOAD_TILING(&name, tiling, sizeof(S))
#define GET_TILING_DATA_MEMBER(S, member, name, tiling) \\
  decltype(S::member) name;                             \\
  AOT_LOAD_TILING(&name, tiling + offsetof(S, member), sizeof(S::member))
#define __tiling_data_ptr__ __gm__ const
#define GET_TILING_DATA_PTR_WITH_STRUCT(S, name, tiling) \\
  __tiling_data_ptr__ S* name = reinterpret_cast<__tiling_data_ptr__ S*>(tiling)
#define COPY_TILING_WITH_STRUCT(S, from, name)           \\
  S aot_copy_##name;                                     \\
  AOT_LOAD_TILING(&aot_copy_##name, from, sizeof(S));    \\
  const S* name = &aot_copy_##name
#define COPY_TILING_WITH_ARRAY(T, count, from, name)                  \\
  T aot_copy_##name[count];                                           \\
  AOT_LOAD_TILING(&aot_copy_##name, from, sizeof(T) * (count));       \\
  const T(*name)[count] = &aot_copy_##name
"""
TILING_MACROS = (
    STRUCT_MACROS
    + """\
#define REGISTER_NONE_TILING
#define REGISTER_TILING_DEFAULT(S) using AotTilingDefault = S;
#define REGISTER_TILING_FOR_TILINGKEY(expression, S)
#define GET_TILING_DATA(name, tiling) GET_TILING_DATA_WITH_STRUCT(AotTilingDefault, name, tiling)
"""
)

# What tells a tiling program's build about tiling data says nothing to a kernel that its own program launches; it may
# load its own structs, as CANN's header for direct launch lets it.
_LAUNCHED_MACROS = """\
#define REGISTER_TILING_DEFAULT(S)
#define REGISTER_TILING_FOR_TILINGKEY(expression, S)
"""

# Words with which a kernel could leave what AscendC offers: machine code of its own, the virtual NPU's inner functions,
# code that is compiled without the checks of its addresses (vnpu/core/guard.h), and the question which device it is
# compiled for: what the virtual NPU has checked is what a real one runs. The host's headers that need those words, for
# <iostream> (vnpu/include/kernel_std) and the host code in files for direct launch, come before.
_RESERVED = """\
#if defined(__VNPU__)
#include <cwchar>
#include <pthread.h>
#pragma GCC poison asm __asm __asm__ vnpu no_sanitize __no_sanitize__ no_sanitize_address __no_sanitize_address__
#pragma GCC poison no_address_safety_analysis __no_address_safety_analysis__ naked __naked__ ifunc __ifunc__
#pragma GCC poison __VNPU__
#undef __REDIRECT
#undef __REDIRECT_NTH
#undef __REDIRECT_NTHNL
#endif
"""


@dataclass(frozen=True)
class KernelUnit:
    """What goes to the run-time compiler: source text, its name, compiler options, and the kernel's exported name."""

    source: str
    name: str
    options: tuple[str, ...]
    entry: str


def _macros(signature: Signature, column: int, options: Sequence[str]) -> list[str]:
    """What CANN's build of an operator defines: its modes and the dtypes and formats of the column."""
    lines = ["#define DETERMINISTIC_MODE 0"]
    if not any(option.startswith("-DHIGH_") for option in options):
        lines.append("#define HIGH_PERFORMANCE 1")  # asc_opc --impl_mode=high_performance,optional
    inputs = {p.name for p in signature.inputs}
    for i, param in enumerate((*signature.inputs, *signature.outputs)):
        name = param.name.upper()
        if i >= len(signature.inputs) and param.name in inputs:
            name += "_REF"  # an in-place output is told from its input
        dtype = param.dtypes[column]
        fmt = param.formats[column] if column < len(param.formats) else "ND"
        lines += [
            f"#define DTYPE_{name} {_C_TYPE[dtype]}",
            f"#define ORIG_DTYPE_{name} {_GE_DTYPE[dtype]}",
            f"#define FORMAT_{name} FORMAT_{fmt}",
        ]
    return lines


_OF_BOTH_SIDES = "kernel_tiling/kernel_tiling.h"


@cache
def _own_structs() -> frozenset[str]:
    """Structures that the toolkit's own header has for both sides."""
    header = vnpu() / "host" / "include" / _OF_BOTH_SIDES
    return frozenset(re.findall(r"^using AscendC::tiling::(\w+);", header.read_text(encoding="utf-8"), re.MULTILINE))


def _declare(struct: TilingStruct) -> list[str]:
    """The kernel-side class: same fields, same order, the host's padding already among them."""
    if struct.name in _own_structs():
        return [f'#include "{_OF_BOTH_SIDES}"']
    lines = [f"struct alignas(8) {struct.name} {{"]
    for f in struct.fields:
        lines.append(f"  {f.struct or f.c_type} {f.name}{f'[{f.count}]' if f.count else ''};")
    lines += ["};", f'static_assert(sizeof({struct.name}) == {struct.size}, "layout of {struct.name}");']
    return lines


def _without_own(structs: Sequence[TilingStruct], files: Mapping[str, str], main: str) -> list[TilingStruct]:
    """Those the kernel doesn't define itself, as one does that registers a structure of C++.

    Another kernel's source that is at hand because a header beside it is included says nothing of this kernel.
    """
    told = {PurePosixPath(name).name for text in files.values() for name in INCLUDE.findall(text)}
    texts = [
        text
        for path, text in files.items()
        if path == main or PurePosixPath(path).suffix not in KERNEL_SOURCES or PurePosixPath(path).name in told
    ]
    if not any("REGISTER_TILING_DEFAULT" in text for text in texts):
        return list(structs)
    own = {name for text in texts for name in _STRUCT.findall(text)}
    return [s for s in structs if s.name not in own]


def _tiling_classes(structs: Sequence[TilingStruct], key: int) -> list[str]:
    """Declarations of all structs (nested ones come first in ``structs``) and the name GET_TILING_DATA uses.

    That is the operator's default struct with every key, because the branches of other keys have to compile as well;
    a key's own struct is asked for by name, or by GET_TILING_DATA where there is no default.
    """
    lines = [line for s in {s.name: s for s in structs}.values() for line in _declare(s)]
    default = [s for s in structs if s.key is None and not s.nested] or [s for s in structs if s.key == key]
    if default:
        lines.append(f"using AotTilingDefault = {default[0].name};")
    return lines


def without_launches(text: str) -> str:
    """``text`` with every host launch ``kernel<<<...>>>(...)`` made a no-op; lines keep their numbers.

    A kernel file may bring the host code that launches it; who compiles the kernel alone has no use for that. Where it
    calls the runtime without including it, the block with the launch is left out as a whole.
    """
    if _RUNTIME.search(text) and not _RUNTIME_HEADER.search(text):
        for start, end in [_block_around(text, m.start()) for m in _LAUNCH.finditer(text)]:
            text = text[:start] + re.sub(r"[^\n]", " ", text[start:end]) + text[end:]
    return _LAUNCH.sub(lambda m: "AOT_HOST_LAUNCH" + "".join(_LINE_END.findall(m[0])), text)


def _dtype_number(dtype: str) -> str:
    return str(DTYPES[dtype][1]) if dtype in DTYPES else _GE_DTYPE[dtype]


def _case_dtypes(signature: Signature | None, case: Case) -> str:
    """The numbers of the case's dtypes, for template arguments that are an input's or an output's.

    Not their names: a kernel may include headers of the host, behind which DT_FLOAT and its like are no macros.
    """
    inputs, outputs = (signature.inputs, signature.outputs) if signature is not None else ((), ())
    column = dtype_column(signature, case.inputs, case.outputs) if signature is not None else 0
    lines = []
    for name, parameters in (("aot_inputs", inputs), ("aot_outputs", outputs)):
        numbers = ", ".join(_dtype_number(p.dtypes[column]) for p in parameters) or "~uint64_t{0}"
        lines.append(f"static constexpr uint64_t {name}[] = {{{numbers}}};\n")
    return "".join(lines)


def _namespaces_of_declarations(texts: Iterable[str]) -> list[str]:
    """Lines that make what ASCENDC_TPL_ARGS_DECL declares inside of a namespace known outside of it."""
    found: dict[str, None] = {}
    for text in texts:
        declared = re.search(r"^\s*ASCENDC_TPL_ARGS_DECL\b", text, re.MULTILINE)
        if declared and (scope := _namespace_at(text, declared.start())):
            found[f"using namespace {scope};"] = None
    return list(found)


def _namespace_at(text: str, place: int) -> str:
    """``a::b``, the namespaces that are open there; empty where none is."""
    scopes: list[str] = []
    for opens in _SCOPE.finditer(text, 0, place):
        if opens[0] == "}":
            scopes = scopes[:-1]
        else:
            scopes.append(opens["name"] or "")
    return "::".join(filter(None, scopes))


def _called_in_its_namespace(operator: Operator, text: str, entry: str) -> str:
    """A function of C's that calls a template for direct launch with its arguments, where the names of its parameters'
    types are known."""
    assert operator.direct is not None
    parameters = ", ".join(f"{kind} {name}" for name, kind in operator.direct.parameters)
    call = f"{operator.entry}({', '.join(name for name, _ in operator.direct.parameters)});"
    function = f'extern "C" __global__ __aicore__ void {entry}({parameters}) {{ {call} }}\n'
    kernel = re.search(rf"\bvoid\s+{re.escape(operator.entry.partition('<')[0])}\s*\(", text)
    scope = _namespace_at(text, kernel.start()) if kernel else ""
    return f"namespace {scope} {{\n{function}}}\n" if scope else function


def _template_value(kind: str, value: str) -> str:
    """A template's argument: the declared value, or the type of the dtype that is declared in a type's place."""
    return (
        f"typename ascendc_tpl::TypeOf<{value}>::type" if kind in _TYPE_PARAMETERS else f"static_cast<{kind}>({value})"
    )


def _block_around(text: str, place: int) -> tuple[int, int]:
    """Start and end of what stands between the braces around a place; an empty range where there are none."""
    depth, start = 0, place
    while start > 0 and depth >= 0:
        start -= 1
        depth += (text[start] == "}") - (text[start] == "{")
    depth, end = 0, place
    while end < len(text) and depth >= 0:
        depth += (text[end] == "{") - (text[end] == "}")
        end += 1
    return (start + 1, end - 1) if depth < 0 and text[start] == "{" else (place, place)


def _plain(kernel: Mapping[str, str]) -> frozenset[str]:
    """What the kernel calls structs of its own that may be constants: their names, and the default's, if it is one."""
    plain = plain_structs(kernel)
    defaults = {m[1].rpartition("::")[2] for text in kernel.values() for m in _DEFAULT.finditer(text)}
    return plain | ({"AotTilingDefault"} if defaults and defaults <= plain else frozenset())


def write_files(operator: Operator, files: dict[str, str], work_dir: Path) -> None:
    """Writes a pair's files below ``work_dir``; compiler messages name the user's own paths and lines."""
    real = dict(operator.shared_sources)
    for path, text in files.items():
        target = work_dir / path
        target.parent.mkdir(parents=True, exist_ok=True)
        name = str(real.get(path, operator.root / path)).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        target.write_text(f'#line 1 "{name}"\n{without_launches(without_torch(text))}', encoding="utf-8")


def kernel_unit(
    operator: Operator,
    pair: Pair,
    signature: Signature | None,
    case: Case,
    tiling: TilingResult | None,
    structs: Sequence[TilingStruct],
    work_dir: Path,
) -> KernelUnit:
    """The translation unit of ``pair``'s kernel for the case's dtype column and the tiling's key.

    Writes the kernel files below ``work_dir`` (they include each other by relative path). ``signature`` and ``tiling``
    are None for a kernel of direct launch.

    Raises:
        CaseError: the case fits no dtype column.
    """
    files = dict(pair.kernel)
    if signature is not None:
        files = with_system_workspace(files, operator.kernel_main, operator.entry)
    write_files(operator, files, work_dir)
    main = (work_dir / operator.kernel_main).resolve()
    includes = [f"-I{main.parent}", *(f"-I{d}" for d in operator.kernel_include_dirs)]
    head = ['#include "kernel_operator.h"', _HOST_CODE]
    if files != pair.kernel:  # part of the key
        head.append("// The entry is told where its workspace is.")
    options = ["--npu-arch=dav-2201", *includes, *operator.kernel_options]
    if operator.direct is not None:
        options += [f"-D{k}={v}" for k, v in operator.direct.defines]
        lines = [*head, STRUCT_MACROS, _LAUNCHED_MACROS, _RESERVED, f'#include "{main}"', ""]
        entry = operator.entry
        if "<" in entry:  # what is launched is a function that calls the template with its arguments
            entry = "aot_" + re.sub(r"\W+", "_", entry).strip("_")
            lines.append(_called_in_its_namespace(operator, files[operator.kernel_main], entry))
        return KernelUnit("\n".join(lines), f"{operator.name}.cpp", tuple(options), entry)
    key = tiling.tiling_key if tiling is not None else 0
    entry = f"{operator.entry}_{key}_tilingkey"
    if signature is not None:
        head += _macros(signature, dtype_column(signature, case.inputs, case.outputs), operator.kernel_options)
    known = _without_own(structs, pair.kernel, operator.kernel_main)
    by_values = signature is not None and any(p.value_depend for p in signature.inputs)
    constant = tiling is not None and asked_for(pair.kernel.values()) and not by_values
    head += [TILING_MACROS, *([] if constant else [_RESERVED]), *_tiling_classes(known, key)]
    if tiling is not None and constant:
        head += [tiling_constants(known, tiling.data, _plain(pair.kernel)), _RESERVED]
    # As the operator compiler does: the entry gets a name of its own, so that kernels may be called abs or cos.
    head += [f"#define {operator.entry} {entry}", f'#include "{main}"', ""]
    options.append(f"-DTILING_KEY_VAR={key}UL")
    template = template_parameters(pair.kernel[operator.kernel_main], operator.entry)
    if template:  # its arguments are in the key (ascendc/host_api/tiling/template_argument.h)
        values = [
            _template_value(kind, f"ascendc_tpl::value_of(ascendc_tpl_params, {i}, {key}UL, aot_inputs, aot_outputs)")
            for i, (kind, _) in enumerate(template)
        ]
        head += [_case_dtypes(signature, case), *_namespaces_of_declarations(pair.kernel.values())]
        told = f"tiling key {key} is none of the declared template arguments (ASCENDC_TPL_ARGS_DECL)"
        head.append(f'static_assert(ascendc_tpl::declares(ascendc_tpl_params, {key}UL), "{told}");')
        if _TYPE_PARAMETERS.intersection(kind for kind, _ in template):
            head.append(_TYPES_OF_DTYPES)
        taken = parameters_of(pair.kernel[operator.kernel_main], operator.entry)
        declared = ", ".join(f"{kind} {name}" for name, kind in taken)
        call = f"{operator.entry}<{', '.join(values)}>({', '.join(name for name, _ in taken)});"
        if cores := kernel_type_of(pair.kernel.values(), key):
            call = f"KERNEL_TASK_TYPE_DEFAULT({cores}); {call}"
        head.append(f'extern "C" __global__ __aicore__ void {entry}_template({declared}) {{ {call} }}\n')
        entry += "_template"
    return KernelUnit("\n".join(head), f"{operator.name}.cpp", tuple(options), entry)
