"""Motifs of Stage II: structural rewrites of kernels, each in both directions (motif.py says what they promise)."""

from __future__ import annotations

from collections.abc import Iterable

from ..reading.kernel_program import KernelProgram
from .buffers.banks import BANK_GROUPS
from .buffers.bound_queues import BOUND_QUEUE
from .buffers.buffers import BUFFER_LIFETIME, DOUBLE_BUFFER, EXTRA_COPY
from .buffers.loaded_ahead import LOADED_AHEAD
from .buffers.ping_pong import PING_PONG_BUFFERS
from .buffers.queues import RINGS_FOR_QUEUES
from .buffers.rows_per_turn import ROWS_PER_TURN
from .buffers.shared_buffers import SHARED_BUFFERS
from .buffers.stored_together import STORED_TOGETHER
from .buffers.unneeded_buffers import UNNEEDED_BUFFERS
from .buffers.unqueued import UNQUEUED
from .copies.caching import CACHE_HINT
from .copies.copied_elements import COPIED_ELEMENTS
from .copies.copies import COPY_WITHOUT_PAD, STRIDED_COPY
from .copies.repeated_stores import REPEATED_STORES
from .copies.single_stores import SINGLE_STORE
from .copies.single_values import SINGLE_VALUE
from .copies.whole_copies import WHOLE_COPY
from .cores.constants import CONSTANT_TILING
from .cores.core_flags import CROSS_CORE_FLAGS
from .cores.fills import SHARED_FILL
from .cores.groups import GROUPS_FIRST
from .cores.handover import DEFERRED_ANSWER
from .cores.layout import ALIGNMENT_512
from .cores.meetings import NEEDLESS_MEETING
from .cube.cube_loads import MERGED_LOADS
from .cube.matmul_schedule import LARGE_PACKETS
from .cube.tiles_first import TILES_FIRST
from .cube.unit_flags import UNIT_FLAG
from .motif import Motif, Rewrite
from .repeated.cast_once import CAST_ONCE
from .repeated.done_once import DONE_ONCE
from .repeated.held_tiles import HELD_TILE
from .repeated.known_values import KNOWN_VALUE
from .repeated.loops import EARLY_FETCH, KEPT_VALUE, LOOP_INVARIANT, TILE_LENGTH
from .vectors.casts import FEWER_CASTS
from .vectors.comparisons import COMPARISON
from .vectors.first_terms import FIRST_TERM
from .vectors.fused_scalars import FUSED_SCALARS
from .vectors.fusion import CHAINED_INSTRUCTIONS, FUSED_MULTIPLY_ADD
from .vectors.one_element import ONE_ELEMENT
from .vectors.reductions import ADD_TREE
from .vectors.result_in_place import RESULT_IN_PLACE
from .vectors.roundings import ROUNDING_CAST
from .vectors.row_stages import ROW_STAGES
from .vectors.scalar_operands import SCALAR_OPERAND
from .vectors.sums import SCALE_BEHIND_SUM
from .vectors.unread import UNREAD_RESULTS
from .vectors.vectors import INDEPENDENT_NEIGHBOURS, MERGED_ROWS, SCALAR_LOOP
from .waiting.barriers import FULL_BARRIER, VECTOR_BARRIER
from .waiting.deferral import DEFERRED_WAIT
from .waiting.flags import FLAG_PAIR

MOTIFS: tuple[Motif, ...] = (
    CONSTANT_TILING,
    FULL_BARRIER,
    VECTOR_BARRIER,
    FLAG_PAIR,
    DEFERRED_WAIT,
    DEFERRED_ANSWER,
    CROSS_CORE_FLAGS,
    NEEDLESS_MEETING,
    SHARED_FILL,
    GROUPS_FIRST,
    BOUND_QUEUE,  # before those that change how many tensors a queue has, and when they are given back
    DOUBLE_BUFFER,
    PING_PONG_BUFFERS,
    EARLY_FETCH,
    BUFFER_LIFETIME,
    STRIDED_COPY,
    COPY_WITHOUT_PAD,
    SINGLE_VALUE,
    SINGLE_STORE,
    REPEATED_STORES,
    WHOLE_COPY,
    LOADED_AHEAD,
    STORED_TOGETHER,
    MERGED_LOADS,
    LARGE_PACKETS,
    TILES_FIRST,
    RINGS_FOR_QUEUES,
    SHARED_BUFFERS,
    UNNEEDED_BUFFERS,
    UNQUEUED,
    UNIT_FLAG,
    SCALAR_LOOP,
    COPIED_ELEMENTS,
    ADD_TREE,
    SCALE_BEHIND_SUM,
    FIRST_TERM,
    ONE_ELEMENT,
    RESULT_IN_PLACE,
    ROW_STAGES,
    MERGED_ROWS,
    ROWS_PER_TURN,
    INDEPENDENT_NEIGHBOURS,
    FUSED_MULTIPLY_ADD,
    FUSED_SCALARS,
    CHAINED_INSTRUCTIONS,
    SCALAR_OPERAND,
    COMPARISON,
    EXTRA_COPY,
    FEWER_CASTS,
    ROUNDING_CAST,
    UNREAD_RESULTS,
    CAST_ONCE,
    LOOP_INVARIANT,
    DONE_ONCE,
    HELD_TILE,
    KEPT_VALUE,
    KNOWN_VALUE,
    TILE_LENGTH,
    BANK_GROUPS,
    ALIGNMENT_512,
    CACHE_HINT,
)


def find(name: str) -> Motif:
    """The motif of that name. Raises KeyError if there is none."""
    for motif in MOTIFS:
        if motif.name == name:
            return motif
    raise KeyError(name)


def is_in(name: str, before: KernelProgram, after: KernelProgram) -> bool:
    """Whether ``after`` has the motif's change at more places than ``before``, or needs it at fewer."""
    motif = find(name)

    def places(rewrites: Iterable[Rewrite]) -> int:
        return len({rewrite.site for rewrite in rewrites})

    more = places(motif.rewind(after)) > places(motif.rewind(before))
    return more or places(motif.optimize(after)) < places(motif.optimize(before))


def table() -> str:
    """The table of docs/motifs.md."""
    rows = ["| motif | what it does | needs | helps against |", "|---|---|---|---|"]
    for m in MOTIFS:
        rows.append(f"| `{m.name}` | **{m.title}.** {m.description} | {m.preconditions} | {', '.join(m.bottlenecks)} |")
    return "\n".join(rows) + "\n"


__all__ = ["MOTIFS", "Motif", "Rewrite", "find", "is_in", "table"]
