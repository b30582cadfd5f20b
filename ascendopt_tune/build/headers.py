"""Headers that only lead to another one: names under which operators include what the virtual toolkit has elsewhere."""

from __future__ import annotations

import tomllib
from pathlib import Path, PurePosixPath


def forwarding_headers(listed: Path) -> dict[str, str]:
    """Texts by the header's path in the toolkit's include folder, made from ``vnpu/forwarding.toml``."""
    entries = tomllib.loads(listed.read_text())["forward"]
    return {
        str(PurePosixPath(folder, name)): f'#pragma once\n// {entry["why"]}.\n#include "{entry["to"]}"\n'
        for entry in entries
        for folder in entry.get("folders", [""])
        for name in entry["names"]
    }


def write_forwarding_headers(listed: Path, include: Path) -> None:
    """Writes them below ``include``; raises FileExistsError where there is a header of that name."""
    for name, text in forwarding_headers(listed).items():
        header = include / name
        header.parent.mkdir(parents=True, exist_ok=True)
        with header.open("x") as file:
            file.write(text)
