"""Text files are UTF-8 whatever the locale is: no place of the package leaves that to the machine."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import ascendopt_tune

PACKAGE = Path(ascendopt_tune.__file__).parent
#: What the system itself writes or reads, and what is plain ASCII by what it is: the toolkit's own recipe (a change of
#: which makes another toolkit) and a peer's process.
PLAIN = {
    "build/toolkit.py", "build/libraries.py", "build/headers.py", "bench/peers.py", "bench/openevolve_worker.py",
    "evaluate/limits.py", "evaluate/sandbox.py",
}  # fmt: skip


def left_open(tree: ast.AST) -> Iterator[int]:
    """Lines that open a text file and don't say how its characters are written."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or any(k.arg == "encoding" for k in node.keywords):
            continue
        function = node.func
        name = function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
        owner = function.value if isinstance(function, ast.Attribute) else None
        modes = [a.value for a in (*node.args, *(k.value for k in node.keywords)) if isinstance(a, ast.Constant)]
        binary = any(isinstance(mode, str) and "b" in mode and len(mode) < 4 for mode in modes)
        module = isinstance(owner, ast.Name) and owner.id in ("os", "tarfile", "gzip", "Bank")
        method = isinstance(function, ast.Attribute) and name in ("read_text", "write_text")
        if method or (name == "open" and node.args and not binary and not module):
            yield node.lineno


def test_every_text_file_says_how_it_is_written() -> None:
    found = [
        f"{path.relative_to(PACKAGE)}:{line}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if str(path.relative_to(PACKAGE)) not in PLAIN
        for line in left_open(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert [place for place in found if not place.startswith("build/shipped.py")] == []
    assert len(found) == 1  # /proc/cpuinfo


def test_the_check_finds_what_it_looks_for() -> None:
    text = "open(p)\nopen(p, 'rb')\np.read_text()\np.write_text(t, encoding='utf-8')\np.open('a')\nos.open(p, 0)\n"
    assert list(left_open(ast.parse(text))) == [1, 3, 5]
