"""The high-level Matmul of the user's own CANN or asc-devkit in place of the virtual NPU's (ASCENDOPT_MATMUL_HEADERS).

Its headers are compiled where they are. What they include besides is the virtual NPU's: a folder of links leads to the
headers of the Matmul, and has a line that includes kernel_operator.h in place of every other one. Names that they take
from CANN's inner headers are in ``vnpu/include/vnpu_matmul_headers.h``. Nothing of those headers is copied.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ..errors import ToolchainError
from ..files import locked, read_source
from ..settings import settings

_ENTRY = "include/adv_api/matmul/matmul.h"
_MIXED = "impl/adv_api/detail/kfc/kernel_kfc.h"  # what mixed kernels need besides; older headers may have none
_OWN = (
    "include/adv_api/matmul/",
    "impl/adv_api/detail/matmul/",
    "impl/adv_api/detail/kfc/",
    "impl/adv_api/tiling/matmul/",
)
# Where a CANN has it that is laid out in another way (kernels include lib/matmul_intf.h from there).
_OLD = "compiler/tikcpp/tikcfw/lib/matmul_intf.h"
# Where an #include of them is looked up, in the checkout as in the folder of links.
_FOLDERS = ("", "include", "include/adv_api", "impl/adv_api", "include/basic_api", "impl/basic_api")
_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
_FORWARD = '#include "kernel_operator.h"\n'
_NEXT = (
    "Name a checkout of asc-devkit, or a CANN that has its folder asc, with --matmul-headers or "
    "ASCENDOPT_MATMUL_HEADERS, or leave it out: the virtual NPU has a Matmul of its own."
)


@dataclass(frozen=True)
class MatmulHeaders:
    """``source``: where they are. ``links``: the folder of links. ``digest``: of their contents, for keys.
    ``license``: its name, as their folder says it."""

    source: Path
    links: Path
    digest: str
    license: str

    @property
    def options(self) -> tuple[str, ...]:
        """Of the compiler."""
        return "-DASCENDOPT_MATMUL_HEADERS", *(f"-I{self.links / folder}" for folder in _FOLDERS)

    @property
    def folders(self) -> list[Path]:
        """What the compiler has to read."""
        return [self.links, self.source / "include", self.source / "impl"]


def chosen(folder: Path) -> MatmulHeaders | None:
    """Those that the settings name, or None; their folder of links is in ``folder``, beside the toolkit.

    Raises:
        ToolchainError: there are none at that place, or the folder of links can't be written.
    """
    place = settings().matmul_headers
    return None if place is None else matmul_headers(place.resolve(), folder)


@cache
def matmul_headers(source: Path, folder: Path) -> MatmulHeaders:
    """Those of ``source``, a checkout or a CANN; makes the folder of links in ``folder`` on first use, and says so.

    Raises:
        ToolchainError: as :func:`chosen`.
    """
    source = _root(source)
    own, others = _reached(source)
    digest = hashlib.sha256()
    for name, text in sorted(own.items()):
        digest.update(f"{name}\0{text}\0".encode())
    name = hashlib.sha256(f"{source}\0{digest.hexdigest()}\0{sorted(others)}".encode()).hexdigest()[:16]
    found = MatmulHeaders(source, folder / f"matmul-{name}", digest.hexdigest()[:16], _license(source))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder / f"matmul-{name}.lock"):
            if not found.links.exists():
                _link(found, own, others)
                print(
                    f"Matmul of {source}, under its license: {found.license}. "
                    "Nothing of it is copied, and nothing of it goes into what is shipped.",
                    file=sys.stderr,
                )
    except OSError as e:
        raise ToolchainError(
            f"the links to the Matmul of {source} can't be written to {folder}: {e.strerror or e}.",
            "Point ASCENDOPT_CACHE_DIR at a folder you can write.",
        ) from e
    return found


def _root(place: Path) -> Path:
    """Where ``include`` and ``impl`` are: there, or in the folder ``asc`` of a CANN, which may be its machine's."""
    for folder in (place, place / "asc", place / f"{platform.machine()}-linux" / "asc"):
        if (folder / _ENTRY).is_file():
            return folder.resolve()
    if (place / _OLD).is_file():
        raise ToolchainError(f"the Matmul of {place} is laid out in another way than asc-devkit's: {_OLD}.", _NEXT)
    raise ToolchainError(f"there is no Matmul in {place}: {_ENTRY} is missing.", _NEXT)


def _license(source: Path) -> str:
    try:
        lines = [line.strip() for line in read_source(source / "LICENSE").splitlines() if line.strip()]
    except OSError:
        lines = []
    return lines[0] if lines else "no file LICENSE there says which"


def _reached(source: Path) -> tuple[dict[str, str], set[str]]:
    """(texts of the Matmul's own headers, names of the others that they include), by their paths in ``source``."""
    own: dict[str, str] = {}
    others: set[str] = set()
    todo = [_ENTRY] + [_MIXED] * (source / _MIXED).is_file()
    while todo:
        name = todo.pop()
        if name in own or name in others:
            continue
        if not name.startswith(_OWN):
            others.add(name)
            continue
        try:
            own[name] = read_source(source / name)
        except OSError as e:
            raise ToolchainError(f"{source / name} can't be read: {e.strerror or e}.", _NEXT) from e
        todo += [n for n in (_find(source, name, text) for text in _INCLUDE.findall(own[name])) if n is not None]
    return own, others


def _find(source: Path, includer: str, text: str) -> str | None:
    """The path in ``source`` of what ``includer`` includes as ``text``; None: it is the virtual NPU's."""
    for folder in (os.path.dirname(includer), *_FOLDERS):
        name = os.path.normpath(os.path.join(folder, text))
        if not name.startswith("..") and (source / name).is_file():
            return name
    return None


def _link(found: MatmulHeaders, own: dict[str, str], others: set[str]) -> None:
    with tempfile.TemporaryDirectory(dir=found.links.parent, prefix="building-") as work:
        made = Path(work) / "links"
        for name in (*own, *others):
            (made / name).parent.mkdir(parents=True, exist_ok=True)
        for name in own:
            (made / name).symlink_to(found.source / name)
        for name in others:
            (made / name).write_text(_FORWARD, encoding="utf-8")
        os.rename(made, found.links)
