"""Wrong variants of verified kernels: one table of text templates per kind of mistake, applied wherever they match.

No operator has a name here: a template looks for a construct (a loop, a copy to an output, a barrier, a rounding mode)
in a kernel's or a tiling program's source, and every place that has it becomes a mutant.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ascendopt_tune.nouns.operator import Operator, Pair, Signature

Edit = tuple[int, int, str]  # replace text[begin:end]


@dataclass(frozen=True)
class Mutant:
    """``what`` tells the change and its line; it is unique within an operator and kind."""

    kind: str
    what: str
    pair: Pair


@dataclass(frozen=True)
class Program:
    """A source that templates are applied to: the kernel's main file, or the tiling program's."""

    text: str
    signature: Signature
    auto_sync: bool

    @property
    def code(self) -> str:
        """The text with blanks for comments."""
        return re.sub(r"//.*", lambda match: " " * len(match[0]), self.text)

    @property
    def outputs(self) -> str:
        """A pattern for the tensors that outputs are written through (``zGm``, ``scaleGm``)."""
        return "|".join(f"{p.name}Gm" for p in self.signature.outputs)

    @property
    def inputs(self) -> tuple[str, ...]:
        return tuple(p.name for p in self.signature.inputs)


Template = Callable[[Program], Iterator[tuple[str, Edit]]]


def _each(pattern: str, *replacements: str) -> Template:
    """Every match of ``pattern`` with every replacement (as re.Match.expand has it)."""

    def template(program: Program) -> Iterator[tuple[str, Edit]]:
        for match in re.finditer(pattern, program.code, re.MULTILINE):
            for replacement in replacements:
                new = match.expand(replacement)
                yield f"{_short(match[0])} -> {_short(new)}", (*match.span(), new)

    return template


def _short(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()[:90]


def _output_copy(*replacements: str) -> Template:
    """Copies to an output: ``\\g<gm>`` is the tensor, ``\\g<at>`` where, ``\\g<rest>`` the other arguments."""

    def template(program: Program) -> Iterator[tuple[str, Edit]]:
        pattern = rf"DataCopyPad\((?P<gm>{program.outputs})\[(?P<at>.*)\], (?P<src>\w+)(?P<rest>.*)\);"
        yield from _each(pattern, *replacements)(program)

    return template


def _entry(*statements: str) -> Template:
    """A statement at the kernel's start. ``OUT``, ``IN``: its first output and input; ``WORKSPACE``."""

    def template(program: Program) -> Iterator[tuple[str, Edit]]:
        match = re.search(r"__global__ __aicore__ void \w+\(([^)]*)\) \{\n", program.code)
        assert match is not None
        names = re.findall(r"GM_ADDR (\w+)", match[1])
        places = {"OUT": names[len(program.inputs)], "IN": names[0], "WORKSPACE": names[-2]}
        for statement in statements:
            for word, name in places.items():
                statement = statement.replace(word, name)
            yield statement, (match.end(), match.end(), f"  {statement}\n")

    return template


def _declared(declaration: str, statement: str) -> Template:
    """A statement at the kernel's start that needs a declaration outside."""

    def template(program: Program) -> Iterator[tuple[str, Edit]]:
        at = program.code.index("template <typename T>")
        head = program.text[:at] + declaration + "\n"
        inner = next(_entry(statement)(program))
        begin, _, new = inner[1]
        yield inner[0], (0, begin, head + program.text[at:begin] + new)

    return template


def _dependent_barrier(program: Program) -> Iterator[tuple[str, Edit]]:
    """Barriers between two vector calls of which the second names what the first has written."""
    if program.auto_sync:
        return
    pattern = r"^ *(?:\w+)\((\w+)[\[,][^;]*;\n( *PipeBarrier<PIPE_V>\(\);\n)(?= *\w+\(([^;]*)\);)"
    for match in re.finditer(pattern, program.code, re.MULTILINE):
        if re.search(rf"\b{match[1]}\b", match[3]):
            yield f"no barrier after {_short(match[0])}", (match.start(2), match.end(2), "\n")


