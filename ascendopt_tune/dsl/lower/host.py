"""Prints the host half: tiling data, tiling function, shapes and dtypes of outputs, operator definition."""

from __future__ import annotations

from ..ir import BUFFERS, Attribute, Check, Expr, Knob, Let, Program, Tensor
from ..layout import Layout
from ..scalar import cpp, number_text
from .text import Lines, name_of, pascal

_CPP = {"int": "int64_t", "float": "float", "bool": "int64_t"}


def print_tiling_header(program: Program, entry: str) -> str:
    """The text of ``op_host/<entry>_tiling.h``."""
    out = Lines()
    out.add(f"// What the tiling function of {pascal(entry)} hands to the kernel. Lengths are in elements.")
    out.add("#pragma once", '#include "register/tilingdata_base.h"', "", "namespace optiling {")
    out.add(f"BEGIN_TILING_DATA_DEF({pascal(entry)}TilingData)")
    for name, kind, comment in fields(program):
        out.add(f"TILING_DATA_FIELD_DEF({kind}, {name});" + (f"  // {comment}" if comment else ""))
    out.add("END_TILING_DATA_DEF;", "", f"REGISTER_TILING_DATA_CLASS({pascal(entry)}, {pascal(entry)}TilingData)")
    out.add("}  // namespace optiling")
    return out.text


def fields(program: Program) -> list[tuple[str, str, str]]:
    """Name, type and comment of every field."""
    found = []
    for p, a in zip(program.kernel.parameters, program.host.arguments, strict=True):
        if isinstance(a, Expr):
            found.append((name_of(p), _CPP[a.type], ""))
    found += [(f"{t.name}Offset", "int64_t", "bytes of the workspace before it") for t in program.of_kind("workspace")]
    found.append(("bufferNum", "uint32_t", "buffers of a queue"))
    return found


def print_host(program: Program, layout: Layout, entry: str) -> str:
    """The text of ``op_host/<entry>.cpp``."""
    return _Host(program, layout, entry).text()


