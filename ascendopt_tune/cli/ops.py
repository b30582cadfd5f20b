"""``ascendopt-tune ops``: the operators of the registry, with signatures."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from ..build.toolkit import virtual
from ..evaluate.evaluator import Evaluator
from ..registry import load_operator, operator_names
from . import options


def ops(json: options.Json = False, debug: options.Debug = False) -> None:
    """List the registry: name, signature (from the operator definition), what it computes."""
    rows = []
    with Evaluator(virtual()) as evaluator:
        for name in operator_names():
            operator = load_operator(name)
            signature = evaluator.describe(operator, operator.baseline).signature
            rows.append((name, signature.to_text(), str(operator.settings.get("summary", ""))))
    if json:
        options.print_json({"operators": [dict(zip(("name", "signature", "summary"), r, strict=True)) for r in rows]})
        return
    table = Table("operator", "signature", "summary")
    for row in rows:
        table.add_row(*(text.replace("[", r"\[") for text in row))
    Console().print(table)
