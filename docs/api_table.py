"""Writes docs/api.md: which AscendC APIs the virtual NPU covers.

    make docs

What exists is asked of the compiler and the headers in ``ascendopt_tune/vnpu``; docs/api_names.csv and
docs/api_used.csv say what could exist. A limit stands beside its declaration: ``// Limit of NAME[, NAME]: text``.
"""

from __future__ import annotations

import csv
import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ascendopt_tune.build.toolkit import VNPU, host_compiler

DOCS = Path(__file__).resolve().parent
OUT = DOCS / "api.md"
INCLUDE, HOST_INCLUDE = VNPU / "include", VNPU / "host" / "include"
NOT_COVERED = INCLUDE / "ascendc" / "not_covered.h"
KERNEL_UNIT = VNPU.parent / "build" / "kernel.py"  # writes the GET_TILING_DATA family into each operator's unit

COVERED, LIMITED, REFUSED, ELSEWHERE = "covered", "covered, with limits", "**not covered**", "not on 2201"
USED = "used by operators of cann-ops, without a page of their own"
CUBE = ("cube", "cube groups", "high-level: matrix multiplication", "high-level: convolution")
OTHER_MODELS = ("register vector API", "tensor API (layouts)")  # their names live in namespaces of their own
_OTHER_CORES = "cube and mix kernels are not covered at this stage"
_CLASSES = {
    "LocalTensor": "LocalTensor<float>",
    "GlobalTensor": "GlobalTensor<float>",
    "TQue": "TQue<TPosition::VECIN, 1>",
    "TQueBind": "TQueBind<TPosition::VECIN, TPosition::VECOUT, 1>",
    "TBuf": "TBuf<TPosition::VECCALC>",
    "TBufPool": "TBufPool<TPosition::VECCALC>",
    "TensorDesc": "TensorDesc<float>",
}


@dataclass(frozen=True)
class Api:
    """One name. ``owner`` is its class, or ""; ``on_2201``: whether the documentation lists architecture 2201."""

    chapter: str
    owner: str
    name: str
    on_2201: bool

    @property
    def title(self) -> str:
        return f"{self.owner}::{self.name}" if self.owner else self.name


@dataclass(frozen=True)
class Status:
    state: str
    note: str = ""


def _rows(file: str) -> list[dict[str, str]]:
    with open(DOCS / file) as lines:
        return list(csv.DictReader(line for line in lines if not line.startswith("#")))


def apis() -> list[Api]:
    """Every name of the kernel side, in the order of the table."""
    found = [Api(r["chapter"], r["class"], r["name"], r["on_2201"] == "yes") for r in _rows("api_names.csv")]
    found += [Api(USED, r["class"], r["name"], True) for r in _rows("api_used.csv")]
    return [a for a in found if not a.chapter.startswith("host")]


def host_names() -> list[Api]:
    """Every name of the host side that has a page."""
    found = [Api(r["chapter"], r["class"], r["name"], r["on_2201"] == "yes") for r in _rows("api_names.csv")]
    return [a for a in found if a.chapter.startswith("host")]


@cache
def refusals() -> dict[str, str]:
    """Names that fail to compile with a message, and the macro of not_covered.h that makes it."""
    pairs = re.findall(r"^VNPU_(\w+)\((\w+)", NOT_COVERED.read_text(), re.MULTILINE)
    return {name: macro for macro, name in pairs}


@cache
def limits() -> dict[str, str]:
    """What stands beside declarations: ``// Limit of NAME[, NAME]: text``, going on in the comment lines that follow."""
    found: dict[str, str] = {}
    for header in sorted(INCLUDE.rglob("*.h")):
        for names, text in re.findall(
            r"^ *// Limit of ([\w:, ]+?): (.*(?:\n *//.*)*)", header.read_text(), re.MULTILINE
        ):
            words = " ".join(re.sub(r"\n *//", "\n", text).split()).rstrip(".")
            for name in re.split(r",\s*", names):
                found[name] = f"{found[name]}; {words}" if name in found else words
    return found


def _unit() -> str:
    """A translation unit with every header that a kernel may include."""
    library = sorted(p.relative_to(INCLUDE).as_posix() for p in (INCLUDE / "lib").rglob("*.h"))
    return "".join(f'#include "{h}"\n' for h in ("kernel_operator.h", *library))


