"""What is wrong with a program of the tile language: always file, line and the next step."""

from __future__ import annotations

from ..errors import AscendOptError


class DslError(AscendOptError):
    """A program breaks a rule of the language (docs/dsl.md), when it is read or when it is interpreted.

    Args:
        message: what is wrong, with the value.
        hint: the next step, a full sentence.
        file: the user's file.
        line: its line, from 1.
    """

    def __init__(self, message: str, hint: str = "", file: str = "", line: int = 0) -> None:
        super().__init__(message, hint)
        self.args = (message, hint, file, line)
        self.file = file
        self.line = line

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}: " if self.line else ""
