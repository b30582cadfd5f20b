"""Handing over a timeline: the user's file appears whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class SavedTrace:
    """``left_out``: what of the run the file doesn't show, in words; "" when it shows everything."""

    path: Path
    left_out: str


def save_trace(found: Path, path: Path) -> SavedTrace:
    """Copies the timeline ``found`` (evaluate/timeline.py) to ``path``, in one step at the end.

    Raises:
        OSError: it can't be written; ``path`` is then as it was.
    """
    with open(found) as source:
        head = json.loads(source.readline() + "]}")
        source.seek(0)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=".trace-", delete=False) as file:
            try:
                shutil.copyfileobj(source, file)
                file.close()
                os.chmod(file.name, 0o666 & ~_umask())
                os.replace(file.name, path)
            except BaseException:  # also Ctrl-C
                os.unlink(file.name)
                raise
    return SavedTrace(path, str(head["otherData"]["left_out"]))


def _umask() -> int:
    """The process's mask of file permissions, which can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
