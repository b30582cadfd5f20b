"""Is the right motif found by the symptoms of a kernel the bank doesn't know?

Two ways to hold kernels out:
* Operators of a public repository, none of which is in the bank, with one bottleneck planted each: what their profiles
  and syntax trees show is in planted.json, made by plant.py, which the battery test repeats (ASCENDOPT_CANN_OPS).
* Each operator of the registry against a bank without any of its experiences.

A query is :func:`symptoms` of the slow kernel, nothing else; a motif the bank has no experience of can't be found and
counts as missed in the first test.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from plant import FILE as PLANTED
from plant import KERNELS, planted

from ascendopt_tune import paths
from ascendopt_tune.bank.bank import FILE, Bank, Records, read_records
from ascendopt_tune.search.kernel.motifs import MOTIFS
from ascendopt_tune.settings import settings

SHIPPED = paths.shipped("cache") / "bank" / FILE
_NEEDED = 0.8


def documented(name: str) -> str:
    """A document in one line, because a figure may stand at the end of one."""
    return " ".join((Path(__file__).parents[2] / name).read_text().split())


def rows() -> list[dict[str, str]]:
    found: list[dict[str, str]] = json.loads(PLANTED.read_text())["kernels"]
    return found


def found(bank: Bank, query: str) -> list[str]:
    """The motifs of the three best hits of different motifs."""
    return [e.motif for e, _ in bank.search(query, 3, one_per_motif=True)]


def test_planted_bottlenecks_are_found(tmp_path: Path) -> None:
    bank = Bank(tmp_path, [SHIPPED.parent])
    kernels = rows()
    assert len(kernels) >= 15
    assert not {r["operator"].rpartition("/")[2] for r in kernels} & {e.operator for e in bank}
    hits = [found(bank, r["symptoms"]) for r in kernels]
    missed = [(r["operator"], r["motif"], h) for r, h in zip(kernels, hits, strict=True) if r["motif"] not in h]
    assert len(missed) <= (1 - _NEEDED) * len(kernels), missed
    right, of = len(kernels) - len(missed), len(kernels)
    assert f"{right} of {of} slow kernels" in documented("README.md"), missed
    assert f"Of the {of} planted kernels {right}" in documented("docs/bank.md"), missed


def test_operators_are_found_by_the_others_experience(tmp_path: Path) -> None:
    records = read_records(SHIPPED)
    tried: Counter[str] = Counter()
    hits: Counter[str] = Counter()
    for operator in sorted({e.operator for e in records.experiences.values()}):
        bank = Bank(tmp_path / operator)
        bank.merge(Records({i: e for i, e in records.experiences.items() if e.operator != operator}))
        known = {e.motif for e in bank}
        for e in records.experiences.values():
            if e.operator == operator and e.motif in known:
                tried[e.motif] += 1
                hits[e.motif] += e.motif in found(bank, e.bottleneck)
    share = sum(hits.values()) / sum(tried.values())
    assert share >= _NEEDED, {m: f"{hits[m]} of {n}" for m, n in tried.items()}


def test_no_planted_symptom_names_a_motif() -> None:
    for row in rows():
        assert not any(m.name in row["symptoms"] or m.title in row["symptoms"] for m in MOTIFS)


@pytest.mark.battery
@pytest.mark.parametrize("operator", list(KERNELS))
def test_planted_symptoms_are_what_the_kernels_show(operator: str) -> None:
    folder = settings().cann_ops
    if folder is None:
        pytest.skip("ASCENDOPT_CANN_OPS is not set")
    now = sorted(planted(operator, folder), key=lambda row: (row["motif"], row["place"]))
    assert now == [row for row in rows() if row["operator"] == operator]
