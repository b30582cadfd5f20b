"""``ascendopt-tune bank``: build, search, show, merge, export, import and plot experience, and survey motifs."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from ..bank.bank import Records
from ..bank.exchange import read_any, write_file
from ..bank.experience import Experience
from ..bank.symptoms import symptoms
from ..build.toolkit import find
from ..errors import BankError, CaseError, NoWorkingCandidate
from ..evaluate.evaluator import Evaluator
from ..evaluate.gate import Gate
from ..nouns.chip import load_chip
from ..nouns.outcome import Timed
from ..nouns.run_options import RunOptions
from ..report.text import json_text
from ..search.kernel.reading.kernel_program import KernelProgram
from . import bank_build, bank_survey, examples, options
from .bank_build import Cases, To, open_bank
from .flags import Only, grouped
from .subject import find_operator

app = typer.Typer(
    help="The experience bank: what optimizations were worth, measured, found again by a slow kernel's symptoms.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
)

# -- search and show --------------------------------------------------------------------------------------------------


@grouped
def search(
    how: Annotated[RunOptions, Only("chip", "target")],
    text: Annotated[str | None, typer.Argument(help="What the slow kernel shows, in plain words.")] = None,
    op: Annotated[str | None, typer.Option("--op", help="Instead of a text: run this operator and ask for it.")] = None,
    case: Cases = [],  # noqa: B006
    k: Annotated[int, typer.Option("-k", min=1, help="How many.")] = 3,
    dtype: Annotated[str | None, typer.Option("--dtype", help="Only of this dtype.")] = None,
    motifs: Annotated[bool, typer.Option("--motifs/--all", help="The best of each motif only.")] = True,
    bank: To = None,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Find experience by symptoms: those of a text, or of an operator that is run and diagnosed."""
    if (text is None) == (op is None):
        raise BankError("search asks with a text or with --op.", "Give one of them.")
    query = text if text is not None else _diagnosed(str(op), case, how)
    found = open_bank(bank).search(query, k, dtype=dtype, one_per_motif=motifs)
    if json:
        results = [{"score": score, **e.to_json()} for e, score in found]
        print(json_text({"query": query, "count": len(found), "results": results}))
        return
    if op is not None:
        print(f"query: {query}\n")
    if not found:
        print("the bank has nothing that fits")
    for e, score in found:
        print(f"{score:.3f}  {e.id[:12]}  {e.title}\n       {_line(e)}")


def _diagnosed(op: str, cases: Sequence[str], how: RunOptions) -> str:
    """The query an operator's run leads to. Raises NoWorkingCandidate when it doesn't pass the gate."""
    options.check_cache_folder()
    if len(cases) > 1:
        raise CaseError("search asks for one case.", "Give --case once.")
    toolkit, name = find(how.target), how.chip
    print(f"building, running and checking {op} ...", file=sys.stderr)
    with Evaluator(toolkit, name) as evaluator:
        operator = find_operator(options.OperatorFlags(op))
        text = cases[0] if cases else bank_build.example_cases(operator)[0]
        subject = bank_build.subject_of(operator, text, evaluator)
        result = Gate(operator, subject.case, evaluator).evaluate(operator.baseline)
        if not isinstance(result.outcome, Timed):
            raise NoWorkingCandidate(f"{op} does not pass the gate: {result.outcome.reason}.")
        key = result.tiling.tiling_key if result.tiling is not None else None
        pair = operator.baseline
        kernel = KernelProgram(pair.kernel, tiling=pair.tiling, auto_sync=operator.auto_sync, tiling_key=key)
        return symptoms(result.outcome.profile, load_chip(name), kernel)


def _line(e: Experience) -> str:
    worth = f"{e.speedup:.2f}x" if e.speedup is not None else "not measured"
    where = f"{e.operator} {e.dtype}, {e.regime}, {e.chip} ({e.target})" if e.operator else e.provenance.source
    uses = f", helped {e.helped} of {e.applied} times" if e.applied else ""
    return f"{e.motif or 'imported'}: {worth} on {where}{uses}"


