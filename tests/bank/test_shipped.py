"""The shipped bank: how much there is, that it is whole, and that its commands measure again what it says."""

from __future__ import annotations

import json
import random
import shlex
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from kernel_kinds import vector_operators
from typer.testing import CliRunner

from ascendopt_tune import paths
from ascendopt_tune.bank.bank import FILE, Bank, read_records
from ascendopt_tune.bank.distill import diff
from ascendopt_tune.bank.experience import Experience
from ascendopt_tune.bank.rewind import PUT_IN
from ascendopt_tune.cli import app
from ascendopt_tune.deploy.mining import motif_applier, motif_remover
from ascendopt_tune.nouns.chip import chip_names
from ascendopt_tune.search.kernel.motifs import MOTIFS
from ascendopt_tune.sources.registry import load_operator, operator_names

SHIPPED = paths.shipped("cache") / "bank"
_AS_OFTEN = 0.05  # of the time; the model may have become better since an experience was measured


@pytest.fixture(scope="module")
def shipped() -> list[Experience]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a damaged line is a warning
        return list(read_records(SHIPPED / FILE).counted().values())


def test_there_is_enough_of_it(shipped: list[Experience]) -> None:
    families = Counter(e.motif for e in shipped)
    assert len(shipped) >= 150
    assert len(families) >= 15, families
    assert set(families) <= {m.name for m in MOTIFS}
    assert {e.operator for e in shipped} == vector_operators()  # no motif knows cube cores yet
    assert len({e.dtype for e in shipped}) >= 3
    assert len({e.chip for e in shipped} & set(chip_names())) >= 5
    readme = " ".join((Path(__file__).parents[2] / "README.md").read_text().split())
    assert f"{len(shipped)} experiences of {len(families)} kinds" in readme


def test_every_experience_is_validated_and_has_its_command(shipped: list[Experience]) -> None:
    for e in shipped:
        assert e.validated
        assert e.speedup is not None
        assert e.speedup > 1.02
        words = shlex.split(e.provenance.command)
        assert words[:4] == ["ascendopt-tune", "bank", "build", e.operator]
        name, _, site = words[-1].partition(":")
        assert (name.removeprefix("+"), site) == (e.motif, e.site)
        assert e.diff.startswith("--- slow/")
        assert e.bottleneck
        assert e.before is not None


def test_no_bottleneck_names_its_motif(shipped: list[Experience]) -> None:
    """The retrieval key says what a profile and a syntax tree show; a motif's name or title in it would be a label."""
    for e in shipped:
        for motif in MOTIFS:
            assert motif.name not in e.bottleneck
            assert motif.title not in e.bottleneck


def test_the_users_bank_has_it(tmp_path: Path, shipped: list[Experience]) -> None:
    bank = Bank(tmp_path, [SHIPPED])
    assert len(bank) == len(shipped)
    assert bank.add(shipped) == 0


def test_every_change_is_what_its_motif_does(shipped: list[Experience]) -> None:
    """Each diff is made again from the operator's sources: the removal its command names is still found, and the same.

    The tiling key a case leads to isn't known without running it, so all keys of the registry are tried.
    """
    made: dict[tuple[str, str, str], set[str]] = {}
    for name in operator_names():
        operator = load_operator(name)
        for key in (None, 0, 1, 2):
            for sign, change in (("", motif_remover(operator, key)), (PUT_IN, motif_applier(operator, key))):
                for r in change(operator.baseline):
                    pairs = (operator.baseline, r.pair) if sign else (r.pair, operator.baseline)
                    made.setdefault((name, f"{sign}{r.motif}", r.site), set()).add(diff(*pairs))
    for e in shipped:
        motif, _, site = shlex.split(e.provenance.command)[-1].partition(":")
        assert e.diff in made.get((e.operator, motif, site), ()), e.provenance.command


def _again(e: Experience, folder: Path) -> Experience:
    """What the command of an experience finds now."""
    arguments = shlex.split(e.provenance.command)[1:]
    done = CliRunner().invoke(app, [*arguments, "--bank", str(folder), "--json"])
    assert done.exit_code == 0, done.output
    document: dict[str, Any] = json.loads(done.stdout)
    return Experience.from_json(document["experiences"][-1])


def _same(now: Experience, e: Experience) -> None:
    assert now.id == e.id, "another change"
    assert now.kind == "positive"
    assert now.speedup is not None
    assert now.speedup > 1.02
    if (
        now.provenance.toolkit != e.provenance.toolkit
    ):  # measured on another clock: it still hurts, by as much as it does
        return
    for old, new in ((e.before, now.before), (e.after, now.after)):
        assert old is not None
        assert new is not None
        assert new.task_duration_us == pytest.approx(old.task_duration_us, rel=_AS_OFTEN)


def test_a_command_measures_again_what_the_bank_says(shipped: list[Experience], tmp_path: Path) -> None:
    e = min((e for e in shipped if e.motif == "double-buffer"), key=lambda e: (len(e.case), e.id))
    _same(_again(e, tmp_path), e)


@pytest.mark.battery
@pytest.mark.parametrize("motif", [m.name for m in MOTIFS])
def test_commands_of_every_motif(motif: str, shipped: list[Experience], tmp_path: Path) -> None:
    found = [e for e in shipped if e.motif == motif]
    for e in random.Random(motif).sample(found, min(2, len(found))):
        _same(_again(e, tmp_path), e)
