"""From an operator folder to a solution of language ``ascendc``: six string literals that MultiKernelBench reads.

The task's name decides all others there: for the operator ``rms_norm`` the files, the kernel and the Python function
are ``rms_norm_custom``, the operator ``RmsNormCustom``. A folder that `import` wrote is called so already, and keeps
its description, binding and module; for others they are written from the definition.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import AscendOptError, OperatorError
from ..nouns.case import Argument, AttrValue, Case, TensorSpec
from ..nouns.operator import AttrDef, Operator, ParamDef, Signature
from .folder import KEPT, KEPT_FOLDER
from .inline import includes, inlined, renamed
from .shapes import allocation
from .solution import NAMES

_SUFFIX = "_custom"
_JSON_TYPES = {"float32": "float", "bfloat16": "bf16", "float64": "double"}
_JSON_ATTRS = {"str": "string"}
_C_ATTRS = {"bool": "bool", "int": "int64_t", "float": "double", "list_int": "at::IntArrayRef"}

Infer = Callable[[tuple[Argument, ...], tuple[tuple[str, AttrValue], ...]], tuple[Argument, ...]]


def kept_texts(folder: Path) -> dict[str, str] | None:
    """Description, binding and module that `import` kept in the folder; None where it didn't."""
    files = {key: folder / KEPT_FOLDER / path for key, path in KEPT.items()}
    if not all(f.is_file() for f in files.values()):
        return None
    return {key: f.read_text(encoding="utf-8") for key, f in files.items()}


