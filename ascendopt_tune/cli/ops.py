"""``ascendopt-tune ops``: the operators of the registry, with signatures."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

from rich.console import Console

from ..build.toolkit import virtual
from ..evaluate.evaluator import Evaluator
from ..report.lines import print_lines
from ..report.text import json_text
from ..sources.registry import load_operator, operator_names
from . import options


def ops(json: options.Json = False, debug: options.Debug = False) -> None:
    """List the operators that ship with the project: name, what it computes, signature (from its definition)."""
    options.check_cache_folder()
    operators = [load_operator(name) for name in operator_names()]
    print(f"reading the definitions of {len(operators)} operators (compiled on first use) ...", file=sys.stderr)
    with Evaluator(virtual()) as evaluator, ThreadPoolExecutor(evaluator.workers) as pool:
        signatures = [d.signature.to_text() for d in pool.map(evaluator.describe, operators)]
    rows = [
        {"name": operator.name, "signature": signature, "summary": str(operator.settings.get("summary", ""))}
        for operator, signature in zip(operators, signatures, strict=True)
    ]
    if json:
        print(json_text({"operators": rows}))
        return
    console = Console(highlight=False)
    for row in rows:
        print_lines(console, f"{row['name']}  {row['summary']}")
        print_lines(console, f"    {row['signature']}")
