"""The kernels of a file: their names, parameters and template arguments, read from its text.

Macros that define kernels are written out first, and branches of ``#if`` that are known to be left out don't count.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ..errors import OperatorError
from .conditions import unused_branches
from .several import plain
from .texts import COMMENT, KERNEL_SOURCES, NUMBER, read

_ENTRY = re.compile(
    r"__global__(?:\s+|__mix__\s*\(\s*\d\s*,\s*\d\s*\)|__\w+__|\[\w+\]|__attribute__\(\(.*?\)\))*\s*void\s+(\w+)\s*\("
)
_KERNEL_MACRO = re.compile(r"^\s*#\s*define\s+(\w+)\((\w+(?:\s*,\s*\w+)*)\)(.*__global__.*)$", re.MULTILINE)

_NESTED = r"(?:[^<>]|<(?:[^<>]|<[^<>]*>)*>)*"  # between the brackets of a template, whose defaults may be templates


def kernels_in(kernel_file: Path) -> dict[str, int | None]:
    """The ``__global__`` functions of a file, each with the number of blocks its ``<<<>>>`` launch there says, if any.

    Raises:
        OperatorError: no such file.
    """
    file = kernel_file.expanduser()
    if not file.is_file():
        raise OperatorError(f"the kernel file {kernel_file} does not exist.", "Check the path given to --kernel.")
    text = COMMENT.sub(" ", read(file))
    found: dict[str, int | None] = {}
    for entry in entries(text):
        launch = re.search(rf"\b{entry}\s*(?:<[^<>]*>)?\s*<<<\s*(\w+)", text)
        value = launch[1] if launch is not None else ""
        named = re.search(rf"\b{value}\s*=\s*(\d+)\s*[;,]", text) if value and not value.isdigit() else None
        number = value if value.isdigit() else named[1] if named is not None else ""
        found[entry] = int(number) if number else None
    return found


def template_parameters(text: str, entry: str) -> list[tuple[str, str]]:
    """(kind, name) of a kernel's template parameters: ``("typename", "T")``, ``("int", "N")``; empty for others.

    A kernel of that name with C's linkage is the one that is launched, whatever templates there are beside it.
    """
    text = _compiled(text)
    entry = re.escape(entry)
    plain = re.search(rf'\bextern\s*"C"[^;{{}}()]*\bvoid\s+{entry}\s*\(', text)
    listed = rf"\btemplate\s*<({_NESTED})>[^;{{}}()]*\bvoid\s+{entry}\s*\("
    found = re.search(listed, text) if plain is None else None
    parts = [part.partition("=")[0].split() for part in _apart(found[1])] if found else []
    return [(" ".join(words[:-1]), words[-1]) for words in parts]


def _apart(listed: str) -> list[str]:
    """What stands between the commas of a template's list, its arguments' own lists left whole."""
    depth, parts = 0, [""]
    for letter in listed:
        depth += {"<": 1, ">": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]


def parameters_of(
    text: str, entry: str, arguments: Sequence[str] = (), defines: Iterable[tuple[str, str]] = ()
) -> tuple[tuple[str, str], ...]:
    """(name, C type) of the kernel's parameters, as written in its definition; a template's with its arguments.

    Raises:
        OperatorError: which parameters there are hangs on a macro that neither ``defines`` nor the text gives a number.
    """
    names = [name for _, name in template_parameters(text, entry)]
    known = dict([*NUMBER.findall(text), *defines])
    compiled = _compiled(text, {name: int(value) for name, value in known.items() if value.isdigit()})
    match = re.search(rf"\bvoid\s+{re.escape(entry)}\s*\(([^)]*)\)", _pasted(compiled))
    listed = match[1] if match else ""
    if unknown := re.search(r"^\s*#\s*(?:el)?if\w*\s+(.*?)\s*$", listed, re.MULTILINE):
        raise OperatorError(
            f"which parameters {entry} has hangs on whether {unknown[1]}.", "Say so: -D MACRO=NUMBER for its macros."
        )
    found = []
    for part in listed.split(",") if listed.strip() not in ("", "void") else []:
        words = re.findall(r"\w+(?:::\w+)*|\*", part.partition("=")[0])
        words = [w for w in words if not w.startswith("__")]  # address qualifiers
        words[:-1] = [dict(zip(names, arguments, strict=False)).get(w, w) for w in words[:-1]]
        found.append((words[-1], " ".join(words[:-1])))
    return tuple(found)


def _compiled(text: str, macros: Mapping[str, int] | None = None) -> str:
    """The text without comments, and blanks for branches of ``#if`` that are known to be left out."""
    compiled = bytearray(COMMENT.sub(" ", text).encode())
    for start, end in unused_branches(bytes(compiled), macros):
        compiled[start:end] = re.sub(rb"[^\n]", b" ", bytes(compiled[start:end]))
    return compiled.decode()


