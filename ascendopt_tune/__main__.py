"""``python -m ascendopt_tune``, and the command ``ascendopt-tune``."""

import os
import sys


def main() -> None:
    """Entry point; Ctrl-C has one answer from the first import to the end."""
    # References are computed by torch beside compilers and launches: its threads would wait for each other by spinning,
    # a third of a short run's processor time on two busy processors. OpenMP reads this when torch is imported.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        from .cli import main as command

        command()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
