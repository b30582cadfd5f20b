"""The page of a bank's landscape, the paper's Figure 3: what its experiences are about, and which belong together."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np

from ..bank.experience import Experience
from ..bank.landscape import Landscape
from .page import Card, DataTable, Figure, FigurePage, write_figures
from .plot import COLOURS, Plot, Scale

_LEGEND = 215
_LABEL = 20  # characters of a cluster's name


def write_landscape(path: Path, found: Landscape) -> None:
    """Writes the page, whole or not at all. Raises OSError if it can't."""
    title = f"Experience bank: {len(found.experiences)} experiences"
    about = (
        "Title and description of each experience are embedded, principal components give the plane, k-means the "
        "clusters; a cluster is called by the motifs that most of its experiences have (the paper's Figure 3)."
    )
    cards = [
        Card("experiences", str(len(found.experiences))),
        Card("motifs", str(len({e.motif for e in found.experiences}))),
        Card("clusters", str(len(found.names))),
        Card("variance that the plane shows", f"{100 * found.shown:.0f} %"),
    ]
    figures = [
        Figure("The landscape", "A dot is an experience; its text is told where the pointer rests.", _plane(found),
               [_clusters(found)]),
        Figure("Every experience", "With what it brought where it was mined, modelled, and where that was.",
               tables=[_experiences(found)]),
    ]  # fmt: skip
    write_figures(path, FigurePage(title, about, cards, figures))


def of_bank() -> Figure | None:
    """The landscape of the bank as it is here (``bank plot`` draws its page); None where there is too little of it."""
    from ..bank.bank import Bank
    from ..bank.landscape import landscape  # faiss takes a while to import

    experiences = [e for e in Bank.open() if e.kind == "positive"]
    if len(experiences) < 2:
        return None
    found = landscape(experiences)
    note = (
        f"The {len(experiences)} experiences that kernels are refined by, by what their texts say (Figure 3); "
        f"the plane shows {100 * found.shown:.0f} % of the variance. ascendopt-tune bank plot has each of them."
    )
    return Figure("The experience bank", note, _plane(found), [_clusters(found)])


def _clusters(found: Landscape) -> DataTable:
    sizes = Counter(found.clusters)
    rows = [
        [
            f"{n + 1} {name}",
            str(sizes[n]),
            ", ".join(f"{motif} ({count})" for motif, count in _motifs(found, n).most_common()),
        ]
        for n, name in enumerate(found.names)
    ]
    return DataTable(["cluster", "experiences", "motifs"], rows, open=True, title="Clusters")


def _motifs(found: Landscape, cluster: int) -> Counter[str]:
    pairs = zip(found.experiences, found.clusters, strict=True)
    return Counter(_motif(e) for e, c in pairs if c == cluster)


def _motif(e: Experience) -> str:
    return e.motif or "imported"


def _plane(found: Landscape) -> str:
    x, y = found.points[:, 0], found.points[:, 1]
    plot = Plot(
        "experiences in the plane of their first two principal components",
        Scale.around("first principal component", map(float, x), digits=".2g"),
        Scale.around("second principal component", map(float, y), digits=".2g"),
        height=460,
        right=_LEGEND,
    )
    names = {}
    for number, name in enumerate(found.names):
        of = [i for i, c in enumerate(found.clusters) if c == number]
        colour = COLOURS[number % len(COLOURS)]
        plot.dots(((float(x[i]), float(y[i]), found.experiences[i].title) for i in of), colour)
        short = name if len(name) <= _LABEL else f"{name[: _LABEL - 1]}…"
        names[f"{number + 1} {short} ({len(of)})"] = colour
        plot.text(float(np.median(x[of])), float(np.median(y[of])), str(number + 1), anchor="middle", weight="bold")
    plot.legend(names)
    return plot.svg()


def _experiences(found: Landscape) -> DataTable:
    rows = [
        [
            *(e.id[:12], e.title, _motif(e), found.names[c]),
            *("-" if e.speedup is None else f"{e.speedup:.2f}x", f"{e.operator} {e.dtype} {e.regime}".strip()),
        ]
        for e, c in zip(found.experiences, found.clusters, strict=True)
    ]
    return DataTable(["id", "title", "motif", "cluster", "speedup", "mined from"], rows, search=True)
