"""Random programs: what the interpreter computes is what the lowered kernel computes, and it has no hazard.

The gate compares with the interpreter on every kind of input it has; a program that the reader accepts always compiles.
"""

from __future__ import annotations

from pathlib import Path

import lowered
import pytest
from random_programs import random_program

from ascendopt_tune.dsl import read_text
from ascendopt_tune.evaluate.evaluator import Evaluator
from ascendopt_tune.nouns.outcome import Timed


def agrees(seed: int, evaluator: Evaluator, folder: Path) -> None:
    made = random_program(seed)
    operator = lowered.project(read_text(made.text, f"random{seed}.py"), folder / f"random{seed}")
    found = lowered.checked(evaluator, operator, made.inputs)
    assert isinstance(found.outcome, Timed), f"{found.outcome}\n{made.inputs}\n{made.text}"
    assert not found.hazards


@pytest.mark.parametrize("seed", range(12))
def test_interpreter_and_kernel_agree(seed: int, evaluator: Evaluator, tmp_path: Path) -> None:
    agrees(seed, evaluator, tmp_path)


@pytest.mark.battery
@pytest.mark.parametrize("seed", range(12, 312))
def test_interpreter_and_kernel_agree_on_many(seed: int, evaluator: Evaluator, tmp_path: Path) -> None:
    agrees(seed, evaluator, tmp_path)
