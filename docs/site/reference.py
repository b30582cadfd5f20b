"""Reference pages, made when the site is built: the command line from its own parsers, Python from docstrings."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import typer
from rich.text import Text

import ascendopt_tune
from ascendopt_tune import dsl
from ascendopt_tune.cli import app
from ascendopt_tune.cli.first import first_steps
from ascendopt_tune.dsl.ops import OPS


def command_line() -> str:
    """Every command with its arguments, options and examples, as ``--help`` tells them."""
    root = typer.main.get_command(app)
    context = typer.Context(root, info_name="ascendopt-tune")
    lines = ["# Command line", "", _plain(root.help), "", _plain(root.epilog), ""]
    lines += ["`ascendopt-tune` alone says:", "", "```text", first_steps().rstrip(), "```"]
    for name in root.list_commands(context):
        lines += _command(root.get_command(context, name), context, name, 2)
    return "\n".join(lines) + "\n"


def _command(command: Any, parent: Any, name: str, level: int) -> Iterator[str]:
    context = typer.Context(command, info_name=name, parent=parent)
    yield from ("", f"{'#' * level} {context.command_path.removeprefix('ascendopt-tune ')}", "")
    yield from ("```text", " ".join(command.get_usage(context).removeprefix("Usage: ").split()), "```", "")
    yield from (_plain(command.help), "")
    records = [r for p in command.get_params(context) if "--help" not in p.opts and (r := p.get_help_record(context))]
    if records:
        yield from ("| | |", "|---|---|", *(f"| `{_cell(what)}` | {_cell(_escaped(says))} |" for what, says in records))
    yield from _epilog(command.epilog or "")
    if hasattr(command, "list_commands"):
        for inner in command.list_commands(context):
            yield from _command(command.get_command(context, inner), context, inner, level + 1)


def _epilog(text: str) -> Iterator[str]:
    """Examples as code, what is said about them as prose."""
    commands: list[str] = []
    for paragraph in Text.from_markup(text).plain.split("\n\n"):
        if paragraph.strip() == "Examples" or not paragraph.strip():
            continue
        if re.match(r"(\w+=\S+ )*(ascendopt-tune|g\+\+|eval|export|python) ?", paragraph.strip()):
            commands.append(paragraph.strip())
        else:
            yield from ("", _escaped(paragraph))
    if commands:
        yield from ("", "```sh", *commands, "```")


def python() -> str:
    """``ascendopt_tune.__all__``: signatures and docstrings."""
    intro = (
        "# Python\n\n`import ascendopt_tune as aot`, before torch. Functions first, then the classes that they take "
        "and give.\n"
    )
    names = ascendopt_tune.__all__
    functions = [n for n in names if not inspect.isclass(getattr(ascendopt_tune, n))]
    classes = [n for n in names if n not in functions]
    return intro + "".join(_named(ascendopt_tune, "aot", n) for n in (*functions, *classes))


def tile_language() -> str:
    """What ``ascendopt_tune.dsl`` exports, and the vector operations of kernels."""
    intro = (
        "# The tile language in Python\n\n`import ascendopt_tune.dsl as tl`. The words of kernels and host functions "
        "are read, never called: [the language](../docs/dsl.md) has them all. These are called.\n"
    )
    rows = "".join(
        f"| `{name}` | {len(rule.operands)} | {', '.join(rule.dtypes)} | {'yes' if rule.exact else 'no'} |\n"
        for name, rule in OPS.items()
    )
    table = "| operation | operands | dtypes | bit for bit as interpreted |\n|---|--:|---|---|\n"
    named = "".join(_named(dsl, "tl", name) for name in dsl.__all__)
    return f"{intro}{named}\n## Vector operations\n\n{table}{rows}"


def _named(module: ModuleType, prefix: str, name: str) -> str:
    thing = getattr(module, name)
    called = f"{prefix}.{name}"
    lines = ["", f"## {called}", ""]
    if inspect.isclass(thing) and issubclass(thing, Exception):
        signature = None
    else:
        try:
            signature = str(inspect.signature(thing))
        except ValueError:
            signature = None
    if signature is not None:
        lines += ["```python", f"{called}{_short(signature)}", "```", ""]
    lines += [_docstring(thing), ""]
    if inspect.isclass(thing):
        lines += _members(thing)
    return "\n".join(lines) + "\n"


def _members(kind: type) -> Iterator[str]:
    """Fields of a record, then public methods that have something to say."""
    if dataclasses.is_dataclass(kind):
        fields = [f for f in dataclasses.fields(kind) if not f.name.startswith("_")]
        yield from ("| field | type |", "|---|---|")
        yield from (f"| `{f.name}` | `{_cell(_short(str(f.type)))}` |" for f in fields)
        yield ""
    for name, method in vars(kind).items():
        function = getattr(method, "__func__", method)
        if name.startswith("_") or not inspect.isfunction(function) or not function.__doc__:
            continue
        yield from (f"**`{name}{_short(str(inspect.signature(function)))}`**", "", _docstring(function), "")


def _docstring(thing: object) -> str:
    """The docstring; its sections as lists, its literal blocks as code."""
    text = inspect.getdoc(thing) or ""
    if not text:
        raise ValueError(f"{thing!r} has no docstring")
    text = re.sub(r"^(Args|Returns|Raises):\n((?:    .*\n?|\n)+)", _section, text, flags=re.MULTILINE)
    text = re.sub(r"(^|:):\n\n((?:    .*(?:\n|$)|\n(?=\n*    ))+)", _literal_block, text, flags=re.MULTILINE)
    text = re.sub(r"``([^`]+)``", r"`\1`", text)
    return re.sub(r":\w+:`~?([^`]+)`", r"`\1`", text)


def _section(match: re.Match[str]) -> str:
    text = inspect.cleandoc(match[2])
    if match[1] == "Returns":
        return f"**Returns** {text}\n\n"
    items = re.sub(r"^(\w+):", r"* `\1`:", text, flags=re.MULTILINE)
    return f"**{match[1]}**\n\n{items}\n\n"


def _literal_block(match: re.Match[str]) -> str:
    return f"{match[1]}\n\n```python\n{inspect.cleandoc(match[2])}\n```\n"


def _short(text: str) -> str:
    """A signature or type without quotes, modules, private fields, and addresses of defaults."""
    text = re.sub(r"(: |-> )'([^']*)'", r"\1\2", text)
    text = re.sub(r"<function .*? at 0x\w+>|<factory>", "...", text)
    text = re.sub(r", _\w+: .*?(?=, \w+:|\) ->)", "", text)
    return re.sub(r"\b(?:[a-z_]\w*\.)+(?=[A-Z_a-z]\w*)", "", text)


def _plain(markup: str | None) -> str:
    return _escaped(Text.from_markup(markup or "").plain)


def _escaped(text: str) -> str:
    """No accidental markup: these texts are written for a terminal."""
    return re.sub(r"([*_<>\[\]|])", r"\\\1", text)


def _cell(text: str) -> str:
    return text.replace("\\|", "|").replace("|", "\\|").replace("\n", " ")


PAGES: dict[str, Callable[[], str]] = {"command_line": command_line, "python": python, "dsl": tile_language}

if __name__ == "__main__":
    for write in PAGES.values():
        print(write())
