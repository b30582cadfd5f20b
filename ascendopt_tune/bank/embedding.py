"""Texts to unit vectors whose inner product says how alike they are.

The default needs no network and no model: hashed words, pairs of words and character n-grams, weighted by how rare they
are in the bank. The same bank and text give the same vector on every machine. :class:`OpenAIEmbedder` asks any
endpoint that speaks OpenAI's protocol instead.
"""

from __future__ import annotations

import math
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
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
        self._documents = 0
        self._frequency: dict[int, int] = {}

    def fit(self, texts: Sequence[str]) -> None:
        seen: Counter[int] = Counter()
        for text in texts:
            seen.update({number for number, _ in _hashed(text)})
        self._documents, self._frequency = len(texts), dict(seen)

    def embed(self, texts: Sequence[str]) -> Vectors:
        out = np.zeros((len(texts), _DIMENSIONS))
        for row, text in zip(out, texts, strict=True):
            for part in text.split(PART):
                row += _unit(self._one(part))
            row[:] = _unit(row)
        return out.astype(np.float32)

    def _one(self, text: str) -> _Row:
        row = np.zeros(_DIMENSIONS)
        weights: dict[int, float] = {}
        for number, weight in _hashed(text):
            weights[number] = weights.get(number, 0.0) + weight
        for number, weight in weights.items():
            row[number >> 1 & (_DIMENSIONS - 1)] += (1 - 2 * (number & 1)) * math.sqrt(weight) * self._idf(number)
        return row

    def state(self) -> dict[str, Any]:
        return {"documents": self._documents, "frequency": {str(k): v for k, v in sorted(self._frequency.items())}}

    def restore(self, state: Mapping[str, Any]) -> None:
        self._documents = int(state["documents"])
        self._frequency = {int(k): int(v) for k, v in state["frequency"].items()}

    def _idf(self, number: int) -> float:
        return math.log((1 + self._documents) / (1 + self._frequency.get(number, 0))) + 0.1


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
    out = []
    for word in _WORD.findall(text.lower()):
        if word[0].isdigit():
            value = float(word.rstrip("% "))
            word = f"%{int(value // 20 * 20)}" if word.endswith("%") else f"#{len(str(int(value))) - 1}"
        out.append(word)
    return out


def _hashed(text: str) -> Iterator[tuple[int, float]]:
    """(hash, weight) of everything the text shows; a thing that occurs twice comes twice."""
    found = words(text)
    for word in found:
        yield from _of_word(word)
    for first, second in pairwise(found):
        yield _number("p", f"{first} {second}"), _WEIGHTS["p"]


@lru_cache(maxsize=1 << 14)  # a bank's texts have a few hundred words, some thousands of times each
def _of_word(word: str) -> tuple[tuple[int, float], ...]:
    """(hash, weight) of a word and of the pieces of one that is no number."""
    shown = [(_number("w", word), _WEIGHTS["w"])]
    if word[0] not in "%#":
        padded = f" {word} "
        for length in _NGRAM:
            for start in range(len(padded) - length + 1):
                shown.append((_number("c", padded[start : start + length]), _WEIGHTS["c"]))
    return tuple(shown)


def _number(kind: str, thing: str) -> int:
    return zlib.crc32(f"{kind}{thing}".encode())
