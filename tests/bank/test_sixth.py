"""The sixth reading: its table is that of the page, its motifs are right, and no other reading has its operators."""

from __future__ import annotations

import blind
import fifth
import fourth
import outside
import pytest
import sixth
import third

from ascendopt_tune.search.kernel.motifs import MOTIFS
from ascendopt_tune.settings import settings


def test_the_page_has_the_table() -> None:
    page = blind.PAGE.read_text()
    table = fourth.table(fourth.findings(sixth.READING))
    assert page.partition(sixth.BEGIN)[2].partition(sixth.END)[0].strip() == table


def test_what_meets_a_finding_is_a_motif_of_its_class() -> None:
    known, met_by = {m.name for m in MOTIFS}, outside.met_by()
    for finding in fourth.findings(sixth.READING):
        assert finding.first | finding.met <= known, finding
        assert finding.first | finding.met <= met_by.get(finding.kind, (frozenset(), ""))[0], finding
        assert finding.spans, finding
        assert finding.met or not finding.first, f"no longer met: {finding}"


def test_no_operator_of_it_is_in_another_reading() -> None:
    names = {f.op.rpartition("/")[2] for f in fourth.findings(sixth.READING)}
    others = {op.rpartition("/")[2] for op in (*outside.wild(), *(f.op for f in blind.reading()))}
    more = {
        row["op"].rpartition("/")[2] for of in (third.READING, fourth.READING, fifth.READING) for row in blind.rows(of)
    }
    assert len(names) == 12
    assert not names & (others | more)


def test_findings_are_met_where_they_were() -> None:
    folders = {"ops-nn": settings().ops_nn, "ops-math": settings().ops_math}
    here = {name: folder for name, folder in folders.items() if folder is not None}
    if not here:
        pytest.skip("neither ASCENDOPT_OPS_NN nor ASCENDOPT_OPS_MATH is set")
    assert list(fourth.unconfirmed(here, fourth.findings(sixth.READING))) == []
