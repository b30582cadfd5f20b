"""Writes the operator's folder, as the registry's operators have it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ...files import write_whole
from ..ir import Program
from ..layout import plan
from .host import print_host, print_tiling_header
from .kernel import print_kernel

_REFERENCE = '''"""What {name} computes: its program in the tile language, interpreted on numpy."""

from pathlib import Path

from torch import Tensor

from ascendopt_tune import dsl

_PROGRAM = dsl.read_file(Path(__file__).with_name("{name}.dsl.py"))


def reference({signature}) -> {result}:
    found = dsl.on_tensors(_PROGRAM, {{{inputs}}}, {{{attributes}}})
    return {returned}
'''


@dataclass(frozen=True)
class Lowered:
    """The files of a project, by path within its folder."""

    name: str
    files: dict[str, str]


def lower(program: Program, cases: list[dict[str, object]] | None = None, reference: str | None = None) -> Lowered:
    """The operator project of a program.

    Args:
        cases: tables for ``op.toml``: ``inputs`` and ``attrs``.
        reference: the text of ``reference.py``; without it the interpreter is the reference.

    Raises:
        DslError: the program can't be lowered.
    """
    name = program.host.name
    dtypes = {p: program.tensor_of(p).dtype for p in program.kernel.tensors}
    layout = plan(program.kernel, dtypes)
    files = {
        f"op_host/{name}_tiling.h": print_tiling_header(program, name),
        f"op_host/{name}.cpp": print_host(program, layout, name),
        f"op_kernel/{name}.cpp": print_kernel(program, layout, name),
        "op.toml": _toml(program, cases or []),
        "reference.py": reference or _reference(program),
        f"{name}.dsl.py": program.text,
        "README.md": _readme(program),
    }
    return Lowered(name, files)


def write_project(lowered: Lowered, folder: Path) -> None:
    """Writes the files. Raises OSError."""
    for path, text in lowered.files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        write_whole(target, text)


def _toml(program: Program, cases: list[dict[str, object]]) -> str:
    name = program.host.name
    title = (program.host.doc.strip().splitlines() or [f"{name}, from the tile language"])[0].rstrip(".")
    text = f'name = "{name}"\nentry = "{name}"\nsummary = "{title}"\n\n'
    text += '[options]\nkernel = ["--cce-auto-sync=off"]  # every dependence is synchronized in the source\n'
    for case in cases:
        text += "\n[[case]]\n"
        for key in ("inputs", "attrs"):
            table = case.get(key)
            if isinstance(table, dict) and table:
                text += f"{key} = {{ {', '.join(f'{k} = {_value(v)}' for k, v in table.items())} }}\n"
    return text


def _value(v: object) -> str:
    return f'"{v}"' if isinstance(v, str) else str(v)


def _reference(program: Program) -> str:
    inputs, outputs = program.of_kind("input"), program.of_kind("output")
    attributes = list(program.host.attributes.values())
    parts = [f"{t.name}: Tensor" for t in inputs] + [f"{a.name}: {a.type} = {a.default}" for a in attributes]
    many = [f'found["{t.name}"]' for t in outputs]
    return _REFERENCE.format(
        name=program.host.name,
        signature=", ".join(parts),
        result="Tensor" if len(many) == 1 else f"tuple[{', '.join(['Tensor'] * len(many))}]",
        inputs=", ".join(f'"{t.name}": {t.name}' for t in inputs),
        attributes=", ".join(f'"{a.name}": {a.name}' for a in attributes),
        returned=many[0] if len(many) == 1 else f"({', '.join(many)})",
    )


def _readme(program: Program) -> str:
    name = program.host.name
    return (
        f"# {name}\n\n{program.host.doc.strip() or name}\n\nLowered from `{name}.dsl.py` (docs/dsl.md). The tuner "
        "takes it from here as any other pair, so what is served may differ from what the program would print again.\n"
    )
