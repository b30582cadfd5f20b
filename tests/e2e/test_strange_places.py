"""Folders, terminals and readers that are unusual: odd names, other encodings, a closed pipe, a full disk."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from stopping import interrupted
from typer.testing import CliRunner

import ascendopt_tune
from ascendopt_tune import paths
from ascendopt_tune.build import host
from ascendopt_tune.build.toolkit import host_compiler
from ascendopt_tune.cli import app, prebuild, tune
from ascendopt_tune.files import write_whole
from ascendopt_tune.search.journal import read_journal

Cli = Callable[..., subprocess.CompletedProcess[str]]
Refused = Callable[..., str]
ADD = ["--input", "x=float32[8,32]", "--input", "y=float32[8,32]", "--target", "virtual"]
ODD = "a b'c\"d\\e é核 #$$x"


def said(*arguments: str, **how: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ascendopt_tune", *arguments]
    return subprocess.run(command, stderr=subprocess.PIPE, encoding="utf-8", check=False, timeout=300, **how)  # type: ignore[call-overload, no-any-return]


# -- names ------------------------------------------------------------------------------------------------------------


def test_an_operator_in_a_folder_with_an_odd_name(cli: Cli, refused: Refused, tmp_path: Path) -> None:
    """It runs, and where it doesn't compile, its files are named as they are."""
    operator = tmp_path / ODD / "add"
    shutil.copytree(paths.shipped("registry") / "add", operator)
    cli("run", str(operator), *ADD)
    for part in ("op_kernel", "op_host"):
        source = operator / part / "add.cpp"
        source.write_text(source.read_text() + "\n#error mend me\n")
        assert f"{source}:" in refused("run", str(operator), *ADD)


def test_a_folder_whose_name_is_no_text(refused: Refused, tmp_path: Path) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/bad\xff"))
    shutil.copytree(paths.shipped("registry") / "add", folder)
    assert "is no UTF-8 text. Rename it." in refused("run", str(folder), *ADD)


def test_what_a_compiler_says_it_has_read(tmp_path: Path) -> None:
    """Written for make, with blanks, number signs and dollars; else a changed header would not be noticed."""
    folder = tmp_path / ODD
    folder.mkdir()
    names = ["plain.h", "with blank.h", "hash#.h", "dollar$.h", "back\\slash.h", "back\\ blank.h", "é核.h"]
    for name in names:
        (folder / name).write_text("\n")
    source, deps = folder / "s.cpp", tmp_path / "d"
    source.write_text("".join(f'#include "{name}"\n' for name in names))
    subprocess.run([host_compiler(), "-MD", "-MF", str(deps), "-c", source, "-o", tmp_path / "o"], check=True)
    assert set(map(str, folder.iterdir())) <= set(host._prerequisites(deps))


def test_a_file_whose_name_is_as_long_as_names_may_be(tmp_path: Path) -> None:
    for name in ("n" * 250 + ".json", "核" * 80 + ".json", "n." + "s" * 250):
        write_whole(tmp_path / name, "text")
        assert (tmp_path / name).read_text() == "text"


# -- terminals and readers --------------------------------------------------------------------------------------------


def test_a_terminal_whose_encoding_lacks_a_character(tmp_path: Path) -> None:
    ascii_only = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "COLUMNS": "60"}
    done = said("explain", "add", stdout=subprocess.PIPE, env=ascii_only)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.isascii()


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["explain", "add"], ["ops"]])
def test_a_reader_that_has_gone(arguments: list[str]) -> None:
    """The exit code of a program that nobody reads any more, not that of an operator that fails its checks."""
    read, write = os.pipe()
    os.close(read)
    done = said(*arguments, stdout=write)
    os.close(write)
    assert done.returncode == 141, done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


@pytest.mark.parametrize("arguments", [["explain", "add"], ["cache", "list"], ["ops", "--json"]])
def test_a_standard_output_that_is_full(arguments: list[str]) -> None:
    with open("/dev/full", "w") as full:
        done = said(*arguments, stdout=full)
    assert done.returncode == 2, done.stderr
    assert done.stderr.splitlines()[-1].startswith(
        "error: what it prints can't be written to standard output: No space left on device. Free some space there"
    )
    assert "Exception ignored" not in done.stderr


def test_a_log_that_is_full_ends_no_run(own_cache: Path) -> None:
    """What is told on the way goes to standard error, and a disk that is full there is no reason to end."""
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "ascendopt_tune", "run", "add", *ADD]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=full, check=False)
        refused = subprocess.run([*command[:4], "nosuch"], stdout=subprocess.PIPE, stderr=full, check=False)
    assert (done.returncode, b"no hazard" in done.stdout) == (0, True)
    assert (refused.returncode, refused.stdout) == (2, b"")