def show(
    name: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="The beginning of an id; default: a table.")
    ] = None,
    bank: To = None,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Show one experience with its diff and the command that measures it again, or what the bank holds."""
    store = open_bank(bank)
    if name is not None:
        e = store.get(name)
        print(json_text(e.to_json()) if json else _page(e))
        return
    everything = list(store)
    positive = [e for e in everything if e.kind == "positive"]
    motifs = sorted({e.motif for e in positive})
    if json:
        lines = [{"id": e.id, "motif": e.motif, "kind": e.kind, "speedup": e.speedup} for e in everything]
        count = {"experiences": len(positive), "validated": sum(e.validated for e in positive), "motifs": len(motifs)}
        print(json_text({**count, "negative": len(everything) - len(positive), "rows": lines}))
        return
    table = Table("motif", "experiences", "operators", "dtypes", "chips", "speedup", "did no harm")
    for motif in motifs:
        rows = [e for e in positive if e.motif == motif]
        speedups = sorted(e.speedup for e in rows if e.speedup is not None)
        table.add_row(
            motif or "(imported)",
            str(len(rows)),
            *(str(len({getattr(e, n) for e in rows} - {""})) for n in ("operator", "dtype", "chip")),
            f"{speedups[0]:.2f} .. {speedups[-1]:.2f}" if speedups else "-",
            str(sum(e.kind == "negative" and e.motif == motif for e in everything)),
        )
    Console(highlight=False, width=120).print(table)
    validated = sum(e.validated for e in positive)
    print(
        f"{len(positive)} experiences ({validated} measured and reproducible) of {len(motifs)} motifs; "
        f"{len(everything) - len(positive)} negative ones"
    )


def _page(e: Experience) -> str:
    lines = [f"{e.title}", f"  id            {e.id}", f"  {_line(e)}"]
    for label, text in (
        ("kind", f"{e.kind}{f': {e.reason}' if e.reason else ''}"),
        ("place", e.site),
        ("case", e.case),
        ("description", e.description),
        ("bottleneck", e.bottleneck),
        ("preconditions", e.preconditions),
        ("from", f"{e.provenance.source} {e.provenance.version} {e.provenance.toolkit}".strip()),
        ("measure again", e.provenance.command),
    ):
        if text:
            lines.append(f"  {label:<13} {text}")
    return "\n".join([*lines, "", e.diff])


# -- merge, export, import, plot --------------------------------------------------------------------------------------


def _merged(bank: Path | None, sources: Sequence[Path], json: bool) -> None:
    store, fresh = open_bank(bank), Records()
    for source in sources:
        fresh = fresh | store.merge(read_any(source))
    if json:
        print(json_text({"added": len(fresh.experiences), "uses": len(fresh.uses), "ids": sorted(fresh.experiences)}))
    else:
        print(f"{len(fresh.experiences)} experiences and {len(fresh.uses)} uses added to {store.root}")


Sources = Annotated[list[Path], typer.Argument(metavar="FILE", help="Files, or folders of banks.")]


def merge(sources: Sources, bank: To = None, json: options.Json = False, debug: options.Debug = False) -> None:
    """Add what other banks have; twice, or in another order, is the same."""
    _merged(bank, sources, json)


def import_(sources: Sources, bank: To = None, json: options.Json = False, debug: options.Debug = False) -> None:
    """Add experience from files: of `bank export`, or JSON lists of optimization points (docs/bank.md)."""
    _merged(bank, sources, json)


def export(
    file: Annotated[Path, typer.Argument(help="The file to write.")],
    motif: Annotated[list[str], typer.Option("--motif", help="Only this motif; repeatable.")] = [],  # noqa: B006
    validated: Annotated[bool, typer.Option("--validated", help="Only what was measured and is reproducible.")] = False,
    bank: To = None,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Write the bank, all layers merged, to one file that `merge` and `import` read."""
    store = open_bank(bank)
    chosen = [e for e in store if (not motif or e.motif in motif) and (e.validated or not validated)]
    count = write_file(file, store.records(), chosen)
    print(json_text({"file": str(file), "experiences": count}) if json else f"{count} experiences: {file}")


def plot(
    file: Annotated[Path, typer.Argument(help="The HTML file to write.")],
    clusters: Annotated[int | None, typer.Option("--clusters", min=1, help="Default: one for each motif.")] = None,
    bank: To = None,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Draw the bank: texts embedded, projected by PCA, clustered by k-means, clusters named by motif."""
    from ..bank.landscape import landscape  # faiss takes a while to import
    from ..report.landscape import write_landscape

    options.check_file(file, "FILE")
    found = [e for e in open_bank(bank) if e.kind == "positive"]
    if len(found) < 2:
        raise BankError(f"the bank has {len(found)} experiences, and a picture needs two.", "Build or import some.")
    drawn = landscape(found, clusters)
    write_landscape(file, drawn)
    sizes = Counter(drawn.clusters)
    if json:
        rows = [{"name": n, "size": sizes[i]} for i, n in enumerate(drawn.names)]
        print(json_text({"file": str(file), "variance_shown": drawn.shown, "clusters": rows}))
    else:
        print(f"{len(found)} experiences in {len(drawn.names)} clusters: {file}")


app.command("build", epilog=bank_build.EXAMPLES)(bank_build.build_bank)
app.command("search", epilog=examples.of("bank search"))(search)
app.command("show", epilog=examples.of("bank show"))(show)
app.command("merge", epilog=examples.of("bank merge"))(merge)
app.command("export", epilog=examples.of("bank export"))(export)
app.command("import", epilog=examples.of("bank import"))(import_)
app.command("plot", epilog=examples.of("bank plot"))(plot)
app.command("survey", epilog=bank_survey.EXAMPLES)(bank_survey.survey)
