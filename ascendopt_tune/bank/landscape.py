"""The landscape of a bank: every experience's text embedded, projected to two dimensions, clustered and named.

The paper's Figure 3: title and description are embedded, PCA gives the plane, k-means the clusters. The result depends
on the bank alone. A cluster is called by the motifs most of its experiences have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import faiss
import numpy as np
import plotly.graph_objects as go

from ..files import replacing
from .embedding import Embedder, LocalEmbedder, Vectors
from .experience import Experience

_SEED = 20
_PALETTE = (
    *("#1f6feb", "#c2410c", "#1a7f5a", "#8250df", "#b08800", "#0e7490", "#be185d", "#57606a"),
    *("#65a30d", "#7c2d12", "#4338ca", "#0f766e", "#a21caf", "#92400e", "#334155", "#dc2626"),
)


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
    wanted = clusters or min(len(_PALETTE), max(1, len({e.motif for e in ordered})))
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


def write_plot(path: Path, found: Landscape) -> None:
    """The picture as one HTML file that needs no network, whole or not at all. Raises OSError if it can't."""
    figure = go.Figure()
    for number, name in enumerate(found.names):
        rows = [i for i, c in enumerate(found.clusters) if c == number]
        colour = _PALETTE[number % len(_PALETTE)]
        x, y = found.points[rows, 0], found.points[rows, 1]
        figure.add_trace(
            go.Scatter(
                x=x,
                y=y,
                mode="markers",
                name=f"{name} ({len(rows)})",
                marker={"color": colour, "size": 9, "opacity": 0.75},
                text=[_hover(found.experiences[i]) for i in rows],
                hoverinfo="text",
            )
        )
        figure.add_annotation(
            x=float(np.median(x)), y=float(np.median(y)), text=name, showarrow=False, font={"color": colour, "size": 12}
        )
    motifs = len({e.motif for e in found.experiences})
    figure.update_layout(
        title=f"Experience bank: {len(found.experiences)} experiences, {motifs} motifs, {len(found.names)} clusters",
        xaxis_title="first principal component",
        yaxis_title=f"second principal component (both show {100 * found.shown:.0f} % of the variance)",
        template="plotly_white",
        height=760,
    )
    with replacing(path) as whole:
        figure.write_html(whole, include_plotlyjs=True)


def _hover(e: Experience) -> str:
    worth = f"{e.speedup:.2f}x" if e.speedup is not None else "not measured"
    return f"<b>{e.title}</b><br>{e.motif or 'imported'}, {worth}<br>{e.operator} {e.dtype} {e.regime}<br>{e.id[:12]}"
