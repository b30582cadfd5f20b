"""vllm-ascend's caches of keys and values, and what drafting needs of tokens."""

from __future__ import annotations

from typing import Any

import torch
from cann_ops.table import Fault, Row

Tensor = torch.Tensor

# Of five requests: where each begins, how many tokens it brings, and how many of its tokens were rejected.
STARTS, ENDS = [0, 7, 12, 21, 26, 34], [4, 11, 18, 22, 33]
SLOTS = [*range(16, 32), *range(0, 8), *range(8, 16)]  # of three sequences' tokens, each in whole blocks
ROWS_OF_METADATA = 34
DRAFTS = {"padding_token_id": 0, "parallel_drafting_token_id": 100}


def cache_by_head(key: Tensor, cache: Tensor, slots: Tensor, lengths: Tensor) -> Tensor:
    """Each sequence's tokens, which lie head by head, to their slots; in a block of the cache, too, heads are outer."""
    _, heads, size, width = cache.shape
    out, done = cache.clone(), 0
    for length in lengths.tolist():
        part = key[done * heads : (done + length) * heads].view(heads, length, width)
        for i, slot in enumerate(slots[done : done + length].tolist()):
            out[slot // size, :, slot % size] = part[:, i]
        done += length
    return out


def transpose_blocks(keys: list[Tensor], values: list[Tensor], blocks: Tensor, splitNum: int, **_: Any) -> Any:
    """The listed blocks hold what was pulled from ``splitNum`` sides one after the other; then token by token."""

    def one(cache: Tensor) -> Tensor:
        out = cache.clone()
        for b in blocks.tolist():
            size = cache.shape[1]
            out[b] = cache[b].reshape(splitNum, size, -1).transpose(0, 1).reshape(cache[b].shape)
        return out

    return [one(k) for k in keys], [one(v) for v in values]


def compress(cos: Tensor, sin: Tensor, begins: Tensor, starts: Tensor, table: Tensor, kvBlockSize: int,
             slotMappingFormat: int, cmpRatio: int, actualNumReqs: int) -> Any:  # fmt: skip
    """For each compressed position of the new tokens: the rotation of its first token, and its slot in the cache."""
    rows = ROWS_OF_METADATA
    found = [
        (request, p)
        for request, start in enumerate(starts.tolist()[:actualNumReqs])
        for p in range(start // cmpRatio, (start + int(begins[request + 1] - begins[request])) // cmpRatio)
    ][:rows]
    some = torch.ones(rows, 1, 1, cos.shape[-1]).to(cos), torch.zeros(rows, 1, 1, cos.shape[-1]).to(sin)
    slots = torch.full((rows, 2), -1, dtype=torch.int32)
    slots[:, 1] = kvBlockSize - 1
    for row, (request, p) in enumerate(found):
        some[0][row, 0, 0], some[1][row, 0, 0] = cos[p * cmpRatio], sin[p * cmpRatio]
        slots[row] = torch.tensor([table[request, p // kvBlockSize], p % kvBlockSize])
    return *some, slots if slotMappingFormat == 2 else slots @ torch.tensor([kvBlockSize, 1])


def draft_inputs(tokens: Tensor, positions: Tensor, following: Tensor, starts: Tensor, ends: Tensor,
                 padding_token_id: int, parallel_drafting_token_id: int, num_padding_slots_per_request: int,
                 shift_input_ids: bool, total_input_tokens: int) -> Any:  # fmt: skip
    """Each request's accepted tokens, the next one, tokens to be drafted, and padding for the rejected."""
    slots = num_padding_slots_per_request
    size = sum(max(int(starts[r + 1] - e) - 1, 0) + int(e - starts[r]) + (not shift_input_ids) + slots
               for r, e in enumerate(ends.tolist()))  # fmt: skip
    ids, places = torch.zeros(size, dtype=torch.int32), torch.zeros(size, dtype=torch.int32)
    rejected, masked = torch.zeros(size, dtype=torch.int8), torch.zeros(size, dtype=torch.int8)
    new, hidden = [], torch.zeros(len(tokens), dtype=torch.int32)
    for r, end in enumerate(ends.tolist()):
        begin, after = int(starts[r]), int(starts[r + 1])
        valid = end - begin + (not shift_input_ids)
        at = begin + r * (slots - shift_input_ids)
        drafted = at + valid + slots
        last = drafted + max(after - end - 1, 0)
        read = tokens[begin + shift_input_ids : begin + shift_input_ids + valid]
        ids[at : at + valid] = read
        ids[at + valid] = following[r]
        ids[at + valid + 1 : drafted] = parallel_drafting_token_id
        ids[drafted:last] = padding_token_id
        places[at:drafted] = positions[begin] + torch.arange(valid + slots)
        masked[at + valid + 1 : drafted] = 1
        rejected[drafted:last] = 1
        new += range(at + valid, drafted)
        if shift_input_ids:
            hidden[begin:after] = at + torch.arange(after - begin)
    return ids, places, rejected, masked, torch.tensor(new, dtype=torch.int32), hidden


def draft_by_ngram(tokens: Tensor, counts: Tensor, sampled: Tensor, discard: Tensor, vocab_size: int, min_n: int,
                   max_n: int, k: int) -> Any:  # fmt: skip
    """Drafts what followed the first earlier occurrence of a request's last tokens."""
    after = tokens.clone()
    following, valid = torch.zeros(len(tokens), dtype=torch.int32), torch.zeros(len(tokens), dtype=torch.int32)
    drafts = torch.full((len(tokens), k), -1, dtype=torch.int32)
    for i, count in enumerate(counts.tolist()):
        new = [t if not discard[i] and t < vocab_size else -1 for t in sampled[i].tolist()]
        kept = new[: min(sum(t != -1 for t in new), max(tokens.shape[1] - count, 0))]
        following[i] = kept[-1] if kept else tokens[i, max(count - 1, 0)]
        end = count + len(kept)
        after[i, count:end] = torch.tensor(kept, dtype=torch.int32)
        line = after[i, :end].tolist()
        for n in range(min_n, max_n + 1) if kept else ():
            match = next((p for p in range(end - n) if line[p : p + n] == line[end - n :]), None)
            if match is not None:
                found = line[match + n : match + n + k]
                drafts[i, : len(found)] = torch.tensor(found, dtype=torch.int32)
                valid[i] = (*found, -1).index(-1)
                break
    return following, drafts, valid, after


ROWS = (
    Row("attention/reshape_and_cache_bnsd", "T[64,32] T[4,2,8,32] int32[32] int32[3] -> T[4,2,8,32]", cache_by_head,
        ("uint8",),
        values={2: SLOTS, 3: [16, 8, 8]}),
    Row("moe/transpose_kv_cache_by_block",
        "(T[8,16,4,64] T[8,16,4,64]) (T[8,16,4,64] T[8,16,4,64]) int64[3] -> "
        "(T[8,16,4,64] T[8,16,4,64]) (T[8,16,4,64] T[8,16,4,64])",
        transpose_blocks, ("float16", "bfloat16"), in_place=(0, 1), values={2: [6, 0, 3]},
        attrs={"blockSize": 16, "headNum": 4, "headDim": 64, "splitNum": 2, "layerNum": 2}),
    Row("attention/compressor_metadata",
        "T[512,64] T[512,64] int32[4] int32[3] int32[3,4] -> T[34,1,1,64] T[34,1,1,64] int32[34,2]", compress,
        ("float32", "float16", "bfloat16"),
        values={2: [0, 70, 100, 161], 3: [5, 127, 0], 4: [3, 1, 4, 6, 9, 2, 5, 0, 8, 7, 10, 11]},
        attrs={"kvBlockSize": 32, "slotMappingFormat": 2, "cmpRatio": 4, "actualNumReqs": 3}),
    Row("moe/copy_and_expand_eagle_inputs",
        "int32[34] int32[34] int32[5] int32[6] int32[5] -> int32[49] int32[49] int8[49] int8[49] int32[15] int32[34]",
        draft_inputs, values={3: STARTS, 4: ENDS},
        attrs={**DRAFTS, "num_padding_slots_per_request": 3, "shift_input_ids": False, "total_input_tokens": 34},
        initial={5: 0}),  # written only where ids are shifted
    Row("moe/copy_and_expand_eagle_inputs",
        "int32[34] int32[34] int32[5] int32[6] int32[5] -> int32[44] int32[44] int8[44] int8[44] int32[15] int32[34]",
        draft_inputs, values={3: STARTS, 4: ENDS},
        attrs={**DRAFTS, "num_padding_slots_per_request": 3, "shift_input_ids": True, "total_input_tokens": 34}),
    Row("attention/ngram_spec_decode",
        "int32[4,64] int32[4] int32[4,8] int32[4] -> int32[4] int32[4,5] int32[4] int32[4,64]", draft_by_ngram,
        domain={0: (0, 3), 2: (-1, 4)}, values={1: [20, 56, 60, 33], 3: [0, 0, 0, 1]}, in_place=(0,),
        attrs={"vocab_size": 4, "min_n": 2, "max_n": 4, "k": 5}),
)  # fmt: skip

#: It takes the elements of the last axis for bytes, so that it copies half of a float16 head. A later, reformatted
#: version in a public fork does the same.
FAULTS = (
    Fault("attention/reshape_and_cache_bnsd", "T[64,32] T[4,2,8,32] int32[32] int32[3] -> T[4,2,8,32]",
          "of output keyCacheOut (float16[4,2,8,32]) are wrong", dtype="float16", reference=cache_by_head,
          values={2: SLOTS, 3: [16, 8, 8]}),
)  # fmt: skip
