"""The picture of a bank: positions and clusters depend on the bank alone, names come from motifs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from bank_examples import experience

from ascendopt_tune.bank.experience import Experience
from ascendopt_tune.bank.landscape import landscape
from ascendopt_tune.report.landscape import write_landscape

_WORDS = ("barrier between pipes", "scalar element loop", "buffer queue overlap", "launch few cores")


def _experiences() -> list[Experience]:
    return [experience(n, title=_WORDS[n % 4], description=f"{_WORDS[n % 4]} in loop {n % 3}") for n in range(24)]


def test_clusters_are_motifs_where_texts_are() -> None:
    found = landscape(_experiences())
    assert sorted(found.names) == [f"motif_{n}" for n in range(4)]
    for e, cluster in zip(found.experiences, found.clusters, strict=True):
        assert found.names[cluster] == e.motif
    assert 0 < found.shown <= 1


def test_it_is_the_same_every_time() -> None:
    first, second = landscape(_experiences()), landscape(_experiences()[::-1])
    assert first.experiences == second.experiences
    assert first.clusters == second.clusters
    assert np.array_equal(first.points, second.points)


def test_few_and_equal_experiences_are_drawn() -> None:
    found = landscape([experience(n, title="t", description="d") for n in range(2)])
    assert np.allclose(found.points, 0)
    assert len(found.names) == 1


def test_the_page_needs_no_network(tmp_path: Path) -> None:
    file = tmp_path / "bank.html"
    write_landscape(file, landscape(_experiences()))
    text = file.read_text()
    assert file.stat().st_size < 400_000
    assert text.count("<circle") == 24
    assert 'src="' not in text
    assert "motif_2 (6)" in text
