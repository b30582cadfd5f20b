"""Handing over a timeline: the user's file appears whole or not at all."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from ..files import replacing


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
    with open(found, encoding="utf-8") as source:
        head = json.loads(source.readline() + "]}")
        source.seek(0)
        with replacing(path) as whole, open(whole, "w", encoding="utf-8") as file:
            shutil.copyfileobj(source, file)
    return SavedTrace(path, str(head["otherData"]["left_out"]))