def template_arguments(text: str, entry: str, given: str) -> list[str]:
    """The arguments of ``scale<half>``. Raises OperatorError where they don't fit the kernel."""
    arguments = _apart(given.rpartition(">")[0])
    template = template_parameters(text, entry)
    if len(arguments) > len(template) or (template and not arguments):
        wanted = ", ".join(f"{kind} {name}" for kind, name in template)
        text = f"is a template <{wanted}>" if template else "is no template"
        raise OperatorError(f"{entry} {text}.", f"Name it as --entry '{entry}{'<...>' if template else ''}'.")
    return arguments


def entries(text: str) -> list[str]:
    return list(dict.fromkeys(_ENTRY.findall(_pasted(COMMENT.sub(" ", text)))))


def _pasted(text: str) -> str:
    """The text and, behind it, the bodies of its macros that define kernels, for every use of them.

    So are kernels written that exist for several types: ``DECLARE(half)`` defines ``scale_half``.
    """
    text = re.sub(r"\\\s*\n", " ", text)
    parts = [text]
    for name, listed, body in _KERNEL_MACRO.findall(text):
        parameters = [parameter.strip() for parameter in listed.split(",")]
        for given in re.findall(rf"^\s*{name}\(([^()]*)\)", text, re.MULTILINE):
            arguments = [argument.strip() for argument in given.split(",")]
            if len(arguments) == len(parameters):
                parts.append(_expanded(body, dict(zip(parameters, arguments, strict=True))))
    return "\n".join(parts)


def _expanded(body: str, values: Mapping[str, str]) -> str:
    """The macro's body with its parameters' values, pasted where ``##`` says so."""
    either = "|".join(values)
    body = re.sub(rf"\s*##\s*({either})\b|\b({either})\b", lambda m: values[m[1] or m[2]], body)
    return re.sub(r"\s*##\s*", "", body)


def find_entry(root: Path, kernel: dict[str, str], wanted: str) -> tuple[str, str, dict[str, str]]:
    """(path, function) of the kernel: the wanted one, the one called as the folder or as its file, else the only one;
    and the path of each kernel that might have been meant, by its function."""
    found = [(p, e) for p, t in kernel.items() if Path(p).suffix in KERNEL_SOURCES for e in entries(t)]
    if not found:
        raise OperatorError(
            f'no file in {root / "op_kernel"} has a kernel (an `extern "C" __global__ __aicore__ void` function).',
            "Check that the kernel source is in op_kernel/.",
        )
    named = [f for f in found if f[1] == Path(f[0]).stem] or found  # not <name>_apt.cpp, for other chips
    names = ", ".join(dict.fromkeys(e for _, e in named))
    if wanted:
        preferred = [f for f in named if plain(f[1]) == plain(wanted)] or [
            f for f in found if plain(f[1]) == plain(wanted)
        ]
        if not preferred:
            raise OperatorError(f"{root / 'op_kernel'} has no kernel called {wanted}.", f"Its kernels: {names}.")
    else:
        preferred = [f for f in found if f[1] == root.name] or named
        preferred = [f for f in preferred if Path(f[0]).stem == f[1]] or preferred
    if len(preferred) > 1:
        raise OperatorError(
            f"{root / 'op_kernel'} has several kernels ({names}), none called {wanted or root.name}.",
            f"Name the operator behind the folder: {root}:{preferred[0][1]}.",
        )
    return *preferred[0], {e: p for p, e in named}
