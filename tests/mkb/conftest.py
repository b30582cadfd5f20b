"""One evaluator for the imported operators of a process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ascendopt_tune.build import toolkit
from ascendopt_tune.evaluate.evaluator import Evaluator, ProcessLimits


@pytest.fixture(scope="session")
def evaluator() -> Iterator[Evaluator]:
    with Evaluator(toolkit.find("virtual"), limits=ProcessLimits(run_s=300)) as found:
        yield found
