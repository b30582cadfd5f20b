"""For how many of cann-ops' operators each rule of Stage I has a proposal: the numbers of docs/search.md.

``ASCENDOPT_CANN_OPS=<checkout> python tests/rule_survey.py``; some minutes. Nothing is compiled or run.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections import Counter
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent / "vnpu"), str(Path(__file__).parent / "unit")]

import cann_ops  # noqa: E402
from test_rule_table import apply  # noqa: E402

from ascendopt_tune.search.tiling.rules import RULES  # noqa: E402
from ascendopt_tune.settings import settings  # noqa: E402
from ascendopt_tune.sources.project import load_project  # noqa: E402


def main() -> None:
    root = settings().cann_ops
    if root is None:
        sys.exit("ASCENDOPT_CANN_OPS is not set.")
    tables = [importlib.import_module(f"cann_ops.{m.name}") for m in pkgutil.iter_modules(cann_ops.__path__)]
    names = sorted({row.path for table in tables for row in getattr(table, "ROWS", ())})
    counts: Counter[str] = Counter()
    for name in names:
        pair = load_project(root / "src" / name).baseline
        for rule in RULES:
            counts[rule.__name__] += bool(apply(rule.__name__, dict(pair.tiling), dict(pair.kernel)))
    print(f"{len(names)} operators")
    for rule, count in counts.most_common():
        print(f"{rule:16} {count}")


if __name__ == "__main__":
    main()
