"""The process that OpenEvolve runs in, with its own client and its defaults; a program's worth is asked elsewhere.

``python tests/llm/openevolve_process.py PROGRAM URL SYSTEM``: files with the first program and the system message.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import random
import sys
import uuid
from pathlib import Path
from typing import Any

from chat_server import KEY

from ascendopt_tune.bench import openevolve_worker

_MOST = 1000  # iterations; the tokens end it
_PATIENCE_S = 86_400  # a reply may be a person's
_EVALUATION = f"""import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from openevolve_process import evaluate
"""


def _same_names_every_time() -> None:
    """Its programs are called by uuid4, and the order of these names decides draws: its seed alone repeats no run."""
    names: dict[bool, random.Random] = {}

    def name() -> uuid.UUID:
        child = multiprocessing.parent_process() is not None
        bits = names.setdefault(child, random.Random(f"names/{child}"))
        return uuid.UUID(int=bits.getrandbits(128), version=4)

    uuid.uuid4 = name


def main(first: str, url: str, system: str) -> None:
    from openevolve.config import Config, EvaluatorConfig, LLMConfig, LLMModelConfig, PromptConfig
    from openevolve.controller import OpenEvolve

    _same_names_every_time()
    evaluation = Path(first).with_name("evaluation.py")
    evaluation.write_text(_EVALUATION)
    config = Config(
        language="cpp",
        file_suffix=".cpp",
        max_code_length=openevolve_worker._LONGEST,
        llm=LLMConfig(models=[LLMModelConfig(name="m")], api_base=url, api_key=KEY, timeout=_PATIENCE_S),
        prompt=PromptConfig(system_message=Path(system).read_text(encoding="utf-8")),
        evaluator=EvaluatorConfig(cascade_evaluation=False, timeout=_PATIENCE_S),
        log_level="WARNING",
    )
    controller = OpenEvolve(first, str(evaluation), config=config, output_dir=str(Path(first).with_name("output")))
    asyncio.run(controller.run(iterations=_MOST))


def evaluate(path: str) -> Any:
    """OpenEvolve's evaluation function: a score, and beside it what the gate or the profiler said."""
    from openevolve.evaluation_result import EvaluationResult

    score, artifacts = openevolve_worker._ask("evaluate", Path(path).read_text())
    return EvaluationResult(metrics={"combined_score": score}, artifacts=artifacts)


if __name__ == "__main__":
    assert os.environ["PYTHONHASHSEED"] == "0"
    main(*sys.argv[1:])
