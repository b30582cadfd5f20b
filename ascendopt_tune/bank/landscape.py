"""The landscape of a bank: every experience's text embedded, projected to two dimensions, clustered and named.

The paper's Figure 3: title and description are embedded, PCA gives the plane, k-means the clusters. The result depends
on the bank alone. A cluster is called by the motifs most of its experiences have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import faiss
import numpy as np

from .embedding import Embedder, LocalEmbedder, Vectors
from .experience import Experience

_SEED = 20
_MOST_CLUSTERS = 16


@dataclass(frozen=True)
class Landscape:
    """``points``: float32 [n, 2], in the order of the experiences; ``clusters``: each one's cluster; ``names`` of them.

    ``shown``: the share of the texts' variance that the plane shows.
    """

    experiences: tuple[Experience, ...]
    points: Vectors
    clusters: tuple[int, ...]
    names: tuple[str, ...]
    shown: float


def landscape(
    experiences: Sequence[Experience], clusters: int | None = None, embedder: Embedder | None = None
) -> Landscape:
    """Positions and clusters. ``clusters``: default: one for each motif, at most 16."""
    ordered = tuple(sorted(experiences, key=lambda e: e.id))
    texts = [f"{e.title}. {e.description}" for e in ordered]
    embedder = embedder or LocalEmbedder()
    embedder.fit(texts)
    vectors = embedder.embed(texts)
    wanted = clusters or min(_MOST_CLUSTERS, max(1, len({e.motif for e in ordered})))
    labels = _k_means(vectors, min(wanted, len(ordered)))
    points, shown = _plane(vectors)
    names = tuple(_name([e for e, c in zip(ordered, labels, strict=True) if c == n]) for n in range(max(labels) + 1))
    return Landscape(ordered, points, tuple(labels), names, shown)


def _k_means(vectors: Vectors, k: int) -> list[int]:
    """Cluster of each row, numbered from 0 in order of first appearance; clusters without rows are left out."""
    means = faiss.Kmeans(vectors.shape[1], k, niter=50, nredo=5, seed=_SEED, min_points_per_centroid=1)
    means.train(vectors)
    found = [int(c) for c in means.index.search(vectors, 1)[1][:, 0]]
    order = {c: n for n, c in enumerate(dict.fromkeys(found))}
    return [order[c] for c in found]


def _plane(vectors: Vectors) -> tuple[Vectors, float]:
    """The two principal components, each with a fixed sign, and the share of variance they show."""
    centred = vectors.astype(np.float64) - vectors.mean(axis=0, dtype=np.float64)
    left, values, _ = np.linalg.svd(centred, full_matrices=False)
    plane = np.zeros((len(vectors), 2))
    width = min(2, len(values))
    plane[:, :width] = left[:, :width] * values[:width]
    signs = np.sign(plane[np.argmax(np.abs(plane), axis=0), [0, 1]])
    total = float((values**2).sum())
    return (plane * np.where(signs == 0, 1, signs)).astype(np.float32), float(
        (values[:2] ** 2).sum()
    ) / total if total else 1.0


def _name(members: Sequence[Experience]) -> str:
    """The motifs of most members: one if it has half of them, else the first two."""
    counts = Counter(e.motif or "imported" for e in members)
    ordered = sorted(counts, key=lambda m: (-counts[m], m))
    return ordered[0] if 2 * counts[ordered[0]] >= len(members) else " + ".join(ordered[:2])
