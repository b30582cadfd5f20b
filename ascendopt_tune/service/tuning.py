"""A case that isn't cached: tune it, or run a neighbour's tiling program anew. One process at a time per case.

No torch here: both the serving process (policy ``blocking``) and the background process do this.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..build.toolkit import Toolkit
from ..evaluate.evaluator import Evaluator
from ..evaluate.gate import Checked, Gate
from ..evaluate.screen import borrowed
from ..nouns.case import Case
from ..nouns.chip import load_chip
from ..nouns.clocks import interval
from ..nouns.operator import Operator, Signature
from ..nouns.outcome import Timed
from ..nouns.run_options import RunOptions
from ..search.budget import Limits
from ..search.keep import now, tools
from ..sources.specification import specification
from ..store.cache import Cache, Entry, Key, Provenance
from ..store.claim import claim
from ..tuner import ProgressCallback, tune_case
from .described import CallDescription, case_of, with_outputs
from .neighbours import Rules, closest


@dataclass(frozen=True)
class Request:
    """A call that missed. ``search``: tune it; else only a neighbour's program may serve it."""

    operator: Operator
    call: CallDescription
    options: RunOptions
    rules: Rules
    search: bool = True
    reuse: bool = True


def fulfil(
    request: Request,
    store: Cache,
    toolkit: Toolkit,
    *,
    wait: bool,
    progress: ProgressCallback | None = None,
    limits: Limits | None = None,
) -> tuple[Entry | None, bool]:
    """The result for the request, and whether it was made here: found, made from a neighbour's, or tuned. None: another
    process is at it (False), or nothing may be searched and no neighbour's program is faster than the original (True).

    A result whose search was not finished, or that was judged by another specification, is found, too, where nothing
    may be searched; the former also where the options accept it. Else the search goes on, or begins anew.

    Raises AscendOptError as :func:`~ascendopt_tune.tuner.tune_case` does.
    """
    operator, options = request.operator, request.options
    with borrowed(toolkit, options.chip, options.workers) as evaluator:
        signature = evaluator.describe(operator).signature
        case = _complete(request, signature, evaluator)
        key = Key.of(operator, case, chip=options.chip, target=toolkit.target, toolkit=toolkit.version)
        with claim(store.root, key.call, wait) as mine:
            entry = store.get(key)
            judged = specification(operator)
            enough = entry is not None and entry.provenance.suffices(judged, options.budget, options.accept_unfinished)
            if enough or not mine or (entry is not None and not request.search):
                return entry, False
            if entry is None and request.reuse:
                entry = _reuse(request, case, key, signature, store, evaluator)
                if entry is not None:
                    store.put(entry)
                    return entry, True
            if not request.search:
                return None, True
            record = tune_case(
                operator, case, options, cache=store, evaluator=evaluator, progress=progress, limits=limits
            )
            return record.entry, True


def _complete(request: Request, signature: Signature, evaluator: Evaluator) -> Case:
    """The case with its outputs: by the operator's shape function, or else as the original returned them."""
    call = request.call.without_buffers(signature)
    case = case_of(signature, call.values)
    if signature.has_infer_shape:
        case = replace(case, outputs=evaluator.infer_outputs(request.operator, case.inputs, case.attrs))
    else:
        case = with_outputs(signature, case, call.results)
    by_name = {p.name: value for p, value in zip(signature.inputs, case.inputs, strict=True)}
    return replace(case, outputs=(*case.outputs, *(by_name[name] for name in request.operator.in_place)))


def _reuse(
    request: Request,
    case: Case,
    key: Key,
    signature: Signature,
    store: Cache,
    evaluator: Evaluator,
) -> Entry | None:
    """The neighbour's pair for this case, if it passes the gate there and is faster than the baseline.

    The gate is the proof that it is legal: unified buffer, alignment, bounds, and (outputs are poisoned before a
    launch) that every element is written; the number of cores is compared here.
    """
    operator, options = request.operator, request.options
    nearest = closest(store.items(operator.name), key, case, signature, request.rules)
    neighbour = store.get(nearest.key) if nearest is not None else None
    if neighbour is None or not neighbour.improved:
        return None
    gate = Gate(operator, case, evaluator, seed=options.seed, signature=signature)
    baseline = gate.evaluate(operator.baseline)
    if not isinstance(baseline.outcome, Timed):
        return None
    rerun = gate.evaluate(neighbour.pair)
    if not _legal(rerun, options.chip) or _us(rerun) >= _us(baseline):
        return None
    found = interval(gate.speedups(neighbour.pair))
    if found is not None and not found.survives:
        return None
    confirmed = gate.confirm(neighbour.pair)
    if not _legal(confirmed, options.chip):
        return None
    assert confirmed.tiling is not None
    assert isinstance(confirmed.outcome, Timed)
    return Entry(
        key=key,
        pair=neighbour.pair,
        binary=confirmed.binary,
        kernel_name=confirmed.kernel_name,
        tiling=confirmed.tiling,
        baseline=baseline.outcome.profile,
        best=confirmed.outcome.profile,
        provenance=Provenance(
            seed=options.seed,
            budget=2,
            evaluations=2,
            outcomes={"Timed": 2},
            tools=tools(evaluator.toolkit.version),
            created=now(),
            changes=(
                *neighbour.provenance.changes,
                f"tiling program of {neighbour.key.hash[:12]}, run for this shape",
            ),
            reference="baseline" if operator.reference is None else "reference.py",
            checks=confirmed.checks,
            moves=neighbour.provenance.moves,
            baseline_tiling=operator.baseline.tiling_hash,
            ended="reuse",
            specification=specification(operator),
        ),
        signature=signature,
        interval=found,
    )


def _legal(checked: Checked, chip: str) -> bool:
    cores = int(load_chip(chip).values["core.aiv"])
    return isinstance(checked.outcome, Timed) and checked.tiling is not None and checked.tiling.block_dim <= cores


def _us(checked: Checked) -> float:
    return checked.profile.task_duration_us if checked.profile is not None else float("inf")
