"""``aot.intercept`` and ``aot.install``: what needs torch is imported when they are called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..operator import Operator
from .decorator import options_of

if TYPE_CHECKING:
    from .intercept import Installation, Interception


def intercept(
    op: str,
    source: str | Path | Operator | None = None,
    *,
    policy: str | None = None,
    budget: int | None = None,
    chip: str | None = None,
    seed: int = 0,
    returns: Sequence[str] = (),
    names: Mapping[str, str] | None = None,
    buckets: Mapping[str, Sequence[Any]] | None = None,
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
        SettingsError: an unknown policy.
    """
    options = options_of(policy, budget, chip, seed, returns, names, buckets)
    from .activate import activate

    activate()
    from .intercept import intercept as take_over

    return take_over(op, source, options())


def install(
    *sources: str | Path | Operator,
    policy: str | None = None,
    budget: int | None = None,
    chip: str | None = None,
    seed: int = 0,
) -> Installation:
    """Takes over every operator that a registry operator, or one of ``sources``, stands for (``torch_op`` in its
    op.toml): those that are registered now, and those that will be, however they are loaded.

    Returns:
        What to undo it with: ``undo()``, or the end of a ``with`` block.

    Raises:
        OperatorError: a source without ``torch_op``.
        SettingsError: an unknown policy.
    """
    options = options_of(policy, budget, chip, seed, (), None, None)
    from .activate import activate

    activate()
    from .intercept import install as take_over

    return take_over(sources, options())


def registry_ops() -> tuple[str, ...]:
    """Defines the registry's operators as ``torch.ops.ascendopt.*`` and returns their names. Harmless when repeated.

    On npu tensors they run as they are written, until ``aot.install()`` or ``aot.intercept`` serves tuned pairs; on the
    CPU, for shapes and for gradients their reference.py computes.
    """
    from .activate import activate

    activate()
    from .library import define

    return define()
