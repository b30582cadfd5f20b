"""A misspelled name is answered with the one that was meant; with --json a document tells even what can't be read."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ascendopt_tune.deploy.manifest import read_manifest
from ascendopt_tune.errors import AscendOptError, CaseError, SettingsError
from ascendopt_tune.fidelity.table import chosen
from ascendopt_tune.nouns.case import TensorSpec
from ascendopt_tune.nouns.operator import AttrDef, ParamDef, Signature
from ascendopt_tune.nouns.run_options import RunOptions, check_option
from ascendopt_tune.settings import check_policy, settings
from ascendopt_tune.sources.arguments import build_case, parse_attr
from ascendopt_tune.sources.registry import read_settings

_SIGNATURE = Signature(
    "Norm",
    (ParamDef("gamma", ("float16",)),),
    (),
    (AttrDef("epsilon", "float", 1e-6),),
)


def test_inputs_and_attributes() -> None:
    with pytest.raises(CaseError, match="Did you mean 'gamma'"):
        build_case(_SIGNATURE, {"gama": TensorSpec("float16", (8,))}, {}, {}, None)
    with pytest.raises(CaseError, match="Did you mean 'epsilon'"):
        parse_attr("epsilom=1", _SIGNATURE)


def test_options_of_a_run() -> None:
    with pytest.raises(CaseError, match="Did you mean 'rules'"):
        RunOptions(proposer="rule")


def test_names_of_options_and_policies() -> None:
    with pytest.raises(SettingsError, match="Did you mean 'budget'"):
        check_option("budgt", 3)
    with pytest.raises(SettingsError, match="Did you mean 'blocking'"):
        check_policy("blockin")
    with pytest.raises(SettingsError, match="Did you mean 'ASCENDOPT_BUDGET'"):
        settings({"ASCENDOPT_BUDGT": "3"})


def test_scenarios() -> None:
    with pytest.raises(CaseError, match="Did you mean 'data_copy'"):
        chosen(["data_cpoy"])


@pytest.mark.parametrize(
    ("text", "meant"),
    [('[[operator]]\nsource = "rms_nrom"\n', "rms_norm"), ('[[operater]]\nsource = "rms_norm"\n', "operator")],
)
def test_manifests(tmp_path: Path, text: str, meant: str) -> None:
    (tmp_path / "m.toml").write_text(text)
    with pytest.raises(AscendOptError, match=f"Did you mean '{meant}'"):
        read_manifest(tmp_path / "m.toml", RunOptions())


def test_op_toml(tmp_path: Path) -> None:
    (tmp_path / "op.toml").write_text('sumary = "one line"\n')
    with pytest.raises(AscendOptError, match="Did you mean 'summary'"):
        read_settings(tmp_path / "op.toml")


@pytest.mark.parametrize("line", [["tune", "add", "--budgt", "3"], ["rnu", "add"], ["cache", "show"]])
def test_a_line_that_cannot_be_read_is_a_document(line: list[str]) -> None:
    command = [sys.executable, "-m", "ascendopt_tune", *line, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    error = json.loads(done.stdout)["error"]
    assert error["message"]
    assert "Usage" in done.stderr  # for the person before it
