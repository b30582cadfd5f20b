"""``python -m ascendopt_tune``, and the command ``ascendopt-tune``."""

import sys


def main() -> None:
    """Entry point; Ctrl-C has one answer from the first import to the end."""
    try:
        from .cli import main as command

        command()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
