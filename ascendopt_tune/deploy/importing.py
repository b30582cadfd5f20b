"""Taking results in: trusted ones as they are, all others rebuilt from source and checked again.

The binary of an untrusted result is never loaded. Its sources are candidates like any other: they are built here, go
through the whole gate against the user's own operator, are measured here, and what comes out is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ..build.toolkit import find
from ..errors import AscendOptError, CacheError
from ..files import MALFORMED
from ..nouns.case import Case
from ..nouns.clocks import interval
from ..nouns.operator import Operator
from ..nouns.outcome import Timed
from ..sources.specification import specification
from ..store import archive, trust
from ..store.bundle import Bundle
from ..store.cache import Cache
from ..store.entry import Entry, Key, folder_reader


@dataclass(frozen=True)
class Imported:
    """What became of one entry. ``result``: ``imported``, ``rebuilt``, ``present`` (nothing to do) or ``refused``."""

    operator: str
    case: str
    hash: str
    result: str
    reason: str = ""


def import_bundle(
    source: Path,
    cache: Cache,
    *,
    trusted: tuple[str, ...],
    operators: Callable[[str], Operator],
    say: Callable[[str], None] = lambda text: None,
) -> Iterator[Imported]:
    """Imports every entry of the bundle in a folder or archive; yields what became of each when it is on disk.

    Args:
        trusted: as ``ASCENDOPT_TRUST``; a bundle it vouches for is copied, another one rebuilt.
        operators: the user's own operator by name; raises OperatorError for one that isn't known here.

    Raises:
        CacheError: the bundle is damaged or no bundle, or the cache can't be written.
    """
    with archive.opened(source) as bundle:
        reason = trust.why_untrusted(bundle, trusted)
        if reason is not None:
            say(f"{source} is not trusted ({reason}): every result is rebuilt from source and checked")
        for folder in _folders(bundle):
            yield _import(bundle, folder, cache, operators if reason is not None else None, say)


def _folders(bundle: Bundle) -> Iterator[Path]:
    for name, rows in sorted(bundle.rows.items()):
        for row in sorted(rows):
            yield bundle.root / "entries" / name / row.hash


def _import(
    bundle: Bundle,
    folder: Path,
    cache: Cache,
    operators: Callable[[str], Operator] | None,
    say: Callable[[str], None],
) -> Imported:
    try:
        bundle.check(folder)
        entry = Entry.from_files(folder_reader(folder))
        if entry.key.hash != folder.name:
            raise CacheError(f"{folder.name[:12]} holds the result of another key.")
        case = entry.case
    except MALFORMED as error:
        return Imported(folder.parent.name, "", folder.name, "refused", f"entry.json: {error!r}")
    except CacheError as error:
        return Imported(folder.parent.name, "", folder.name, "refused", str(error))
    if cache.get(entry.key) is not None:
        return Imported(entry.key.operator, str(case), folder.name, "present")
    if operators is None:
        cache.put(entry)
        return Imported(entry.key.operator, str(case), folder.name, "imported")
    try:
        say(f"rebuilding and checking {entry.key.operator} {case}")
        cache.put(rebuild(entry, operators(entry.key.operator), case))
    except AscendOptError as error:
        return Imported(entry.key.operator, str(case), folder.name, "refused", str(error))
    return Imported(entry.key.operator, str(case), folder.name, "rebuilt")


def rebuild(entry: Entry, operator: Operator, case: Case) -> Entry:
    """``entry`` with binary, tiling data and profiles made here from its sources, which passed the gate here.

    Raises:
        CacheError: it is for another operator text, target or toolkit (the text names both), or doesn't pass.
        AscendOptError: the operator itself doesn't build or run here.
    """
    from ..evaluate.gate import Gate
    from ..evaluate.screen import open_evaluator

    key = entry.key
    toolkit = find(key.target)
    _same("toolkit", key.toolkit, toolkit.version)
    here = Key.of(operator, case, chip=key.chip, target=toolkit.target, toolkit=toolkit.version)
    _same("baseline pair", key.baseline, here.baseline)
    _same("build options", key.build, here.build)
    with open_evaluator(toolkit, key.chip, workers=1) as evaluator:
        gate = Gate(operator, case, evaluator, signature=entry.signature if operator.direct is not None else None)
        baseline = gate.evaluate(operator.baseline)
        best = gate.confirm(entry.pair)
        win = interval(gate.speedups(entry.pair)) if entry.improved and best.profile is not None else None
    for what, found in (("the baseline pair", baseline), ("the best pair", best)):
        if not isinstance(found.outcome, Timed):
            raise CacheError(f"{what} doesn't pass the gate here: {found.outcome.reason}")
    assert isinstance(baseline.outcome, Timed)
    assert isinstance(best.outcome, Timed)
    assert best.tiling is not None
    if best.outcome.profile.task_duration_us > baseline.outcome.profile.task_duration_us:
        raise CacheError("the best pair is slower here than the baseline pair.")
    if win is not None and not win.survives:
        raise CacheError(f"the best pair isn't faster here under nearly all plausible clocks: {win}.")
    return replace(
        entry,
        binary=best.binary,
        kernel_name=best.kernel_name,
        tiling=best.tiling,
        baseline=baseline.outcome.profile,
        best=best.outcome.profile,
        interval=win,
        provenance=replace(entry.provenance, specification=specification(operator)),
    )


def _same(what: str, theirs: str, ours: str) -> None:
    if theirs != ours:
        raise CacheError(f"the result is for another {what}: {theirs}, here it is {ours}.")


def sources_by_name(named: Mapping[str, Path]) -> Callable[[str], Operator]:
    """The user's operators: those named, else the registry's. The returned function raises OperatorError."""
    from ..sources.registry import load_folder, load_operator

    def find_operator(name: str) -> Operator:
        return load_folder(named[name]) if name in named else load_operator(name)

    return find_operator
