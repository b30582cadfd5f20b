"""What a model is told: the texts in ``prompts/*.md`` (jinja2), filled in.

A text that is not ours (sources, compiler messages, experience) always goes through ``fenced``, whose fence is longer
than any in the text, so that it can't pass for a part of the prompt.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from .client import Message, Prompt

FOLDER = Path(__file__).resolve().parent / "prompts"


def render(name: str, **values: object) -> str:
    """The text ``prompts/<name>.md``. Raises jinja2.UndefinedError if a value it needs is missing."""
    text = _environment().get_template(f"{name}.md").render(**values)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def make_prompt(name: str, **values: object) -> Prompt:
    """A system message (``system.md``: who is asked, how to answer) and the question ``name``."""
    return (Message("system", render("system", **values)), Message("user", render(name, **values)))


def fenced(text: str, info: str = "") -> str:
    """``text`` in a fence that it can't close."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{info}\n{text.rstrip()}\n{fence}"


@cache
def _environment() -> Environment:
    # No autoescape: the result is text for a model, not HTML.
    made = Environment(
        loader=FileSystemLoader(FOLDER), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        keep_trailing_newline=True,
    )  # fmt: skip
    made.filters["fenced"] = fenced
    return made
