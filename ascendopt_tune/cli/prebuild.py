"""``ascendopt-tune prebuild``: tune a list of operators and shapes ahead of time, and make a bundle of the results."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from ..build.toolkit import find
from ..deploy.manifest import Wish, read_manifest
from ..deploy.prebuild import CaseDone, prebuild
from ..errors import CacheError
from ..files import write_whole
from ..nouns.run_options import RunOptions
from ..report.text import json_text, time_word
from ..settings import settings
from ..store import archive
from ..store.bundle import Bundle
from ..store.cache import Cache
from . import failure, options
from .flags import Only, grouped

EXAMPLES = """[bold]Examples[/]

ascendopt-tune prebuild manifest.toml -o bundle/

ascendopt-tune prebuild manifest.toml -o bundle.tar.gz --sign key.pem --workers 8 --record prebuild.json

The manifest is described in docs/deploy.md. Ctrl-C makes a bundle of what is done; the same command goes on later.
"""


@grouped
def prebuild_command(
    how: Annotated[RunOptions, Only("accept_unfinished")],
    manifest: Annotated[Path, typer.Argument(metavar="MANIFEST", help="What to tune: a TOML file.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The bundle: a folder, or an archive (.tar.gz).")],
    workers: Annotated[
        int | None, typer.Option("--workers", min=1, help="Results made at the same time. Default: one per core.")
    ] = None,
    ray: options.Ray = None,
    sign: Annotated[
        Path | None, typer.Option("--sign", metavar="KEY", help="Sign with this Ed25519 key (PEM).")
    ] = None,
    record: Annotated[
        Path | None, typer.Option("--record", help="Write the JSON record to this file, for `ascendopt-tune report`.")
    ] = None,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Tune what the manifest asks for and write a bundle: a read-only cache layer to ship with a deployment.

    What the cache has is not tuned again; a search that Ctrl-C or a limit ended goes on. A wish that can't be fulfilled
    is listed; the others are in the bundle.
    """
    options.check_cache_folder()
    options.check_file(record, "--record")
    wishes = read_manifest(manifest, how)
    archive.check_before(output, sign)
    done: list[CaseDone] = []
    interrupted = False
    started = time.monotonic()
    cache = Cache()
    try:
        count = workers or settings().workers or os.cpu_count() or 1
        with contextlib.redirect_stdout(sys.stderr):  # what Ray has to say comes there, into the JSON document
            for result in prebuild(wishes, cache, workers=count, ray_address=ray, started=_say_started):
                done.append(result)
                _say_done(result, len(done), len(wishes), time.monotonic() - started)
    except KeyboardInterrupt:
        interrupted = True
        if done:
            print("interrupted: the bundle holds what is done; the same command goes on here.", file=sys.stderr)
    folders = [d.folder for d in done if d.folder is not None]
    if not folders and interrupted:
        what, next_step = "interrupted before a result was there; there is no bundle.", "The same command goes on."
        print(f"{what} {next_step}", file=sys.stderr)
        if json:
            failure.print_document("Interrupted", what, next_step)
        raise typer.Exit(failure.INTERRUPTED)
    if not folders:
        reasons = "; ".join(dict.fromkeys(d.reason for d in done if d.reason))
        raise CacheError(f"there is nothing to put into {output}: {reasons}")
    bundle = archive.make(output, folders, sign)
    document = _document(output, bundle, done, sign is not None)
    if record is not None:
        write_whole(record, json_text(document) + "\n")
    if json:
        print(json_text(document))
    else:
        _print(output, bundle, done)
    if interrupted:
        raise typer.Exit(failure.INTERRUPTED)
    if any(d.result == "failed" for d in done):
        raise typer.Exit(1)


def _say_started(wish: Wish) -> None:
    shapes = " ".join(f"{name}={text}" for name, text in wish.call.inputs.items())
    # Not "tuning": whether the cache has it, the worker finds out.
    print(f"started  {wish.source} {shapes} on {wish.options.chip}", file=sys.stderr, flush=True)


def _say_done(done: CaseDone, n: int, total: int, seconds: float) -> None:
    eta = seconds / n * (total - n)
    what = done.reason
    if done.result != "failed":
        what = _gain(done, time_word(find(done.wish.options.target).target))
    text = f"{n}/{total}  {done.result}  {done.wish.source} {done.case}  {what}  ETA {eta:.0f} s"
    print(text, file=sys.stderr, flush=True)


def _document(output: Path, bundle: Bundle, done: list[CaseDone], signed: bool) -> dict[str, Any]:
    rows: list[dict[str, Any]] = [
        {
            "operator": d.wish.source,
            "case": d.case,
            "chip": d.wish.options.chip,
            "result": d.result,
            "baseline_us": d.baseline_us,
            "best_us": d.best_us,
            **(d.interval.to_json() if d.interval is not None else {}),
            "reason": d.reason,
        }
        for d in done
    ]
    about = {"bundle": str(output), "digest": f"sha256:{bundle.digest}", "signed": signed, "time": _word(bundle)}
    return {**about, "entries": rows}


def _print(output: Path, bundle: Bundle, done: list[CaseDone]) -> None:
    for d in done:
        name = Path(d.wish.source).name
        print(f"{d.result:6}  {_times(d, bundle):38}  {name} on {d.wish.options.chip}: {d.case or d.reason}")
    print(archive.how_to_use(output, bundle))


def _times(done: CaseDone, bundle: Bundle) -> str:
    if done.result == "failed":
        return ""
    return _gain(done, _word(bundle))


def _gain(done: CaseDone, word: str) -> str:
    """``word`` is what its times have to be called."""
    return f"{done.baseline_us:.2f} -> {done.best_us:.2f} us {word}, {done.speedup_text}"


def _word(bundle: Bundle) -> str:
    return time_word("virtual" if "virtual" in bundle.about["targets"] else "npu")
