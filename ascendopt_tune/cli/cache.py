"""``ascendopt-tune cache ...``: look into the store of results, ship it, and keep it tidy."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from .. import paths
from ..build.toolkit import find
from ..deploy import importing, upkeep
from ..errors import CacheError
from ..evaluate.evaluator import Evaluator
from ..nouns.run_options import RunOptions
from ..report.text import counted, json_text, time_word
from ..settings import settings
from ..sources.specification import specification
from ..store import archive
from ..store.bundle import Bundle
from ..store.cache import Cache, EntrySummary, Key
from ..store.entry import Provenance, folder_reader, read_document
from . import examples, options
from .flags import Only, grouped
from .subject import find_operator, make_subject

app = typer.Typer(
    name="cache",
    help="Look into the store of results, ship it to other machines, and keep it tidy.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
)

_Operator = Annotated[str | None, typer.Option("--operator", help="Only this operator's results.")]


@app.command("list", epilog=examples.of("cache list"))
def list_entries(
    operator: _Operator = None,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """List every result of the writable cache and of each layer."""
    cache = Cache()
    rows = sorted(cache.items(operator), key=lambda s: (s.key.operator, s.key.case, s.key.chip))
    if json:
        print(json_text({"root": str(cache.root), "layers": [str(p) for p in cache.layers], "entries": _rows(rows)}))
        return
    for s in rows:
        times = f"{s.baseline_us:.2f} -> {s.best_us:.2f} us {time_word(s.key.target)}, {s.speedup_text}"
        where = "" if s.folder.is_relative_to(cache.root) else f"  [{s.folder.parents[2]}]"
        print(f"{s.key.hash[:12]}  {times:38}  {s.key.operator} on {s.key.chip}: {s.case}{where}")
    print(f"{len(rows)} results; the writable cache is {cache.root}")


@app.command("show", epilog=examples.of("cache show"))
def show(
    key: Annotated[str, typer.Argument(metavar="KEY", help="The first digits of a result's key (cache list).")],
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Show one result: the call, both profiles, what was changed, and where it comes from."""
    summary = one_result(Cache(), key)
    document = read_document(folder_reader(summary.folder))
    if json:
        print(json_text({"folder": str(summary.folder), **document}))
        return
    word = time_word(summary.key.target)
    print(f"{summary.key.operator} on {summary.key.chip} ({summary.key.target}): {summary.case}")
    print(f"folder: {summary.folder}")
    print(f"{summary.baseline_us:.2f} -> {summary.best_us:.2f} us {word}, {summary.speedup_text}")
    for change in document["provenance"]["changes"] or ["nothing: the pair as written is the best"]:
        print(f"  {change}")
    made = document["provenance"]
    search = Provenance(**{"ended": "", **made}).search_text
    print(f"made {made['created']} with {search}, seed {made['seed']}")
    print(f"toolkit {summary.key.toolkit}")
    print(f"checked against {made['reference']}: {made['checks']} outputs")