def _flags(program: Program) -> Iterator[tuple[str, Edit]]:
    """Both sides of a flag left out."""
    if program.auto_sync:
        return
    for match in re.finditer(r"^ *SetFlag<.*;\n *WaitFlag<.*;\n", program.code, re.MULTILINE):
        yield f"without {_short(match[0])}", (*match.span(), "\n\n")


_MINIMUM = r"(?P<a>[\w. ]+?(?: - \w+)?) < (?P<b>[\w.]+) \? (?P=a) : (?P=b)"
_READ_FIRST = "static_cast<float>(\\g<src>.GetValue(0))"

#: Kind -> templates over the kernel.
KERNEL: dict[str, tuple[Template, ...]] = {
    "tail": (
        _each(r"(?P<v>\w+) < (?P<end>[\w.]+); (?P=v)\+\+", r"\g<v> + 1 < \g<end>; \g<v>++"),
        _each(r"(?P<v>\w+) < (?P<end>\w+); (?P=v) \+= (?P<step>\w+)",
              r"\g<v> + \g<step> < \g<end>; \g<v> += \g<step>"),
        _each(_MINIMUM, r"\g<a> < \g<b> ? \g<a> - 1 : \g<b>", r"\g<a> < \g<b> ? \g<a> + 1 : \g<b>"),
        _each(r"(?P<n>\w+) \* sizeof\(T\)\), (?=0|GapBlocks|$)", r"(\g<n> - 1) * sizeof(T)), ",
              r"(\g<n> + 1) * sizeof(T)), "),
    ),
    "sync": (_dependent_barrier, _flags),
    "queue": (
        _each(r"^ *\w+\.EnQue\(\w+\);$", ""),
        _each(r"^ *\w+\.FreeTensor\(\w+\);$", ""),
    ),
    "rounding": (_each(r"CAST_RINT", "CAST_TRUNC", "CAST_FLOOR", "CAST_CEIL"),),
    "stale": (
        _output_copy("", r"if (GetBlockIdx() % 2 == 0) \g<0>", r"if (GetBlockIdx() + 1 != GetBlockNum()) \g<0>",
                     r"if (GetBlockIdx() == 0) \g<0>"),
    ),
    "outside": (
        _output_copy(r"DataCopyPad(\g<gm>[\g<at> + 1], \g<src>\g<rest>);",
                     r"DataCopyPad(\g<gm>[\g<at> - 1], \g<src>\g<rest>);",
                     r"DataCopyPad(\g<gm>[\g<at> + 100000], \g<src>\g<rest>);"),
        _entry("GlobalTensor<uint8_t> extra; extra.SetGlobalBuffer((__gm__ uint8_t*)OUT - 64); extra.SetValue(0, 1);",
               "GlobalTensor<uint8_t> extra; extra.SetGlobalBuffer((__gm__ uint8_t*)OUT + (1 << 22)); "
               "extra.SetValue(0, 1);",
               "GlobalTensor<uint8_t> extra; extra.SetGlobalBuffer((__gm__ uint8_t*)IN); "
               "extra.SetValue(0, extra.GetValue(0) + 1);",
               "GlobalTensor<uint8_t> extra; extra.SetGlobalBuffer((__gm__ uint8_t*)WORKSPACE + (1 << 26)); "
               "extra.SetValue(0, 1);"),
    ),
    "exit": (
        _entry("if (GetBlockIdx() == 0) return;", "if (GetBlockIdx() + 1 == GetBlockNum()) return;",
               "if (GetBlockIdx() > 0) return;", "return;"),
        _each(r"^ *CopyOut\([^;]*;$", r"\g<0> break;"),
    ),
    "values": (
        _output_copy(*(rf"if ({_READ_FIRST} {condition}) \g<0>" for condition in ("> 0.0f", "< 0.0f", "!= 0.0f"))),
    ),
    "uninitialized": (
        _each(r"^ *DataCopyPad\(\w*[lL]ocal(?:\[.*\])?, .*;$", ""),
        _each(r"^ *Duplicate\(.*;$", ""),
        _entry("GlobalTensor<float> w; w.SetGlobalBuffer((__gm__ float*)WORKSPACE); "
               "if (w.GetValue(0) != 0.0f) return;"),
    ),
    "arithmetic": (
        _each(r"\bAdd\(", "Sub("), _each(r"\bSub\(", "Add("), _each(r"\bMul\(", "Add("), _each(r"\bDiv\(", "Mul("),
        _each(r"\bMuls\(", "Adds("), _each(r"\bExp\(", "Abs("), _each(r"\bReduceMax\(", "ReduceMin("),
        _each(r"\bReduceSum\(", "ReduceMax("), _each(r"CMPMODE::EQ", "CMPMODE::NE"), _each(r"-1\.0f", "-1.01f"),
        _each(r" \+ epsilon", ""), _each(r"-mean\b", "mean"), _each(r"-maximum\b", "0.0f"),
    ),
    "dtype": (_each(r"(?P<class>Kernel\w+)<DTYPE_X> op;", r"\g<class><int16_t> op;", r"\g<class><int32_t> op;",
                    r"\g<class><float> op;"),),
    "time": (
        _declared('extern "C" void vnpu_replay_release(int);', "vnpu_replay_release(1);"),
        _declared("namespace vnpu { void scalar_cost(double); }", "vnpu::scalar_cost(-1e9);"),
        _declared('extern "C" unsigned sleep(unsigned);', "sleep(1);"),
        _declared('extern "C" int usleep(unsigned);', "usleep(1);"),
        _entry("for (volatile int i = 0; GetBlockIdx() == 0; i = i + 1) {}"),
    ),
}  # fmt: skip

