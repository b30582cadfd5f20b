"""``ascendopt-tune``, which sends itself a signal when it says something: at that moment on any machine, however busy.

``python stopping.py SIGINT TEXT,TEXT ARGUMENTS...``: one signal when standard error has the first text, and one more
when it has the next one after that.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence


def command(number: signal.Signals, at: Sequence[str], arguments: Sequence[str]) -> list[str]:
    assert not any("," in text for text in at)
    return [sys.executable, __file__, number.name, ",".join(at), *arguments]


def interrupted(at: Sequence[str], arguments: Sequence[str], **how: object) -> subprocess.CompletedProcess[str]:
    """The command with a Ctrl-C whenever it says the next text of ``at``."""
    return subprocess.run(  # type: ignore[call-overload, no-any-return]
        command(signal.SIGINT, at, arguments),
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        # A shell starts background jobs with SIGINT ignored, and a Python that finds it ignored leaves it so.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        **how,
    )


def _main() -> None:
    number, at = signal.Signals[sys.argv[1]], sys.argv[2].split(",")
    sys.argv = ["ascendopt-tune", *sys.argv[3:]]
    from ascendopt_tune.cli import failure, main

    write, said = failure._Progress.write, ""

    def heard(stream: failure._Progress, text: str, /) -> int:
        nonlocal said
        count = write(stream, text)
        stream.flush()
        said += text
        if at and at[0] in said:
            said = said.partition(at.pop(0))[2]
            os.kill(os.getpid(), number)
        return count

    failure._Progress.write = heard  # type: ignore[method-assign]
    main()


if __name__ == "__main__":
    _main()