# -- Ctrl-C -----------------------------------------------------------------------------------------------------------

IMPORTING = """
import sys
class Interrupt:
    def find_spec(self, name, *rest):
        if name == "typer":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupt())
from ascendopt_tune.__main__ import main
main()
"""


def test_ctrl_c_before_a_command_has_begun() -> None:
    done = subprocess.run([sys.executable, "-c", IMPORTING], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "interrupted\n")


def test_ctrl_c_when_the_result_is_kept_already(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache is not said to be unchanged."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(tune, "_save_results", interrupt)
    arguments = ["tune", "add", *ADD, "--budget", "1", "--outputs", str(tmp_path / "out.npz")]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 130
    assert "interrupted; the result is in the cache." in done.stderr
    assert "unchanged" not in done.stderr
    monkeypatch.undo()


def test_ctrl_c_in_a_run_that_is_made_anew_names_what_goes_on_there() -> None:
    """``--retune`` alone forgets the journal."""
    done = interrupted(["building"], ["tune", "add", *ADD, "--budget", "2", "--retune"])
    assert done.returncode == 130, done.stderr
    assert "trials that ended are on disk. The same command with --resume goes on there." in done.stderr


def test_a_result_that_cannot_be_kept_says_where_its_trials_are(refused: Refused, own_cache: Path) -> None:
    """And there they are."""
    (own_cache / "entries").write_text("")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ASCENDOPT_CACHE_DIR", str(own_cache))
        run = ["tune", "add", *ADD, "--budget", "2"]
        assert "The trials are in the journal" in refused(*run)
        (journal,) = (own_cache / "journals").iterdir()
        assert len(read_journal(journal).outcomes) == 2
        (own_cache / "entries").unlink()
        done = said(*run, "--resume", stdout=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    assert "going on after 2 evaluations" in done.stderr
    assert not journal.exists()


# -- prebuild ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    file = tmp_path / "manifest.toml"
    inputs = '{ x = "float32[8,32]", y = "float32[8,32]" }'
    file.write_text(f'[[operator]]\nsource = "add"\n[[operator.case]]\ninputs = {inputs}\n')
    return file


def test_a_bundle_that_cannot_be_made_is_refused_before_anything_is_tuned(
    refused: Refused, manifest: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "something").write_text("")
    (tmp_path / "folder.tar.gz").mkdir()
    for place, why in {
        "file": "no bundle",
        "full": "no bundle",
        "folder.tar.gz": "is a folder",
        "file/below": "can't be written",
    }.items():
        assert why in refused("prebuild", str(manifest), "-o", str(tmp_path / place))
    assert "no key" in refused(
        "prebuild", str(manifest), "-o", str(tmp_path / "new"), "--sign", str(tmp_path / "no key")
    )


def test_ctrl_c_before_the_first_result_of_a_prebuild(manifest: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(prebuild, "prebuild", interrupt)
    done = CliRunner().invoke(app, ["prebuild", str(manifest), "-o", str(manifest.parent / "bundle"), "--json"])
    assert done.exit_code == 130
    assert "there is no bundle" in done.stderr
    assert '"kind": "Interrupted"' in done.stdout
    assert not (manifest.parent / "bundle").exists()


def test_a_locale_that_knows_no_utf_8_is_told_of(tmp_path: Path) -> None:
    folder = tmp_path / "опе"
    shutil.copytree(paths.shipped("registry") / "add", folder)
    locale = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(
        [sys.executable, "-m", "ascendopt_tune", "run", str(folder), *ADD],
        capture_output=True, check=False, env={**os.environ, **locale},
    )  # fmt: skip
    assert done.returncode == 2
    assert b"PYTHONUTF8=1" in done.stderr


def test_an_archive_is_refused_when_it_is_imported(tmp_path: Path) -> None:
    package = Path(ascendopt_tune.__file__).parent
    with zipfile.ZipFile(tmp_path / "package.zip", "w") as archive:
        archive.write(package / "__init__.py", "ascendopt_tune/__init__.py")
    done = subprocess.run(
        [sys.executable, "-c", "import ascendopt_tune"],
        capture_output=True, text=True, check=False, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "package.zip")},
    )  # fmt: skip
    assert "can't run from an archive" in done.stderr
    assert "Install it with pip" in done.stderr
