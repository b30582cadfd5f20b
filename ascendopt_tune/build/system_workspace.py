"""The system's part of a kernel's workspace, for kernels that ask for it without having been told.

CANN's operator compiler tells each kernel before its first statement (``compile_op.py`` of asc-devkit:
``SetSysWorkspaceForce(workspace)``), so some ask by ``GetSysWorkSpacePtr`` and return where there is none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_ASKS = re.compile(r"\bGetSysWorkSpacePtr\s*\(")
_SAYS = re.compile(r"\bSetSysWork[sS]pace\w*\s*\(")
_HANDED_ON = re.compile(r"\bREGIST_MATMUL_OBJ\s*\([^;]*;")  # where nothing is stored


def with_system_workspace(kernel: Mapping[str, str], main: str, entry: str) -> dict[str, str]:
    """``kernel`` with a first statement in ``entry`` that says where its workspace is, if it is needed.

    ``main``: the file that defines it. An operator's kernel has its workspace before its tiling, the last parameter.
    """
    files = dict(kernel)
    asked = any(_ASKS.search(_HANDED_ON.sub(" ", text)) for text in files.values())
    if not asked or any(_SAYS.search(text) for text in files.values()):
        return files
    definition = re.compile(rf"\bvoid\s+{re.escape(entry)}\s*\(([^(){{}};]*)\)\s*\{{")
    files[main] = definition.sub(lambda m: m[0] + _said(m[1]), files[main])
    return files


def _said(parameters: str) -> str:
    names = [words[-1] for part in parameters.split(",") if (words := re.findall(r"\w+", part))]
    return f" AscendC::SetSysWorkspaceForce({names[-2]});" if len(names) > 1 else ""
