"""``python -m ascendopt_tune``, and the command ``ascendopt-tune``."""

import os
import sys


def main() -> None:
    """Entry point; Ctrl-C has one answer from the first import to the end."""
    # References are computed by torch beside compilers and launches: its threads would wait for each other by spinning
    # (a tuning of one evaluation, [64, 1024], on two busy processors: 14 s of them for 9). What torch doesn't split
    # (32 Ki elements) gains nothing, and an idle machine was not asked. OpenMP reads this when torch is imported.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        from .cli import main as command

        command()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
