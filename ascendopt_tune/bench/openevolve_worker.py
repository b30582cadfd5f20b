"""The process that OpenEvolve runs in: its controller, its client hook and its evaluation function.

A pair is one text here: every file behind a line that names it. Questions go to the process that started this one.
"""

from __future__ import annotations

import asyncio
import os
import sys
from multiprocessing.connection import Client
from pathlib import Path
from typing import Any

from ..nouns.operator import Pair

ADDRESS, KEY = "OPENEVOLVE_ASKS_AT", "OPENEVOLVE_ASKS_WITH"  # of the environment
_TILING, _KERNEL, _END = "//@tiling ", "//@kernel ", "//@end"
_MARK, _WRITTEN = "//@", "//@@"  # how those begin, and how a file's own line that begins so is written
_BEGIN, _FENCE = "# Current Program\n```cpp\n", "\n```"
_LONGEST = 1 << 24  # characters of a pair; OpenEvolve's default of 10,000 is less than a kernel has


def text_of(pair: Pair) -> str:
    """The pair as one text; inverse of :func:`pair_in`."""
    parts = [f"{_TILING}{path}\n{_escaped(text)}" for path, text in sorted(pair.tiling.items())]
    parts += [f"{_KERNEL}{path}\n{_escaped(text)}" for path, text in sorted(pair.kernel.items())]
    return "\n".join([*parts, _END])


def pair_in(text: str) -> Pair:
    """The pair that a text of :func:`text_of` holds. Raises ValueError for another text."""
    files: dict[str, dict[str, str]] = {_TILING: {}, _KERNEL: {}}
    kind, path, lines = "", "", list[str]()
    for line in text.split("\n"):
        begins = next((k for k in files if line.startswith(k)), None)
        if begins is None and line != _END:
            lines.append(_MARK + line.removeprefix(_WRITTEN) if line.startswith(_WRITTEN) else line)
            continue
        if kind:
            files[kind][path] = "\n".join(lines)
        elif lines:
            break
        if begins is None:
            return Pair(files[_TILING], files[_KERNEL])
        kind, path, lines = begins, line.removeprefix(begins), []
    raise ValueError(f"not a pair: {text[:80]!r}")


def _escaped(text: str) -> str:
    lines = text.split("\n")
    return "\n".join(_WRITTEN + line.removeprefix(_MARK) if line.startswith(_MARK) else line for line in lines)


def shown(prompt: str) -> str:
    """The program that a prompt of OpenEvolve's template for whole rewrites asks to change."""
    return prompt.rpartition(_BEGIN)[2].partition(f"\n{_END}{_FENCE}")[0] + f"\n{_END}"


def _ask(what: str, text: str) -> Any:
    with Client(os.environ[ADDRESS], "AF_UNIX", authkey=bytes.fromhex(os.environ[KEY])) as connection:
        connection.send((what, text))
        return connection.recv()


class RuleModel:
    """What ``init_client`` returns: OpenEvolve's interface of a language model, answered by rules."""

    def __init__(self) -> None:
        self.model = "rules"  # its ensemble logs the instance's own attribute of this name

    async def generate(self, prompt: str, **_: object) -> str:
        return f"```cpp\n{_ask('propose', shown(prompt))}\n```"

    async def generate_with_context(self, system_message: str, messages: list[dict[str, str]], **_: object) -> str:
        return await self.generate(messages[-1]["content"])


def init_client(configuration: object) -> RuleModel:
    return RuleModel()


def main(first: str, seed: str, iterations: str) -> None:
    """Evolves the pair in the file ``first``; everything found is in the asked process."""
    from openevolve.config import Config, EvaluatorConfig, LLMConfig, LLMModelConfig
    from openevolve.controller import OpenEvolve

    evaluation = Path(first).with_name("evaluation.py")
    evaluation.write_text(
        "from ascendopt_tune.bench.openevolve_worker import value_of\n\n\n"
        "def evaluate(path):\n    return value_of(path)\n"
    )
    config = Config(
        max_iterations=int(iterations),
        random_seed=int(seed),
        language="cpp",
        file_suffix=".cpp",
        diff_based_evolution=False,
        max_code_length=_LONGEST,
        llm=LLMConfig(models=[LLMModelConfig(name="rules", init_client=init_client)]),
        evaluator=EvaluatorConfig(parallel_evaluations=1, cascade_evaluation=False, timeout=3600, max_retries=0),
        log_level="WARNING",
    )
    controller = OpenEvolve(first, str(evaluation), config=config, output_dir=str(Path(first).with_name("output")))
    asyncio.run(controller.run(iterations=int(iterations)))


def value_of(path: str) -> dict[str, float]:
    """OpenEvolve's metrics of the program in a file."""
    value: dict[str, float] = _ask("evaluate", Path(path).read_text())
    return value


if __name__ == "__main__":
    main(*sys.argv[1:])
