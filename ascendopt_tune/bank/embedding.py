"""Texts to unit vectors whose inner product says how alike they are.

The default needs no network and no model: hashed words, pairs of words and character n-grams, weighted by how rare they
are in the bank. The same bank and text give the same vector on every machine. :class:`OpenAIEmbedder` asks any
endpoint that speaks OpenAI's protocol instead.
"""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..errors import BankError
from ..store.entry import sha256

if TYPE_CHECKING:
    import openai

Vectors = np.ndarray[Any, np.dtype[np.float32]]
_Row = np.ndarray[Any, np.dtype[np.float64]]
_Numbers = np.ndarray[Any, np.dtype[np.int64]]

#: Begins the second part of a text. The local embedder lets both parts of a text weigh the same, however long they are.
PART = "In the code:"
_DIMENSIONS = 4096
_NGRAM = (4, 5)  # characters
# A word says most; pairs keep order ("waits for MTE2"); character n-grams let other forms of a word match.
_WEIGHTS = {"w": 1.0, "p": 0.6, "c": 0.15}
_WORD = re.compile(r"\d+(?:\.\d+)?\s?%|\d+(?:\.\d+)?|[a-z_]+[a-z_0-9]*")
_BATCH = 64  # texts per request to an endpoint


class Embedder(Protocol):
    """``name`` tells vectors of different embedders apart; an index is never asked with another embedder's vectors."""

    name: str

    def fit(self, texts: Sequence[str]) -> None:
        """Learns from the bank's texts what is common in them."""
        ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """float32 [len(texts), dimensions], rows of length 1."""
        ...

    def state(self) -> dict[str, Any]:
        """What ``fit`` learned, as JSON."""
        ...

    def restore(self, state: Mapping[str, Any]) -> None:
        """Takes over what another one's :meth:`state` said."""
        ...


class LocalEmbedder:
    """Hashed n-grams with inverse document frequencies."""

    name = f"local-1-{_DIMENSIONS}"

    def __init__(self) -> None:
        self._learn(0, np.zeros(0, np.int64), np.zeros(0, np.int64))

    def fit(self, texts: Sequence[str]) -> None:
        shown = [_shown(text)[0] for text in texts]
        self._learn(len(texts), *np.unique(np.concatenate([*shown, np.zeros(0, np.int64)]), return_counts=True))

    def embed(self, texts: Sequence[str]) -> Vectors:
        out = np.zeros((len(texts), _DIMENSIONS))
        for row, text in zip(out, texts, strict=True):
            for part in text.split(PART):
                row += _unit(self._one(part))
            row[:] = _unit(row)
        return out.astype(np.float32)

    def _one(self, text: str) -> _Row:
        numbers, weights = _shown(text)
        values = (1 - 2 * (numbers & 1)) * np.sqrt(weights) * self._idf(numbers)
        return np.bincount(numbers >> 1 & (_DIMENSIONS - 1), values, _DIMENSIONS).astype(np.float64)

    def state(self) -> dict[str, Any]:
        counts = zip(self._numbers.tolist(), self._counts.tolist(), strict=True)
        return {"documents": self._documents, "frequency": {str(number): count for number, count in counts}}

    def restore(self, state: Mapping[str, Any]) -> None:
        counts = sorted((int(number), int(count)) for number, count in state["frequency"].items())
        numbers, seen = np.array(counts, np.int64).reshape(-1, 2).T
        self._learn(int(state["documents"]), numbers, seen)

    def _learn(self, documents: int, numbers: _Numbers, counts: _Numbers) -> None:
        """``numbers``, ascending, are in so many of the ``documents`` each."""
        self._documents, self._numbers, self._counts = documents, numbers, counts
        # By math, not by numpy: numpy's logarithm is another one on another processor.
        most = max([documents, *counts.tolist()])
        self._rarity = np.array([math.log((1 + documents) / (1 + count)) + 0.1 for count in range(most + 1)])

    def _idf(self, numbers: _Numbers) -> _Row:
        at = np.searchsorted(self._numbers, numbers)
        known = np.append(self._numbers, -1)[at] == numbers
        return self._rarity[np.where(known, np.append(self._counts, 0)[at], 0)]


