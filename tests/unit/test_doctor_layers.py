"""`doctor` says of each cache layer whether it serves: a wrong path would serve nothing, and nobody would say so."""

from __future__ import annotations

from pathlib import Path

import pytest

from ascendopt_tune.cli import doctor


@pytest.fixture
def layers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "there/entries").mkdir(parents=True)
    (tmp_path / "bundle").mkdir()
    (tmp_path / "bundle/bundle.json").write_text("{}")
    names = ("there", "nowhere", "bundle")
    monkeypatch.setenv("ASCENDOPT_CACHE_LAYERS", ":".join(str(tmp_path / n) for n in names))
    monkeypatch.setenv("ASCENDOPT_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path


def test_results_that_cannot_be_used_are_counted(layers: Path) -> None:
    for name in ("a" * 64, "b" * 64):
        (layers / "there/entries/add" / name).mkdir(parents=True)
        (layers / "there/entries/add" / name / "entry.json").write_text("{")
    there = doctor._layers()[0]
    assert (there.state, there.found) == ("error", f"{layers / 'there'}: 2 of 2 results can't be used")
    assert "cache verify" in there.next_step


def test_each_layer_is_told(layers: Path) -> None:
    there, nowhere, bundle = doctor._layers()
    assert (there.state, there.found) == ("ok", f"{layers / 'there'}: 0 results")
    assert nowhere.state == "error"
    assert str(layers / "nowhere") in nowhere.found
    assert "ASCENDOPT_CACHE_LAYERS" in nowhere.next_step
    assert bundle.state == "error"
    assert "not trusted" in bundle.found