_SHARE = r"(?:total|token|row|big|small|core|head|item|tensor|half)\w*"
#: Kind -> templates over the tiling program.
TILING: dict[str, tuple[Template, ...]] = {
    "tiling": (
        _each(r"SetBlockDim\((?P<n>.*)\);", "SetBlockDim(0);", "SetBlockDim(70000);",
              r"SetBlockDim((\g<n> + 1) / 2);", "SetBlockDim(1);"),
        _each(rf"tiling\.set_(?P<f>{_SHARE}(?<!PerLoop)(?<!PerItem))\((?P<v>.*)\);",
              r"tiling.set_\g<f>((\g<v>) + 1);", r"tiling.set_\g<f>((\g<v>) - 1);", r"tiling.set_\g<f>(0);"),
        _each(r"SetTilingKey\(\w+\)", "SetTilingKey(7)"),
        _each(r"SetDataSize\(.*\);", "SetDataSize(4);"),
    ),
}  # fmt: skip


def mutants(operator: Operator, signature: Signature) -> Iterator[Mutant]:
    """Every mutant of the operator's baseline, in a fixed order."""
    auto_sync = "--cce-auto-sync=off" not in operator.kernel_options
    base = operator.baseline
    host = next(p for p in base.tiling if p.endswith(".cpp"))
    for path, text, tables in ((operator.kernel_main, base.kernel[operator.kernel_main], KERNEL),
                               (host, base.tiling[host], TILING)):  # fmt: skip
        program = Program(text, signature, auto_sync)
        for kind, templates in tables.items():
            for template in templates:
                for what, (begin, end, new) in template(program):
                    changed = text[:begin] + new + text[end:]
                    line = text.count("\n", 0, begin if begin else end) + 1
                    pair = base.with_kernel(path, changed) if tables is KERNEL else base.with_tiling(path, changed)
                    if changed != text:
                        yield Mutant(kind, f"line {line}: {what}", pair)
