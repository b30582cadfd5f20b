"""The later readings: their tables are those of the page, their motifs are right, and no two have an operator."""

from __future__ import annotations

import all_readings
import blind
import later
import outside
import pytest
import third

from ascendopt_tune.search.kernel.motifs import MOTIFS
from ascendopt_tune.settings import settings

each = pytest.mark.parametrize("reading", later.READINGS, ids=lambda reading: reading.name)


@each
def test_the_page_has_the_table(reading: later.Reading) -> None:
    begin, end = reading.marks
    found = blind.PAGE.read_text().partition(begin)[2].partition(end)[0].strip()
    assert found == later.table(reading.findings())


@each
def test_what_meets_a_finding_is_a_motif_of_its_class(reading: later.Reading) -> None:
    known, met_by = {m.name for m in MOTIFS}, outside.met_by()
    for finding in reading.findings():
        assert finding.first | finding.met <= known, finding
        assert finding.first | finding.met <= met_by.get(finding.kind, (frozenset(), ""))[0], finding
        assert finding.spans, finding
        assert finding.met or not finding.first, f"no longer met: {finding}"


@each
def test_no_operator_of_it_is_in_another_reading(reading: later.Reading) -> None:
    names = {blind.named(f.op) for f in reading.findings()}
    others = {op.rpartition("/")[2] for op in (*outside.wild(), *(f.op for f in blind.reading()))}
    files = [third.READING, *(r.file for r in later.READINGS if r != reading)]
    more = {blind.named(row["op"]) for file in files for row in blind.rows(file)}
    assert len(names) == reading.operators
    assert not names & (others | more)


@each
def test_findings_are_met_where_they_were(reading: later.Reading) -> None:
    folders = {"ops-nn": settings().ops_nn, "ops-math": settings().ops_math}
    here = {name: folder for name, folder in folders.items() if folder is not None}
    if not here:
        pytest.skip("neither ASCENDOPT_OPS_NN nor ASCENDOPT_OPS_MATH is set")
    assert list(later.unconfirmed(here, reading.findings())) == []


def test_the_page_has_the_table_of_all_readings() -> None:
    page = blind.PAGE.read_text()
    found = page.partition(all_readings.BEGIN)[2].partition(all_readings.END)[0].strip()
    assert found == all_readings.table()
