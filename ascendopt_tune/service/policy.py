"""What may be done for a call. The first of these that says something decides:

1. the kill switch ``ASCENDOPT_DISABLE=1`` and ``aot.rollback()``: the original, nothing else;
2. ``with aot.policy("..."):`` around the call, for this thread (or asyncio task);
3. the argument ``policy=`` of ``@aot.tune``, ``aot.intercept`` or ``aot.install``;
4. ``ASCENDOPT_POLICY``;
5. ``lookup``.

A ``with`` block wins over the argument, because it is nearer to the call: one line switches a model off, or has a
warm-up tune what serving must not.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

from ..settings import check_policy, settings

#: The innermost ``with`` block's policy; None outside of one.
scoped: ContextVar[str | None] = ContextVar("ascendopt_policy", default=None)


@contextlib.contextmanager
def policy(name: str) -> Iterator[None]:
    """Calls of tuned operators inside the block follow this policy: ``off``, ``lookup``, ``lazy`` or ``blocking``.

    Raises SettingsError for another name.
    """
    token = scoped.set(check_policy(name))
    try:
        yield
    finally:
        scoped.reset(token)


def effective(argument: str | None) -> str:
    """The policy of a call whose operator was given ``argument``. Raises SettingsError for a variable's bad value."""
    return scoped.get() or argument or settings().policy
