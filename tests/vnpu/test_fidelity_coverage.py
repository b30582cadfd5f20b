"""What the intervals over plausible clocks hold of published values and of published ratios."""

import json
from dataclasses import replace

from typer.testing import CliRunner

from ascendopt_tune.cli import app
from ascendopt_tune.fidelity import measured, runner, table
from ascendopt_tune.fidelity.compare import ComparedRow
from ascendopt_tune.fidelity.coverage import coverage
from ascendopt_tune.fidelity.ranking import pairs
from ascendopt_tune.nouns.clocks import plausible

FAMILY = "mhc_expand_empty"  # an empty operator on 1 to 40 cores, by which the launch was fitted


def test_a_ratio_counts_as_inside_accepted_or_reversed() -> None:
    modelled = list(runner.run(table.chosen([FAMILY], slow=False, cold=False), None, plausible))
    published = measured.points()
    found = coverage(modelled, published, table.families())
    assert found.pairs == found.accepted == 12, (
        "five numbers of cores, of which the two smallest differ by less than told"
    )
    assert found.reversed == 0
    assert found.pairs_inside >= 11
    # The same with the modelled order turned around: every published gain is then a modelled loss.
    by_time = sorted(modelled, key=lambda m: m.profile.task_duration_us)
    turned = [
        replace(one, profile=other.profile, replayed=other.replayed)
        for one, other in zip(by_time, reversed(by_time), strict=True)
    ]
    found = coverage(turned, published, table.families())
    assert found.accepted == 0
    assert found.reversed >= 9, "of some pairs the model has the times equal, or nearly"
    assert found.pairs_inside == 0


def test_pairs_of_a_family_that_is_not_ranked_are_its_published_gains() -> None:
    (family,) = (f for f in table.families() if f.name == "concat_tasks")
    of = {point: scenario.name for scenario in family.scenarios for point in scenario.points}
    rows = [
        ComparedRow(row, row.value, of[row.id], "")
        for row in measured.points()
        if row.id in of and row.metric == "task_duration_us"
    ]
    found = {(pair.slow, pair.fast) for pair in pairs(rows, [family])}
    assert found == {(gain.slow, gain.fast) for gain in family.gains}
    assert len(found) < len(list(pairs(rows, [replace(family, ranked=True)])))


def test_the_command_prints_it() -> None:
    result = CliRunner().invoke(app, ["fidelity", FAMILY, "--intervals", "--json"])
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert document["time"] == "modelled"
    assert document["pairs"] == document["accepted"] == 12