@dataclass(frozen=True)
class Export:
    """An operator as a solution. ``case`` is the task's (the first of op.toml), ``infer`` its shape function.

    With ``kept`` texts (:func:`kept_texts`) neither is needed.
    """

    operator: Operator
    signature: Signature | None = None
    case: Case | None = None
    infer: Infer | None = None
    kept: Mapping[str, str] | None = None

    def text(self) -> str:
        """The Python text of the solution.

        Raises:
            OperatorError: the operator doesn't fit the form: several host sources or files shared with others, no
                tiling function, an input changed in place, an attribute of a type without a C++ one.
        """
        texts = {**self._sources(), **(self.kept or self._generated())}
        options = " ".join(self.operator.kernel_options)
        head = [f"# {self.name}: written by `ascendopt-tune export`."]
        if options:
            head += ["# MultiKernelBench builds without these; `ascendopt-tune import` reads them.",
                     f"# kernel options: {options}"]  # fmt: skip
        return "\n".join(head) + "\n\n" + "\n\n".join(f"{name} = {_literal(texts[name])}" for name in NAMES) + "\n"

    # -- names ---------------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """Of files, kernel and Python function: ``rms_norm_custom``."""
        if self.kept is not None:
            return self.operator.name
        entry = self.operator.entry
        return entry if entry.endswith(_SUFFIX) else entry + _SUFFIX

    @property
    def op_type(self) -> str:
        return "".join(part.capitalize() for part in self.name.split("_"))

    # -- sources -------------------------------------------------------------------------------------------------------

    def _sources(self) -> dict[str, str]:
        op = self.operator
        if op.direct is not None or len(op.host_sources) != 1 or op.shared_sources:
            sources = [*op.host_sources, *(str(path) for _, path in op.shared_sources)]
            raise OperatorError(
                f"{op.name} has the host sources {', '.join(sources) or 'none'}; a solution has exactly one.",
                "Put definition, tiling function and shape functions into one file of op_host/.",
            )
        (host,) = op.host_sources
        files = op.baseline.tiling
        header = self._tiling_header(host, files)
        names = {} if self.kept is not None else self._renames()
        kept = {header: f"{self.name}_tiling.h"} if header is not None else {}
        host_text = inlined(host, files, kept)
        tiling = "#pragma once\n"
        if header is not None:
            tiling = inlined(header, files, {})
        else:
            host_text = f'#include "{self.name}_tiling.h"\n{host_text}'
        kernel = inlined(op.kernel_main, op.baseline.kernel, {})
        entry = {} if self.kept is not None or self.name == op.entry else {op.entry: self.name}
        return {
            "host_tiling_src": renamed(tiling, names),
            "host_operator_src": renamed(host_text, names),
            "kernel_src": renamed(kernel, entry),
        }

    def _renames(self) -> dict[str, str]:
        assert self.signature is not None
        return {} if self.signature.op_type == self.op_type else {self.signature.op_type: self.op_type}

    @staticmethod
    def _tiling_header(host: str, files: Mapping[str, str]) -> str | None:
        """The header with the tiling data, among those the host source includes."""
        direct = includes(host, files[host], files)
        return next((h for h in direct if "BEGIN_TILING_DATA_DEF" in files[h]), None)

    # -- description, binding, module ----------------------------------------------------------------------------------

    def _generated(self) -> dict[str, str]:
        assert self.signature is not None
        assert self.case is not None
        if self.operator.in_place:
            raise OperatorError(
                f"{self.operator.name} changes its input {self.operator.in_place[0]} in place.",
                "A solution's binding allocates all outputs, so such an operator can't be exported.",
            )
        return {
            "project_json_src": self._project(self.signature),
            "python_bind_src": self._binding(self.signature, self.case),
            "model_src": self._module(self.signature, dict(self.case.attrs)),
        }

    def _project(self, s: Signature) -> str:
        def param(p: ParamDef) -> dict[str, Any]:
            formats = p.formats or ("ND",)
            return {
                "name": p.name,
                "param_type": p.kind,
                "format": [formats[i % len(formats)] for i in range(len(p.dtypes))],
                "type": [_JSON_TYPES.get(t, t) for t in p.dtypes],
            }

        def attr(a: AttrDef) -> dict[str, Any]:
            found = {"name": a.name, "type": _JSON_ATTRS.get(a.type, a.type)}
            if a.default is None:
                return {**found, "param_type": "required"}
            return {**found, "param_type": "optional", "default_value": a.default}

        document = {
            "op": self.op_type,
            "language": "cpp",
            "input_desc": [param(p) for p in s.inputs],
            "output_desc": [param(p) for p in s.outputs],
            "attr": [attr(a) for a in s.attrs],
        }
        return json.dumps([document], indent=4)

    def _binding(self, s: Signature, case: Case) -> str:
        parameters = [f"{_c_type(p)} {p.name}" for p in s.inputs]
        for a in s.attrs:
            if a.type not in _C_ATTRS:
                raise OperatorError(
                    f"the attribute {a.name} of {self.operator.name} is a {a.type}, which has no place in a binding.",
                    f"Types that have: {', '.join(_C_ATTRS)}.",
                )
            parameters.append(f"{_C_ATTRS[a.type]} {a.name}")
        given = [*(p.name for p in s.inputs), *(a.name for a in s.attrs), *(p.name for p in s.outputs)]
        lines: list[str] = []
        initial = self.operator.settings.get("initial", {})
        for i, p in enumerate(s.outputs):
            lines += allocation(s, case, i, self._probed, initial.get(p.name))
        arguments = ", ".join([f"aclnn{self.op_type}", *given])
        lines.append(f"EXEC_NPU_CMD({arguments});")
        kinds = ["std::vector<at::Tensor>" if p.kind == "dynamic" else "at::Tensor" for p in s.outputs]
        names = [p.name for p in s.outputs]
        single = len(names) == 1
        returned = names[0] if single else f"std::make_tuple({', '.join(names)})"
        lines.append(f"return {returned};")
        return _BINDING.format(
            result=kinds[0] if single else f"std::tuple<{', '.join(kinds)}>",
            name=self.name,
            parameters=", ".join(parameters),
            body="\n".join(f"    {line}" for line in lines),
        )

    def _probed(self, inputs: tuple[Argument, ...]) -> tuple[Argument, ...] | None:
        """The outputs for other shapes of inputs; None where the operator refuses them."""
        if self.infer is None or self.case is None:
            return None
        try:
            return self.infer(inputs, self.case.attrs)
        except AscendOptError:
            return None

    def _module(self, s: Signature, attrs: Mapping[str, AttrValue]) -> str:
        init = "".join(f", {a.name}={_python(attrs[a.name])}" for a in s.attrs)
        kept = "".join(f"        self.{a.name} = {a.name}\n" for a in s.attrs)
        inputs = ", ".join(p.name for p in s.inputs)
        given = ", ".join([*(p.name for p in s.inputs), *(f"self.{a.name}" for a in s.attrs)])
        return _MODULE.format(name=self.name, init=init, kept=kept, inputs=inputs, given=given)

    # -- the task ------------------------------------------------------------------------------------------------------

    def task(self) -> str:
        """A task for the solution: the operator's reference as ``Model``, inputs of the case.

        Raises:
            OperatorError: the operator has no reference.py.
        """
        file = self.operator.root / "reference.py"
        if not file.is_file() or self.signature is None or self.case is None:
            raise OperatorError(f"{self.operator.name} has no reference.py.", "A task's Model is made of it.")
        s, attrs = self.signature, dict(self.case.attrs)
        domains = self.operator.settings.get("domain", {})
        shapes = {p.name: a for p, a in zip(s.inputs, self.case.inputs, strict=True)}
        draws = [f"        {_draw(shapes[p.name], domains.get(p.name, {}), shapes)}," for p in s.inputs]
        return _TASK.format(
            reference=file.read_text(encoding="utf-8").rstrip(),
            init="".join(f", {a.name}={_python(attrs[a.name])}" for a in s.attrs),
            kept="".join(f"        self.{a.name} = {a.name}\n" for a in s.attrs),
            inputs=", ".join(p.name for p in s.inputs),
            given=", ".join([*(p.name for p in s.inputs), *(f"{a.name}=self.{a.name}" for a in s.attrs)]),
            draws="\n".join(draws),
            values=", ".join(_python(attrs[a.name]) for a in s.attrs),
        )