class _Host:
    def __init__(self, program: Program, layout: Layout, entry: str) -> None:
        self.program, self.layout, self.entry = program, layout, entry
        self.inputs, self.outputs = program.of_kind("input"), program.of_kind("output")
        self.out = Lines()

    def text(self) -> str:
        out, name = self.out, pascal(self.entry)
        first = (self.program.host.doc.strip().splitlines() or [name])[0]
        out.add(f"// {first.rstrip('.')}. Definition, shape inference and tiling; lowered from the tile language.")
        out.add(
            f'#include "{self.entry}_tiling.h"', "", "#include <algorithm>", "#include <cmath>", "#include <cstdio>", ""
        )
        out.add('#include "register/op_def_registry.h"', '#include "tiling/platform/platform_ascendc.h"', "")
        self._helpers()
        out.add("namespace optiling {")
        for k in self._knobs():
            out.add(f"constexpr int64_t {k.name} = {k.default};" + (f"  // {k.why}" if k.why else ""))
        why = next((s.why for s in self.program.host.steps if isinstance(s, Knob) and s.name == BUFFERS), "")
        out.add(f"constexpr uint32_t {BUFFERS} = {self.program.buffers};  // {why or 'of a queue'}", "")
        self._tiling()
        out.add("}  // namespace optiling", "", "namespace ge {")
        self._shapes()
        out.add("}  // namespace ge", "", "namespace ops {")
        self._definition()
        out.add(f"OP_ADD({name});", "}  // namespace ops")
        return out.text

    def _knobs(self) -> list[Knob]:
        return [s for s in self.program.host.steps if isinstance(s, Knob) and s.name != BUFFERS]

    def _helpers(self) -> None:
        self.out.add("template <typename T>", "static T MinOf(T a, T b) {", "  return std::min(a, b);", "}")
        self.out.add("template <typename T>", "static T MaxOf(T a, T b) {", "  return std::max(a, b);", "}")
        self.out.add("static int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }")
        self.out.add("static int64_t CeilAlign(int64_t a, int64_t b) { return CeilDiv(a, b) * b; }", "")

    def _tiling(self) -> None:
        out, program = self.out, self.program
        with out.block("static ge::graphStatus TilingFunc(gert::TilingContext* context) {"):
            for i, t in enumerate(self.inputs):
                if self._uses(t):
                    out.add(f"const gert::Shape& {t.name}Shape = context->GetInputShape({i})->GetStorageShape();")
            for i, a in enumerate(program.host.attributes.values()):
                out.add(self._attribute(i, a))
            out.add("auto platform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());")
            out.add("uint64_t ubSize = 0;")
            out.add("platform.GetCoreMemSize(platform_ascendc::CoreMemType::UB, ubSize);")
            out.add("const int64_t coreNum = platform.GetCoreNumAiv();", "")
            for name, (rank, _) in program.host.ranks.items():
                self._refuse(f"{name}Shape.GetDimNum() != {rank}", f"{name} needs {rank} axes")
            for step in program.host.steps:
                if isinstance(step, Let):
                    kind = _CPP[step.value.type]
                    out.add(f"const {kind} {name_of(step.name)} = {self._expr(step.value)};")
                elif isinstance(step, Knob) and step.name != BUFFERS:
                    limited = step.name
                    if step.limit is not None:
                        limited = f"MinOf<int64_t>({step.name}, {self._expr(step.limit)})"
                    out.add(f"const int64_t {name_of(step.variable)} = {limited};")
                elif isinstance(step, Check):
                    self._refuse(f"!({self._expr(step.test)})", step.text)
            self._budget()
            out.add(f"{pascal(self.entry)}TilingData tiling;")
            for p, given in zip(program.kernel.parameters, program.host.arguments, strict=True):
                if isinstance(given, Expr):
                    out.add(f"tiling.set_{name_of(p)}({self._expr(given)});")
            out.add(f"tiling.set_bufferNum({BUFFERS});")
            self._workspace()
            out.add(f"context->SetBlockDim(static_cast<uint32_t>({self._expr(program.host.cores)}));")
            out.add("tiling.SaveToBuffer(context->GetRawTilingData()->GetData(), "
                    "context->GetRawTilingData()->GetCapacity());")  # fmt: skip
            out.add("context->GetRawTilingData()->SetDataSize(tiling.GetDataSize());")
            out.add("return ge::GRAPH_SUCCESS;")

    def _budget(self) -> None:
        given = {
            p: a
            for p, a in zip(self.program.kernel.parameters, self.program.host.arguments, strict=True)
            if isinstance(a, Expr)
        }
        total = self.layout.total(Expr("var", "int", (), BUFFERS)).substitute(given)
        text = "the tile doesn't fit the Unified Buffer; make it smaller"
        self._refuse(f"{self._expr(total)} > static_cast<int64_t>(ubSize)", text)

    def _workspace(self) -> None:
        out, spaces = self.out, self.program.of_kind("workspace")
        out.add("size_t* workspaces = context->GetWorkspaceSizes(1);")
        if not spaces:
            out.add("workspaces[0] = 0;")
            return
        out.add("int64_t workspaceBytes = 0;")
        for t in spaces:
            out.add(f"tiling.set_{t.name}Offset(workspaceBytes);")
            count = " * ".join(f"({self._expr(e)})" for e in t.shape or ())
            out.add(f"workspaceBytes += CeilAlign({count} * {t.dtype.size}, 512);")
        out.add("workspaces[0] = static_cast<size_t>(workspaceBytes) + platform.GetLibApiWorkSpaceSize();")

    def _shapes(self) -> None:
        out = self.out
        with out.block("static graphStatus InferShape(gert::InferShapeContext* context) {"):
            # Shapes may use what the host function computed from the inputs' shapes.
            steps: dict[str, Expr] = {}
            for step in self.program.host.steps:
                if isinstance(step, Let):
                    steps[step.name] = step.value.substitute(steps)
            for i, t in enumerate(self.outputs):
                shape = t.shape or ()
                if shape and shape[0].op == "shape":
                    index = [x.name for x in self.inputs].index(str(shape[0].value))
                    out.add(f"*context->GetOutputShape({i}) = *context->GetInputShape({index});")
                    continue
                out.add(f"context->GetOutputShape({i})->SetDimNum({len(shape)});")
                for axis, e in enumerate(shape):
                    text = cpp(e.substitute(steps), self._inferred)
                    out.add(f"context->GetOutputShape({i})->SetDim({axis}, {text});")
            out.add("return GRAPH_SUCCESS;")
        out.add("")
        with out.block("static graphStatus InferDataType(gert::InferDataTypeContext* context) {"):
            for i, t in enumerate(self.outputs):
                out.add(f"context->SetOutputDataType({i}, ge::{t.dtype.ge});")
            out.add("return GRAPH_SUCCESS;")

    def _definition(self) -> None:
        out, name = self.out, pascal(self.entry)
        with out.block(f"class {name} : public OpDef {{", "};"):
            out.add("public:")
            with out.block(f"explicit {name}(const char* name) : OpDef(name) {{"):
                for kind, tensors in (("Input", self.inputs), ("Output", self.outputs)):
                    for t in tensors:
                        out.add(f'this->{kind}("{t.name}").ParamType(REQUIRED).DataType({{ge::{t.dtype.ge}}})'
                                ".Format({ge::FORMAT_ND});")  # fmt: skip
                for a in self.program.host.attributes.values():
                    value = number_text(a.default).rstrip("f") if a.type == "float" else str(a.default)
                    out.add(
                        f'this->Attr("{a.name}").AttrType(OPTIONAL).{"Float" if a.type == "float" else "Int"}({value});'
                    )
                out.add("this->SetInferShape(ge::InferShape).SetInferDataType(ge::InferDataType);")
                out.add(
                    'this->AICore().SetTiling(optiling::TilingFunc).AddConfig("ascend910b").AddConfig("ascend910_93");'
                )

    # -- pieces -------------------------------------------------------------------------------------------------------

    def _uses(self, t: Tensor) -> bool:
        program = self.program
        found: list[Expr] = [program.host.cores, *(a for a in program.host.arguments if isinstance(a, Expr))]
        for step in program.host.steps:
            if isinstance(step, Let):
                found.append(step.value)
            elif isinstance(step, Check):
                found.append(step.test)
            elif isinstance(step, Knob) and step.limit is not None:
                found.append(step.limit)
        found += [e for s in program.of_kind("workspace") for e in s.shape or ()]
        return t.name in program.host.ranks or any(
            x.op in ("dim", "numel") and x.value == t.name for e in found for x in e.walk()
        )

    def _attribute(self, i: int, a: Attribute) -> str:
        if a.type == "float":
            return f"const float {name_of(a.name)} = *context->GetAttrs()->GetFloat({i});"
        return f"const int64_t {name_of(a.name)} = *context->GetAttrs()->GetInt({i});"

    def _refuse(self, test: str, text: str) -> None:
        with self.out.block(f"if ({test}) {{"):
            quoted = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
            self.out.add(f'std::printf("{pascal(self.entry)}: {quoted}.\\n");', "return ge::GRAPH_FAILED;")

    def _expr(self, e: Expr) -> str:
        return cpp(e, self._leaf)

    def _leaf(self, e: Expr) -> str:
        if e.op == "var":
            return name_of(str(e.value))
        if e.op == "dim":
            axis = int(e.args[0].value)
            shape = f"{e.value}Shape"
            return f"{shape}.GetDim({axis if axis >= 0 else f'{shape}.GetDimNum() - {-axis}'})"
        if e.op == "numel":
            return f"{e.value}Shape.GetShapeSize()"
        if e.op == "cores":
            return f"MinOf<int64_t>(coreNum, MaxOf<int64_t>(1, {self._expr(e.args[0])}))" if e.args else "coreNum"
        return {"ub_bytes": "static_cast<int64_t>(ubSize)", "num_cores": "coreNum"}[e.op]

    def _inferred(self, e: Expr) -> str:
        """What an output's shape is made of, in InferShape."""
        index = [t.name for t in self.inputs].index(str(e.value)) if e.op in ("dim", "numel") else -1
        shape = f"context->GetInputShape({index})"
        if e.op == "dim":
            axis = int(e.args[0].value)
            return f"{shape}->GetDim({axis if axis >= 0 else f'{shape}->GetDimNum() - {-axis}'})"
        if e.op == "numel":
            return f"{shape}->GetShapeSize()"
        return name_of(str(e.value))
