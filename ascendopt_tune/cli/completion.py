"""``ascendopt-tune completion``: what a shell needs to complete commands, options and operators."""

from __future__ import annotations

from typing import Annotated

import typer

from ..errors import SettingsError

_PROGRAM = "ascendopt-tune"
VARIABLE = f"_{_PROGRAM}_complete".replace("-", "_").upper()  # as typer derives it from the program's name


def shells() -> list[str]:
    """The shells there is a script for."""
    return ["bash", "zsh", "fish"]


def completion(
    shell: Annotated[str, typer.Argument(metavar="bash|zsh|fish", help="Whose script.", autocompletion=shells)],
) -> None:
    """Print the script that makes a shell complete commands, options and operators: to be evaluated, or kept in a file.

    Bash: a line in ~/.bashrc evaluates it. Zsh: a file _ascendopt-tune in a folder of fpath. Fish: a file in
    ~/.config/fish/completions.
    """
    from typer._completion_shared import get_completion_script

    if shell not in shells():
        raise SettingsError(f"there is no completion for the shell {shell!r}.", f"Give one of {', '.join(shells())}.")
    print(get_completion_script(prog_name=_PROGRAM, complete_var=VARIABLE, shell=shell))


def answer_shells() -> None:
    """Before the application runs: lets it answer what such a script asks."""
    from typer._completion_classes import completion_init

    completion_init()