def _compile(text: str, *options: str) -> str:
    """What the compiler writes (both outputs) about a translation unit."""
    command = [host_compiler(), "-std=c++17", "-w", f"-I{INCLUDE}", f"-I{VNPU}", "-x", "c++", *options, "-"]
    return subprocess.run(command, input=text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout


def _lines_in_error(text: str) -> set[int]:
    return {int(n) for n in re.findall(r"^<stdin>:(\d+):\d+: error:", _compile(text, "-fsyntax-only"), re.MULTILINE)}


@cache
def macros() -> frozenset[str]:
    text = _compile(_unit(), "-E", "-dM") + KERNEL_UNIT.read_text()
    return frozenset(re.findall(r"^#define (\w+)", text, re.MULTILINE))


def declared(names: Iterable[Api]) -> set[Api]:
    """Those that the headers declare, in namespace AscendC, in its class, globally or as a macro."""
    known = [a for a in names if a.name in macros() and not a.owner]
    asked = [a for a in names if a not in known]
    head = _unit() + "using namespace AscendC;\n"
    # One name per line, in a scope of its own: a line in error is a name that doesn't exist.
    missing = set(asked)
    for form in ("in_namespace", "globally"):
        left = [a for a in asked if a in missing]
        lines = []
        for i, a in enumerate(left):
            if a.owner:
                base = "AscendC::" + _CLASSES.get(a.owner, a.owner)
                scope = f"struct probe_{i} : {base} {{ using {base.replace('TPosition', 'AscendC::TPosition')}::{a.name}; }};"
                lines.append(scope.replace("AscendC::AscendC", "AscendC"))
            else:
                space = "AscendC::" if form == "in_namespace" else "::"
                lines.append(f"namespace probe_{i} {{ using {space}{a.name}; }}")
        first = head.count("\n") + 1
        wrong = _lines_in_error(head + "\n".join(lines) + "\n")
        missing -= {a for i, a in enumerate(left) if first + i not in wrong}
    return {*known, *(a for a in asked if a not in missing)}


def statuses() -> dict[Api, Status]:
    """The status of every name of the kernel side."""
    every = apis()
    exist = declared(every)
    vector = {a.name for a in every if a.chapter not in (*CUBE, *OTHER_MODELS) and a.on_2201 and a in exist}
    out = {}
    for a in every:
        refused = refusals().get(a.name) if not a.owner else None
        if a.chapter in CUBE:
            also = (
                "; forms for the Unified Buffer: see data movement" if a.chapter == "cube" and a.name in vector else ""
            )
            out[a] = Status(REFUSED, _OTHER_CORES + also) if a.on_2201 else Status(ELSEWHERE)
        elif a.chapter in OTHER_MODELS:
            out[a] = Status(ELSEWHERE)
        elif refused == "NOT_ON_2201" or (not a.on_2201 and (refused or a not in exist)):
            out[a] = Status(ELSEWHERE)
        elif not a.on_2201:
            out[a] = Status(COVERED, "declared here, though the documentation doesn't list 2201")
        elif refused or a not in exist:
            out[a] = Status(REFUSED)
        else:
            limit = limits().get(a.title, "")
            out[a] = Status(LIMITED if limit else COVERED, limit)
    return out


def host_statuses() -> dict[Api, bool]:
    """Whether a name of the host side occurs in a header there (host programs are plain C++: what is missing is told)."""
    folders = (HOST_INCLUDE, INCLUDE / "acl")
    text = "\n".join(p.read_text() for folder in folders for p in sorted(folder.rglob("*.h")))
    words = set(re.findall(r"\w+", text))
    return {a: a.name in words for a in host_names()}


def _table(rows: dict[Api, Status]) -> list[str]:
    lines = ["| API | status | |", "|---|---|---|"]
    merged: dict[Status, list[str]] = {}
    for a, s in rows.items():
        merged.setdefault(s, []).append(f"`{a.title}`")
    order = (COVERED, LIMITED, REFUSED, ELSEWHERE)
    for s in sorted(merged, key=lambda s: (order.index(s.state), s.note)):
        lines.append(f"| {', '.join(merged[s])} | {s.state} | {s.note} |")
    return lines


def page() -> str:
    """The text of docs/api.md."""
    found = statuses()
    count = {state: sum(s.state == state for s in found.values()) for state in (COVERED, LIMITED, REFUSED, ELSEWHERE)}
    on_2201 = len(found) - count[ELSEWHERE]
    cube = sum(s.note.startswith(_OTHER_CORES) for s in found.values())
    source = (DOCS / "api_names.csv").read_text().splitlines()[0]
    release = re.search(r"asc-devkit ([\d.]+)", source)
    assert release is not None
    lines = [
        "# AscendC APIs on the virtual NPU",
        "",
        "Generated by `make docs` from the headers in `ascendopt_tune/vnpu`; CI compares. The names are those of the API",
        f"documentation of asc-devkit {release[1]}, and what vector operators of cann-ops use beyond it. The virtual NPU models",
        "architecture 2201 (Ascend 910B, 910_93).",
        "",
        f"Of {on_2201} names that exist on 2201, {count[COVERED] + count[LIMITED]} are covered ({count[LIMITED]} of them with"
        f" limits), {count[REFUSED]} are not: {cube} of",
        "the cube core, where whole chapters wait, and "
        f"{count[REFUSED] - cube} others. {count[ELSEWHERE]} names exist on other architectures only.",
        "",
        "* **covered**: declared with the documented signature; computes the documented values; costs modelled time.",
        "* **covered, with limits**: what is missing is named. Using it is refused, at build time where types tell, else at",
        "  the launch.",
        "* **not covered**: a kernel that calls it doesn't build, and the message names the API.",
        "* **not on 2201**: the documentation lists it for other architectures only; a kernel that calls it doesn't build.",
        "",
        "The C API (`asc_*`), SIMT and AI CPU chapters are other programming models; none of them is covered.",
        "",
        "## In kernels",
    ]
    for chapter in dict.fromkeys(a.chapter for a in found):
        lines += ["", f"### {chapter[0].upper()}{chapter[1:]}", ""]
        lines += _table({a: s for a, s in found.items() if a.chapter == chapter})
    lines += ["", "## In host programs", ""]
    host = host_statuses()
    for chapter in dict.fromkeys(a.chapter for a in host):
        for state, there in ((COVERED, True), (REFUSED, False)):
            titles = [f"`{a.title}`" for a, exists in host.items() if a.chapter == chapter and exists == there]
            if titles:
                lines.append(f"* {chapter.removeprefix('host: ')}, {state}: {', '.join(titles)}.")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    OUT.write_text(page())