@app.command("explain", epilog=examples.of("cache explain"))
@grouped
def explain(
    how: Annotated[RunOptions, Only("chip", "target")],
    op: options.Op = None,
    input: options.Input = [],  # noqa: B006
    output: options.Output = [],  # noqa: B006
    attr: options.Attr = [],  # noqa: B006
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Tell whether a call would be answered from the cache, and if not, what differs from the closest result."""
    operator = find_operator(options.OperatorFlags(op))
    toolkit = find(how.target)
    with Evaluator(toolkit, how.chip, workers=1) as evaluator:
        subject = make_subject(operator, evaluator, options.CaseFlags(input=input, output=output, attr=attr))
    key = Key.of(operator, subject.case, chip=how.chip, target=toolkit.target, toolkit=toolkit.version)
    cache = Cache()
    found = cache.explain(key)
    entry = cache.get(key) if found.hit else None
    alike = entry is None or entry.provenance.answers(specification(subject.operator))
    if json:
        fields = [{"field": d.field, "wanted": d.wanted, "cached": d.found} for d in found.differences]
        closest = str(found.closest) if found.closest else None
        document = {"hit": found.hit, "key": key.hash, "closest": closest, "differences": fields, "judged_alike": alike}
        print(json_text(document))
    else:
        print(found)
        if not alike:
            print("It was judged by other input domains, tolerances or another reference: `tune` begins anew.")


@app.command("verify", epilog=examples.of("cache verify"))
def verify(json: options.Json = False, debug: options.Debug = False) -> None:
    """Check every file of the cache and its layers; damaged results are quarantined. Exit code 1 if there were any."""
    cache = Cache()
    print(f"reading {cache.root} and {counted(len(cache.layers), 'layer')} ...", file=sys.stderr)
    found = list(upkeep.verify(cache))
    if json:
        print(json_text({"problems": [{"where": str(f.where), "problem": f.problem} for f in found]}))
    for finding in () if json else found:
        print(f"{finding.where}: {finding.problem}")
    if found:
        raise typer.Exit(1)
    if not json:
        print("every result is sound")


@app.command("export", epilog=examples.of("cache export"))
def export(
    target: Annotated[
        Path, typer.Argument(metavar="BUNDLE", help="The bundle to make: a folder, or an archive (.tar.gz).")
    ],
    operator: _Operator = None,
    sign: Annotated[
        Path | None, typer.Option("--sign", metavar="KEY", help="Sign with this Ed25519 key (PEM).")
    ] = None,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Make a bundle of the writable cache's results (and of its layers'), without tuning anything."""
    folders = [s.folder for s in Cache().items(operator)]
    if not folders:
        raise CacheError("there is nothing to export.", "ascendopt-tune cache list shows what there is.")
    _tell_bundle(target, archive.make(target, folders, sign), json)


@app.command("unpack", epilog=examples.of("cache unpack"))
def unpack(
    source: Annotated[Path, typer.Argument(metavar="ARCHIVE", help="A bundle's archive (.tar.gz).")],
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The new folder, for ASCENDOPT_CACHE_LAYERS.")],
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Unpack a bundle's archive and check every file of it; nothing is run."""
    _tell_bundle(folder, archive.unpack(source, folder), json)


def _tell_bundle(where: Path, bundle: Bundle, json: bool) -> None:
    if not json:
        print(archive.how_to_use(where, bundle))
        return
    about = {"bundle": str(where), "digest": f"sha256:{bundle.digest}", "signed": bundle.signature is not None}
    print(json_text({**about, "entries": len(bundle)}))


@app.command("import", epilog=examples.of("cache import"))
def import_(
    source: Annotated[Path, typer.Argument(help="A bundle: its folder or archive.")],
    operator: Annotated[
        list[str],
        typer.Option("--operator", metavar="NAME=FOLDER", help="Your sources of an operator; repeatable."),
    ] = [],  # noqa: B006
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Take a bundle's results into the writable cache.

    A bundle that ASCENDOPT_TRUST vouches for is copied. Of any other, nothing is run: each result is rebuilt from its
    sources and goes through the whole gate against your own operator before it is stored.
    """
    options.check_cache_folder()
    named = {}
    for item in operator:
        name, eq, folder = item.partition("=")
        if not eq or not Path(folder).is_dir():
            raise CacheError(f"--operator {item}: not NAME=FOLDER.", "Name the operator and the folder of its sources.")
        named[name] = Path(folder)
    rows = []
    for row in importing.import_bundle(
        source,
        Cache(),
        trusted=settings().trust,
        operators=importing.sources_by_name(named),
        say=lambda text: print(text, file=sys.stderr, flush=True),
    ):
        rows.append(row)
        if not json:
            print(f"{row.result}  {row.operator} {row.case}  {row.reason}".rstrip())
    if json:
        print(json_text({"entries": [row.__dict__ for row in rows]}))
    if any(row.result == "refused" for row in rows):
        raise typer.Exit(1)


@app.command("merge", epilog=examples.of("cache merge"))
def merge(
    source: Annotated[Path, typer.Argument(help="Another cache folder of yours.")],
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Take over the results of another cache folder of this user; for equal keys the faster one stays."""
    taken, left = upkeep.merge(source, Cache())
    if json:
        print(json_text({"taken": taken, "left": left}))
        return
    print(f"{taken} results taken, {left} were here already, or slower, or damaged")


@app.command("diff", epilog=examples.of("cache diff"))
def diff(
    one: Annotated[Path, typer.Argument(metavar="ONE", help="A cache folder or bundle.")],
    other: Annotated[
        Path | None, typer.Argument(metavar="OTHER", help="Another one. Default: the writable cache.")
    ] = None,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """List results that only one of two folders has, or that differ in time. Exit code 1 if there are any."""
    changes = upkeep.diff(one, other or paths.cache_dir())
    if json:
        sides = [
            {"one": _rows([c.one] if c.one else []), "other": _rows([c.other] if c.other else [])} for c in changes
        ]
        print(json_text({"changes": sides}))
    for c in () if json else changes:
        summary = c.one or c.other
        assert summary is not None
        times = [f"{s.best_us:.2f} us {time_word(s.key.target)}" if s else "missing" for s in (c.one, c.other)]
        print(f"{summary.key.hash[:12]} {c.operator} {summary.case} on {summary.key.chip}: {' | '.join(times)}")
    if changes:
        raise typer.Exit(1)
    if not json:
        print("no difference")


@app.command("gc", epilog=examples.of("cache gc"))
def gc(
    older_than: Annotated[
        float | None, typer.Option("--older-than", metavar="DAYS", min=0, help="Also results older than that.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list what would go.")] = False,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Remove what can't be used any more: results for other toolkits, quarantined ones, old compiled candidates."""
    cache = Cache()
    found = list(upkeep.garbage(cache, toolkits=_toolkits(), older_than_days=older_than))
    for item in found:
        if not json:
            print(f"{item.bytes >> 10:8d} KiB  {item.path}  ({item.reason})")
        if not dry_run:
            upkeep.remove(cache, item)
    if found and not dry_run:
        cache.rebuild()
    if json:
        places = [{"path": str(item.path), "bytes": item.bytes, "reason": item.reason} for item in found]
        print(json_text({"dry_run": dry_run, "places": places}))
        return
    total = sum(item.bytes for item in found) / (1 << 20)
    print(f"{'would free' if dry_run else 'freed'} {total:.1f} MiB in {len(found)} places")


def _toolkits() -> list[str]:
    """Versions in use: the real toolkit's, where there is one, and the virtual one's."""
    return [find(target).version for target in dict.fromkeys((settings().target, "virtual"))]


def one_result(cache: Cache, prefix: str) -> EntrySummary:
    """The result whose key begins so. Raises CacheError for none and for several."""
    found = [s for s in cache.items() if s.key.hash.startswith(prefix)]
    if len(found) != 1:
        text = "no result has" if not found else f"{len(found)} results have"
        raise CacheError(f"{text} a key that begins with {prefix!r}.", "ascendopt-tune cache list shows the keys.")
    return found[0]


def _rows(summaries: list[EntrySummary]) -> list[dict[str, object]]:
    return [
        {
            "key": s.key.hash,
            "operator": s.key.operator,
            "case": str(s.case),
            "chip": s.key.chip,
            "target": s.key.target,
            "toolkit": s.key.toolkit,
            "baseline_us": s.baseline_us,
            "best_us": s.best_us,
            "speedup": s.speedup,
            **(s.interval.to_json() if s.interval is not None else {}),
            "created": s.created,
            "folder": str(s.folder),
        }
        for s in summaries
    ]
