"""Writes a chip file: facts as they are, constants with interval and source, residuals as comments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..nouns.chip import Chip, Constant

_TABLES = ("instructions.", "cube_instructions.")


def chip_text(chip: Chip, constants: Mapping[str, Constant], comments: Sequence[str]) -> str:
    """The text of a chip file that inherits nothing.

    Args:
        chip: whose facts are written, and constants that ``constants`` doesn't have.
        comments: lines without their ``#``, put first.
    """
    known = {**chip.constants, **constants}
    sections: dict[str, list[str]] = {}
    rows: dict[str, dict[str, dict[str, Constant]]] = {table: {} for table in _TABLES}
    for key, value in chip.values.items():
        section, _, name = key.partition(".")
        if key == "chip.inherits":
            continue
        table = next((t for t in _TABLES if key.startswith(t)), "")
        if table:
            row, _, part = key.removeprefix(table).rpartition(".")
            if key in known:
                rows[table].setdefault(row, {})[part] = known[key]
            continue
        sections.setdefault(section, []).append(f"{name} = {_constant(known[key]) if key in known else _plain(value)}")
    lines = [*(f"# {line}".rstrip() for line in comments), ""]
    for section, entries in sections.items():
        lines += [f"[{section}]", *entries, ""]
    for table, known_rows in rows.items():
        lines += [f"[{table[:-1]}]", *(f"{row} = {_row(parts)}" for row, parts in known_rows.items()), ""]
    return "\n".join(lines)


def _number(value: float) -> str:
    return f"{value:.6g}"


def _text(value: str) -> str:
    return '"' + value.replace("\\", "").replace('"', "'") + '"'


def _plain(value: str | int | float) -> str:
    return _text(value) if isinstance(value, str) else repr(value)


def _constant(c: Constant) -> str:
    numbers = (f"{name} = {_number(value)}" for name, value in (("value", c.value), ("low", c.low), ("high", c.high)))
    return f"{{ {', '.join(numbers)}, source = {_text(c.source)} }}"


def _row(parts: Mapping[str, Constant]) -> str:
    """A row of the table has one source: that of its first part."""
    fields = [f"{part} = [{_number(c.value)}, {_number(c.low)}, {_number(c.high)}]" for part, c in parts.items()]
    return "{ " + ", ".join([*fields, f"source = {_text(next(iter(parts.values())).source)}"]) + " }"
