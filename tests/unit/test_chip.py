"""Chip files: shipped ones by name, one's own by path and content."""

from __future__ import annotations

from pathlib import Path

import pytest

from ascendopt_tune.errors import CaseError
from ascendopt_tune.nouns.chip import chip_key, chip_names, load_chip

TEXT = """
[chip]
inherits = "architecture/2201"
soc_version = "Ascend910B2"
[core]
aiv = 7
[launch]
base_us = { value = 0.6, low = 0.5, high = 0.7, source = "mine" }
"""


def test_a_shipped_chip_has_constants_with_intervals_and_sources() -> None:
    for name in chip_names():
        chip = load_chip(name)
        assert chip.name == chip.option == chip_key(name) == name
        for key, c in chip.constants.items():
            assert c.low <= c.value <= c.high, key
            assert c.source, key


def test_an_own_file_is_known_by_what_it_says(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(TEXT)
    chip = load_chip(str(file))
    assert chip.values["core.aiv"] == 7
    assert chip.values["memory.ub_bytes"] == 196608  # inherited
    assert chip.constants["launch.base_us"].value == 0.6
    assert chip.name.startswith("mine-")
    assert chip_key(str(file)) == chip.name
    file.write_text(TEXT.replace("0.6", "0.65"))
    changed = load_chip(str(file))
    assert changed.name != chip.name
    assert changed.constants["launch.base_us"].value == 0.65
    # What was found with the old content can still be read, by its name.
    assert load_chip(chip.name).constants["launch.base_us"].value == 0.6
    assert Path(chip.option).read_text() == TEXT
    copy = tmp_path / "other" / "mine.toml"
    copy.parent.mkdir()
    copy.write_text(TEXT)
    assert load_chip(str(copy)).name == chip.name
    assert load_chip(chip.option).name == chip.name


def test_a_file_may_inherit_a_part_with_what_that_inherits(tmp_path: Path) -> None:
    file = tmp_path / "dirty.toml"
    file.write_text('[chip]\ninherits = "ascend910b2"\n[flushed]\ndirty_share = 0.25\n')
    chip, part = load_chip(str(file)), load_chip("ascend910b2")
    assert chip.values["flushed.dirty_share"] == 0.25 != part.values["flushed.dirty_share"]
    assert chip.values["core.aiv"] == part.values["core.aiv"]  # the part's own
    assert chip.constants["memory.l2_gb_per_s"] == part.constants["memory.l2_gb_per_s"]  # its architecture's


def test_what_is_wrong_with_a_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(CaseError, match="can't be read"):
        load_chip(str(tmp_path / "none.toml"))
    (tmp_path / "bad.toml").write_text("[core\n")
    with pytest.raises(CaseError, match="is no TOML"):
        load_chip(str(tmp_path / "bad.toml"))
    for text, says in (
        ('inherits = "ascend910b2"\n', "'inherits' outside of a section"),
        ("[flushed]\ndirty_share = 0.25\n", "nothing of its cores and inherits nothing"),
    ):
        (tmp_path / "bad.toml").write_text(text)
        with pytest.raises(CaseError, match=says):
            load_chip(str(tmp_path / "bad.toml"))
    with pytest.raises(CaseError, match="unknown chip"):
        load_chip("mine-00000000")
