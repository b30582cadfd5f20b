"""``python -m ascendopt_tune``: the same as the command ``ascendopt-tune``."""

from .cli import main

main()