class OpenAIEmbedder:
    """Vectors of an endpoint's embedding model.

    Args:
        client: has the base URL, the key and the number of retries.

    Raises:
        BankError: from ``embed``, when the endpoint fails or answers with something else than vectors.
    """

    def __init__(self, client: openai.OpenAI, model: str) -> None:
        self._client, self._model = client, model
        self.name = f"openai-{model}-{sha256(str(client.base_url).encode())[:8]}"

    def fit(self, texts: Sequence[str]) -> None:
        """Nothing to learn: the model is fixed."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        import openai  # seconds: only who asks a model pays for it

        rows: list[Sequence[float]] = []
        for start in range(0, len(texts), _BATCH):
            batch = list(texts[start : start + _BATCH])
            try:
                answer = self._client.embeddings.create(model=self._model, input=batch, encoding_format="float")
                found = [item.embedding for item in sorted(answer.data, key=lambda item: item.index)]
            except (openai.OpenAIError, TypeError, AttributeError) as error:
                raise BankError(
                    f"the embedding model {self._model} at {self._client.base_url} failed: {error}.",
                    "Check the endpoint, or unset ASCENDOPT_EMBEDDING_MODEL to use the local embedder.",
                ) from error
            if len(found) != len(batch):
                raise BankError(f"{self._model} answered {len(batch)} texts with {len(found)} vectors.")
            rows += found
        try:
            out = np.asarray(rows, dtype=np.float32).reshape(len(texts), -1)
        except ValueError as error:
            raise BankError(f"{self._model} answered with vectors of different lengths.") from error
        if not np.isfinite(out).all():
            raise BankError(f"{self._model} answered with a vector that holds infinities or NaN.")
        lengths = np.linalg.norm(out, axis=1, keepdims=True)
        return np.asarray(out / np.where(lengths > 0, lengths, 1.0), dtype=np.float32)

    def state(self) -> dict[str, Any]:
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Nothing to take over."""


def _unit(row: _Row) -> _Row:
    """The row at length 1; zeros stay zeros."""
    length = float(np.linalg.norm(row))
    return row / length if length else row


def words(text: str) -> list[str]:
    """Words in lower case; numbers by their size only: ``87 %`` -> ``%80``, ``1234.5`` -> ``#3`` (ten to the 3rd)."""
    return [_sized(word) for word in _WORD.findall(text.lower())]


@lru_cache(maxsize=1 << 14)  # a bank's texts have a few hundred words, some thousands of times each
def _sized(word: str) -> str:
    if not word[0].isdigit():
        return word
    value = float(word.rstrip("% "))
    return f"%{int(value // 20 * 20)}" if word.endswith("%") else f"#{len(str(int(value))) - 1}"


@lru_cache(maxsize=1 << 12)  # a bank's texts are counted first and embedded then
def _shown(text: str) -> tuple[_Numbers, _Row]:
    """Hashes of everything the text shows, as they first appear, and the sum of each one's weights."""
    found = words(text)
    pairs = [_of_pair(first, second) for first, second in pairwise(found)]
    parts = [*map(_of_word, found), (np.array(pairs, np.int64), np.full(len(pairs), _WEIGHTS["p"]))]
    numbers, weights = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    distinct, first_at, which = np.unique(numbers, return_index=True, return_inverse=True)
    order = np.argsort(first_at)
    return distinct[order], np.bincount(which, weights, len(distinct)).astype(np.float64)[order]


@lru_cache(maxsize=1 << 14)
def _of_word(word: str) -> tuple[_Numbers, _Row]:
    """Hashes of a word and of the pieces of one that is no number, and their weights."""
    shown = [(_number("w", word), _WEIGHTS["w"])]
    if word[0] not in "%#":
        padded = f" {word} "
        for length in _NGRAM:
            for start in range(len(padded) - length + 1):
                shown.append((_number("c", padded[start : start + length]), _WEIGHTS["c"]))
    numbers, weights = zip(*shown, strict=True)
    return np.array(numbers, np.int64), np.array(weights)


@lru_cache(maxsize=1 << 16)
def _of_pair(first: str, second: str) -> int:
    return _number("p", f"{first} {second}")


def _number(kind: str, thing: str) -> int:
    return zlib.crc32(f"{kind}{thing}".encode())
