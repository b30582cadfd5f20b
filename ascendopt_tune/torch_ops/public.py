"""``aot.intercept`` and ``aot.install``: what needs torch is imported when they are called."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import CaseError, SettingsError
from ..nouns.operator import Operator
from .serving.decorator import checked, options_of

if TYPE_CHECKING:
    import torch
    from torch.fx import GraphModule

    from ..generator import Generated
    from .compile.subgraphs import Subgraphs
    from .serving.intercept import Installation, Interception
    from .serving.warmup import WarmupReport

_NOT_A_WARMUPS = frozenset(["chip", "target", "invariant", "retune", "resume"])


def intercept(
    op: str,
    source: str | Path | Operator | None = None,
    *,
    policy: str | None = None,
    returns: Sequence[str] = (),
    names: Mapping[str, str] | None = None,
    buckets: Mapping[str, Sequence[Any]] | None = None,
    **options: Any,
) -> Interception:
    """Takes over an operator of torch's dispatcher on device npu: calls are served by the tuned pair of ``source``.

    It makes no difference how the operator was registered: in C++ (``TORCH_LIBRARY_IMPL``), with
    ``torch.library.Library`` or with ``torch.library.custom_op``. In-place and ``out=`` forms are served, too.
    Gradients are the original's.

    Args:
        op: ``namespace::name``, all overloads that have a kernel for the device; or ``namespace::name.overload``.
        source: as for :func:`~ascendopt_tune.tune`; default: the registry operator whose op.toml names ``op``.

    The other arguments are those of :func:`~ascendopt_tune.tune`.

    Returns:
        What to undo it with: ``undo()``, or the end of a ``with`` block; in any order with others.

    Raises:
        OperatorError: ``op`` is not registered for device npu (see :func:`install`), or there is no source for it.
        SettingsError: an unknown policy or option.
        CaseError: a value that an option can't have.
    """
    make = options_of(policy, returns, names, buckets, options)
    from .device.activate import activate

    activate()
    from .serving.intercept import intercept as take_over

    return take_over(op, source, make())


def install(
    *sources: str | Path | Operator,
    policy: str | None = None,
    **options: Any,
) -> Installation:
    """Takes over every operator that a registry operator, or one of ``sources``, stands for (``torch_op`` in its
    op.toml): those that are registered now, and those that will be, however they are loaded.

    ``policy`` and ``options`` are those of :func:`~ascendopt_tune.tune`.

    Returns:
        What to undo it with: ``undo()``, or the end of a ``with`` block.

    Raises:
        OperatorError: a source without ``torch_op``.
        SettingsError: an unknown policy or option.
        CaseError: a value that an option can't have.
    """
    make = options_of(policy, (), None, None, options)
    from .device.activate import activate

    activate()
    from .serving.intercept import intercept_all

    return intercept_all(sources, make())


def registry_ops() -> tuple[str, ...]:
    """Defines the registry's operators as ``torch.ops.ascendopt.*`` and returns their names. Harmless when repeated.

    On npu tensors they run as they are written, until ``aot.install()`` or ``aot.intercept`` serves tuned pairs; on the
    CPU, for shapes and for gradients their reference.py computes.
    """
    from .device.activate import activate

    activate()
    from .serving.library import define

    return define()


def warmup(
    model: Callable[..., Any],
    example_inputs: Any,
    *,
    shapes: Iterable[Sequence[Sequence[int]]] = (),
    seconds: float | None = None,
    progress: Callable[[str], None] | None = None,
    **options: Any,
) -> WarmupReport:
    """Runs ``model`` once on the inputs, tunes every case of a tuned operator that it calls, those with the largest
    share of the model first, and loads what serves them. Nothing is left to be done at the first request.

    Cases that the cache has are only loaded. At the end it waits for the library that serves hits in C++ where that is
    still being compiled, which happens once on a machine. Calls are found in the model's own run, so whatever is
    reached by ``@aot.tune``, ``aot.intercept`` or ``aot.install`` counts; models that torch.compile compiled are run
    like others.

    Args:
        example_inputs: one run: a tensor, a tuple of arguments, or a dict of named ones; several: an iterable of these,
            a DataLoader for one.
        shapes: more runs: for each, the shapes of the (first) example's tensors, in order. Their elements are those of
            the example, repeated, so that indices stay valid.
        seconds: no further case is begun after so long; the report names those that are left.
        progress: called with a line of text for each step; default: stderr. Ctrl-C keeps what is tuned so far.
        options: of a run (docs/options.md), ``budget=20`` for one, for what a decorator or ``intercept`` didn't say.
            Which results serve is theirs alone: not ``chip``, ``target``, ``invariant``; nor ``retune`` and ``resume``,
            for a warm-up always goes on with what is unfinished.

    Returns:
        What was found and what it brought; print it.

    Raises:
        CaseError: example inputs of another kind, shapes that don't fit them, a model that can't be called, or a value
            that an option can't have.
        SettingsError: an option that there isn't, or that isn't a warm-up's.
        Whatever the model raises.
    """
    _check_model(model)
    if seconds is not None and not (isinstance(seconds, (int, float)) and seconds >= 0):
        raise CaseError(f"seconds = {seconds!r} is no time of a warm-up.", "Give a number of seconds, or None.")
    given = checked(options)
    if foreign := sorted(_NOT_A_WARMUPS & set(given)):
        raise SettingsError(
            f"{foreign[0]!r} is no option of a warm-up.",
            "Give it where the operator is decorated or intercepted.",
        )
    from .device.activate import activate

    activate()
    from .serving.warmup import warmup as run

    return run(model, example_inputs, shapes=shapes, seconds=seconds, progress=progress, options=given)


def compile_pass(graph: GraphModule, *, bind_nodes: bool = True) -> GraphModule:
    """The pass of ``torch.compile(model, backend="ascendopt")`` for other backends: tunes or looks up, by the policy in
    force, every call of a tuned operator in an FX graph with fake values, and has its node call the loaded launcher.

    Call it after the last tracing: as (a part of) AOTAutograd's ``fw_compiler``, or in a backend that runs
    TorchDynamo's graph as it is. ``graph.meta["ascendopt"]`` then tells of each call who serves it.

    Args:
        bind_nodes: False only tunes; the graph stays as it is.

    Returns:
        ``graph``, changed.
    """
    from .device.activate import activate

    activate()
    from .compile.compile_pass import compile_pass as run

    return run(graph, bind_nodes=bind_nodes)


def record(model: Callable[..., Any], example_inputs: Any, path: str | Path) -> int:
    """Runs ``model`` and writes every case of a tuned operator that it calls to a JSON file, for a prebuild manifest
    (``recorded = ["calls.json"]``). Nothing is tuned. Returns how many cases there are.

    ``example_inputs`` as for :func:`warmup`. Raises CacheError if the file can't be written, CaseError as a warm-up.
    """
    _check_model(model)
    from .device.activate import activate

    activate()
    from .serving.warmup import record as run

    return run(model, example_inputs, Path(path))


def _check_model(model: Any) -> None:
    if not callable(model):
        raise CaseError(f"a model is to be run, and {model!r} can't be called.", "Give a module, or a function.")


def generate(module: torch.nn.Module, example_inputs: Sequence[Any], *, name: str = "") -> Generated:
    """An operator that does what a module's forward pass does, by rules: its program in the tile language, checked
    against the module by interpreting both at small shapes. ``generated.write(folder)`` lowers it.

    Args:
        example_inputs: tensors; a float becomes an attribute of the operator.
        name: the operator's; default: the module's class.

    Raises:
        NotGenerated: no rule, or no schedule, fits; the text says what.
    """
    from ..generator import generate as run

    return run(module, example_inputs, name=name)


def subgraphs() -> Subgraphs:
    """What became of the subgraphs that ``torch.compile(..., options={"generate": True})`` met in this process: which
    are operators, why others aren't, and modelled times. Print or read it."""
    from .compile import subgraphs as of

    return of.Subgraphs(of.found)
