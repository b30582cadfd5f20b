"""The third reading, of which one half was held back: its table is that of docs/motifs.md, its motifs are right."""

from __future__ import annotations

import hashlib

import blind
import outside
import pytest
import third

from ascendopt_tune.search.kernel.motifs import MOTIFS
from ascendopt_tune.settings import settings


def test_the_page_has_the_table() -> None:
    page = blind.PAGE.read_text()
    assert page.partition(third.BEGIN)[2].partition(third.END)[0].strip() == third.table()


def test_what_meets_a_finding_is_a_motif_of_its_class() -> None:
    known, met_by = {m.name for m in MOTIFS}, outside.met_by()
    for finding in map(blind.finding_of, blind.rows(third.READING)):
        assert finding.first | finding.met <= known, finding
        assert finding.first | finding.met <= met_by.get(finding.kind, (frozenset(), ""))[0], finding
        assert finding.spans or not finding.met, finding
        assert finding.met or not finding.first, f"no longer met: {finding}"


def test_halves_are_every_other_operator_by_the_hash_of_its_path() -> None:
    halves = {}
    for row in blind.rows(third.READING):
        below = f"{third._BELOW[row['repository']]}/" if row["repository"] in third._BELOW else ""
        halves[f"{row['repository']}/{below}{row['op']}"] = row["half"]
    ordered = sorted(halves, key=lambda path: hashlib.sha256(path.encode()).hexdigest())
    assert [halves[path] for path in ordered] == ["mend", "held"] * 8


def test_no_operator_of_it_is_in_another_reading() -> None:
    names = {row["op"].rpartition("/")[2] for row in blind.rows(third.READING)}
    others = {op.rpartition("/")[2] for op in (*outside.wild(), *(f.op for f in blind.reading()))}
    assert not names & others


def test_findings_are_met_where_they_were() -> None:
    folders = {"cann-ops": settings().cann_ops, "ops-nn": settings().ops_nn}
    folders["ops-transformer"] = settings().ops_transformer
    here = {name: folder for name, folder in folders.items() if folder is not None}
    if not here:
        pytest.skip("ASCENDOPT_CANN_OPS, ASCENDOPT_OPS_NN and ASCENDOPT_OPS_TRANSFORMER are not set")
    assert list(third.unconfirmed(here)) == []
