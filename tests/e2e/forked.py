"""What a forked process of the command line does. A module of its own: the child finds it by its name."""

from __future__ import annotations

import os
import sys


def command_line(arguments: list[str], env: dict[str, str], cwd: str, out: str, err: str) -> None:
    """A process of the command line from its first line on, but for what the fork server has imported."""
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    for path, stream in ((out, 1), (err, 2)):
        file = os.open(path, os.O_WRONLY)
        os.dup2(file, stream)
        os.close(file)
    sys.argv = ["ascendopt-tune", *arguments]
    from ascendopt_tune.cli import main

    main()
