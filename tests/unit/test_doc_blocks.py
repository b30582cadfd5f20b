"""Every code block of the documentation is run, or says why it isn't; all of them can at least be read."""

from __future__ import annotations

import ast
import json
import re
import shlex
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import typer
from doc_blocks import NO_CODE, ROOT, Block, all_blocks, run_blocks
from host_examples import write_operator

from ascendopt_tune.cli import app
from ascendopt_tune.deploy.manifest import read_manifest
from ascendopt_tune.service.neighbours import rules_of
from ascendopt_tune.sources.registry import load_folder

BLOCKS = all_blocks()
CODE = [b for b in BLOCKS if b.language not in NO_CODE]
#: Pages whose tested blocks a test runs: README, tour and the life of a DataCopy in e2e/test_examples.py, the tutorial
#: in e2e/test_first_hour.py, the rest in e2e/test_doc_commands.py and below.
RUN = {
    "README.md", "docs/tour.md", "docs/life_of_a_datacopy.md", "docs/tutorial.md", "docs/dsl.md",
    "docs/bring.md", "docs/deploy.md", "docs/operators.md", "docs/runtime.md", "docs/serving.md",
}  # fmt: skip


def test_every_block_says_how_it_is_run() -> None:
    assert len(CODE) > 50
    for block in BLOCKS:
        assert block.language, f"{block.place}: a language, or text"
        if block.language in NO_CODE:
            continue
        assert block.how in ("tested", "covered", "not run"), f"{block.place}: how is it run? (tests/doc_blocks.py)"
        if block.how == "covered":
            file, _, name = block.what.partition("::")
            assert (ROOT / file).exists(), f"{block.place}: {file}"
            assert name in (ROOT / file).read_text(), f"{block.place}: {name}"
        elif block.how == "not run":
            assert len(block.what) > 4, f"{block.place}: why?"
        else:
            assert block.page in RUN, f"{block.place}: which test runs it?"


def test_python_can_be_read() -> None:
    programs = [b for b in CODE if b.language == "python"]
    assert len(programs) > 10
    for block in programs:
        ast.parse(block.text)


def _commands(block: Block) -> list[list[str]]:
    """The ``ascendopt-tune`` commands of a block, without what the shell does around them."""
    text = re.sub(r"\\\n", " ", block.text)
    lines = [shlex.split(line, comments=True) for line in text.splitlines()]
    found = []
    for words in lines:
        if "ascendopt-tune" in words:
            words = words[words.index("ascendopt-tune") + 1 :]
            ends = [i for i, word in enumerate(words) if word in ("&&", "|", ">", ";")]
            found.append(words[: ends[0]] if ends else words)
    return found


def _unknown(words: list[str]) -> str | None:
    """The first command or option that the command line doesn't have."""
    command: Any = typer.main.get_command(app)
    while hasattr(command, "commands") and words and not words[0].startswith("-"):
        name, *words = words
        if name not in command.commands:
            return name
        command = command.commands[name]
    options = {option for p in command.params for option in (*p.opts, *p.secondary_opts)}
    return next((w for w in words if re.fullmatch(r"--?[a-zA-Z][\w-]*", w) and w not in options | {"--help"}), None)


def test_commands_and_options_exist() -> None:
    seen = 0
    for block in (b for b in CODE if b.language == "sh"):
        done = subprocess.run(["sh", "-n"], input=block.text, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{block.place}: {done.stderr}"
        for words in _commands(block):
            seen += 1
            assert _unknown(words) is None, f"{block.place}: {_unknown(words)} in {shlex.join(words)}"
    assert seen > 60


def test_tables_are_taken_by_what_reads_them(tmp_path: Path) -> None:
    for block in (b for b in CODE if b.language == "toml"):
        tomllib.loads(block.text)
    call = {"operator": "silu", "inputs": {"x": "float32[8,8]"}}
    (tmp_path / "calls.json").write_text(json.dumps({"calls": [call]}))
    (deploy,) = [b for b in run_blocks("docs/deploy.md") if b.language == "toml"]
    (serving,) = [b for b in run_blocks("docs/serving.md") if b.language == "toml"]
    for block, wishes in (deploy, 7), (serving, 1):
        (tmp_path / "manifest.toml").write_text(block.text)
        assert len(read_manifest(tmp_path / "manifest.toml")) >= wishes
    (operator,) = [b for b in run_blocks("docs/operators.md") if b.language == "toml"]
    folder = write_operator(tmp_path)
    (folder / "op.toml").write_text(operator.text)
    loaded = load_folder(folder)
    assert loaded.settings["summary"] == "one line"
    (bucket,) = run_blocks("docs/runtime.md")
    (folder / "op.toml").write_text(bucket.text)
    assert rules_of(load_folder(folder), None)["x"] == ("pow2", "exact")
