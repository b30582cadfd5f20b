"""The timeline of one launch as a file that people open: Chrome trace format, with the user's file and line.

The virtual NPU writes it with offsets in the kernel's binary (``args.pc``); here they become ``args.source``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from .symbolize import locate

FILE_BYTES = 256 << 20  # more than the longest timeline the virtual NPU writes (vnpu/core/timeline.h)


def add_sources(raw: Path, out: Path, binary: Path, foreign: Sequence[Path]) -> bool:
    """Writes the timeline ``raw`` to ``out``, an event per line; False when there is none.

    Args:
        binary: the kernel that ran.
        foreign: folders whose source lines are not the user's.
    """
    if not raw.is_file() or raw.is_symlink():
        return False
    document = json.loads(raw.read_text(encoding="utf-8"))
    events = document["traceEvents"]
    offsets = {e["args"]["pc"] for e in events if e.get("args", {}).get("pc") is not None}
    places = locate(binary, offsets, foreign)
    for event in events:
        place = places.get(event.get("args", {}).pop("pc", None))
        if place is not None:
            event["args"]["source"] = place
    head = json.dumps({k: v for k, v in document.items() if k != "traceEvents"})[:-1]
    with open(out, "w", encoding="utf-8") as file:
        file.write(f'{head}, "traceEvents": [\n')
        file.write(",\n".join(json.dumps(e, separators=(",", ":")) for e in events))
        file.write("\n]}\n")
    raw.unlink()
    return True