def _c_type(p: ParamDef) -> str:
    if p.kind == "dynamic":
        return "at::TensorList"
    return "const c10::optional<at::Tensor>&" if p.kind == "optional" else "const at::Tensor&"


def _python(value: AttrValue) -> str:
    return repr(list(value)) if isinstance(value, tuple) else repr(value)


def _draw(argument: Argument, domain: Mapping[str, Any], inputs: Mapping[str, Argument]) -> str:
    """Python text of a random input."""
    if argument is None:
        return "None"
    if isinstance(argument, tuple):
        return f"[{', '.join(_draw(a, domain, inputs) for a in argument)}]"
    shape = f"({''.join(f'{n}, ' for n in argument.shape).rstrip()})"
    dtype = f"torch.{argument.dtype}"
    if "values" in domain:
        return f"torch.tensor({list(domain['values'])}, dtype={dtype}).reshape({shape})"
    if argument.dtype == "bool":
        return f"torch.rand({shape}) > 0.5"
    low, high = domain.get("low"), domain.get("high")
    if "index" in domain and isinstance(other := inputs[domain["index"]], TensorSpec):
        low, high = 0, other.shape[int(domain.get("axis", 0))] - 1
    if argument.dtype.startswith(("float", "bfloat")):
        text = f"torch.rand({shape})"
        if low is not None or high is not None:
            low, high = -1.0 if low is None else low, 1.0 if high is None else high
            text = f"({text} * {high - low} + {low})"
        return text if argument.dtype == "float32" else f"{text}.to({dtype})"
    low, high = -100 if low is None else int(low), 100 if high is None else int(high)
    low = max(low, 0) if argument.dtype.startswith("uint") else low
    return f"torch.randint({low}, {high + 1}, {shape}, dtype={dtype})"


def _literal(text: str) -> str:
    """A string literal of ``text``, readable where that is possible."""
    if "'''" in text or "\r" in text or "\0" in text or text.endswith(("'", "\\")):
        return repr(text)
    return f"r'''{text}'''"


_BINDING = """\
#include <torch/extension.h>
#include <torch/library.h>

#include "pytorch_npu_helper.hpp"

{result} {name}_npu({parameters}) {{
{body}
}}

TORCH_LIBRARY_IMPL(myops, PrivateUse1, m) {{
    m.impl("{name}", &{name}_npu);
}}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {{
    m.def("{name}", &{name}_npu, "{name}");
}}
"""

_MODULE = """\
import torch
import torch_npu
import custom_ops_lib


class ModelNew(torch.nn.Module):
    def __init__(self{init}):
        super().__init__()
{kept}
    def forward(self, {inputs}):
        return custom_ops_lib.{name}({given})
"""

_TASK = """\
{reference}


import torch

operator = reference


class Model(torch.nn.Module):
    def __init__(self{init}):
        super().__init__()
{kept}
    def forward(self, {inputs}):
        return operator({given})


def get_inputs():
    return [
{draws}
    ]


def get_init_inputs():
    return [{values}]
"""
