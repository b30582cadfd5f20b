"""Modules that no rule fits: recorded conversations write their programs, over HTTP, and again without network."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from chat_server import Server
from typer.testing import CliRunner

pytest.importorskip("torch")

from ascendopt_tune.build import toolkit
from ascendopt_tune.cli import app
from ascendopt_tune.errors import SettingsError
from ascendopt_tune.evaluate.evaluator import Evaluator
from ascendopt_tune.generator import Author, Generated, NotGenerated, generate_file
from ascendopt_tune.llm.client import Client, Message, estimate_tokens
from ascendopt_tune.llm.prompts import FOLDER
from ascendopt_tune.nouns.chip import DEFAULT_CHIP, load_chip

CONVERSATIONS = Path(__file__).with_name("conversations")
TASKS = sorted(p.stem for p in CONVERSATIONS.glob("*.txt"))
MOST_TOKENS = 12_000  # of one question
_BEGINS = {"write": "Write a program", "repair": "The program below was written", "improve": "The program below does"}
CHIP = load_chip(DEFAULT_CHIP)
MakeClient = Callable[..., Client]


@dataclass(frozen=True)
class Conversation:
    """``replies``: role, what the program before failed at, text."""

    module: str
    replies: list[tuple[str, str, str]]

    @staticmethod
    def read(task: str) -> Conversation:
        text = "\n" + (CONVERSATIONS / f"{task}.txt").read_text(encoding="utf-8")
        module, *replies = (p.split("\n", 1) for p in text.split("\n=== ")[1:])
        heads = [(*head.partition(" after ")[::2], said) for head, said in replies]
        return Conversation(module[1], heads)

    def failures(self, gate: bool) -> list[str]:
        """What the programs fail at, in order; those after one that only the gate refuses don't come without it."""
        found = [failed for _, failed, _ in self.replies[1:] if failed]
        return found if gate else [f for f in found if f != "gate outcome"]

    def answer(self, messages: list[Message]) -> str:
        """The reply of the role that is asked, to what failed as it is told."""
        said = messages[-1].text
        for role, failed, text in self.replies:
            if said.startswith(_BEGINS[role]) and (not failed or f"## The failure ({failed})" in said):
                return text
        return "NOTHING"


def module_file(task: str, folder: Path) -> Path:
    folder.mkdir(parents=True)
    path = folder / f"{task}.py"
    path.write_text(Conversation.read(task).module, encoding="utf-8")
    return path


def asked(server: Server) -> list[list[Message]]:
    return [[Message(m["role"], m["content"]) for m in r["messages"]] for r in server.requests]


def failed(generated: Generated) -> list[str]:
    return [a.failed for a in generated.attempts if a.failed]


@pytest.mark.parametrize("task", TASKS)
def test_a_conversation_writes_what_no_rule_fits(
    task: str, server: Server, make_client: MakeClient, tmp_path: Path
) -> None:
    """Every program is interpreted beside the module."""
    told = Conversation.read(task)
    server.answer = told.answer
    generated = generate_file(module_file(task, tmp_path / "one"), author=Author(make_client(), CHIP))
    assert failed(generated) == told.failures(gate=False)
    assert generated.schedule == "language model"
    assert len(generated.checked) == 3
    assert all(estimate_tokens("".join(m.text for m in q)) < MOST_TOKENS for q in asked(server))
    assert str(tmp_path) not in str(asked(server))


def test_a_conversation_is_repeated_from_another_folder_without_network(
    server: Server, make_client: MakeClient, tmp_path: Path
) -> None:
    server.answer = Conversation.read("lower_triangle").answer
    path = module_file("lower_triangle", tmp_path / "one")
    with pytest.raises(NotGenerated, match="has no rule"):
        generate_file(path)
    generated = generate_file(path, author=Author(make_client(), CHIP))
    elsewhere = module_file("lower_triangle", tmp_path / "two" / "folders" / "further")
    client = make_client(replay=True, api_key=None, base_url="http://127.0.0.1:9/v1")
    again = generate_file(elsewhere, author=Author(client, CHIP))
    assert (again.text, again.attempts) == (generated.text, generated.attempts)
    assert client.counts.requests == 0
    assert client.counts.replayed == len(server.requests) == 3


def test_the_command_s_programs_go_through_the_gate(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of equal elements are among the gate's inputs, not among the interpreter's."""
    server.answer = Conversation.read("two_largest").answer
    path = module_file("two_largest", tmp_path / "modules")
    with pytest.raises(SettingsError):
        CliRunner().invoke(app, ["generate", str(path), "--text", "--llm"], catch_exceptions=False)
    monkeypatch.setenv("ASCENDOPT_LLM_MODEL", "some-model")
    command = ["generate", str(path), "--llm", "--llm-base-url", server.url, "--out", str(tmp_path / "op"), "--json"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert [(a["role"], a["failed"]) for a in document["attempts"]] == [("write", "gate outcome"), ("repair", "")]
    assert "zeros inputs" in document["attempts"][0]["message"]
    assert document["llm"]["answered"] == 3, "an improvement is asked for, and there is none"
    assert (tmp_path / "op" / "two_largest.dsl.py").is_file()


def test_a_model_that_writes_nothing_right_is_told_so_often_and_no_more(
    server: Server, make_client: MakeClient, tmp_path: Path
) -> None:
    wrong = Conversation.read("reflect_pad").replies[0][2]
    server.answer = lambda messages: wrong
    path = module_file("reflect_pad", tmp_path / "modules")
    with pytest.raises(NotGenerated, match=r"no program that is right: its last program failed \(wrong element\)"):
        generate_file(path, author=Author(make_client(), CHIP, repairs=1))
    assert len(server.requests) == 2


def test_the_prompt_s_page_is_the_documentation_s() -> None:
    page = (FOLDER / "_dsl.md").read_text(encoding="utf-8")
    docs = (Path(__file__).parents[2] / "docs" / "dsl.md").read_text(encoding="utf-8")
    same = page[page.index("## Host function") :].strip()
    assert same in docs
    example = re.search(r"```python\n.*?```", page, re.DOTALL)
    assert example is not None
    assert example.group() in docs


@pytest.mark.battery
@pytest.mark.parametrize("task", TASKS)
def test_every_conversation_s_program_passes_the_gate(
    task: str, server: Server, make_client: MakeClient, tmp_path: Path
) -> None:
    told = Conversation.read(task)
    server.answer = told.answer
    with Evaluator(toolkit.find("virtual")) as evaluator:
        author = Author(make_client(), CHIP, evaluator)
        generated = generate_file(module_file(task, tmp_path / "modules"), author=author)
    assert failed(generated) == told.failures(gate=True)
    assert all(a.time_us for a in generated.attempts if not a.failed)
