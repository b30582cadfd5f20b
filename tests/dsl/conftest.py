"""One evaluator for the lowered programs of a process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ascendopt_tune.build import toolkit
from ascendopt_tune.evaluate.evaluator import Evaluator


@pytest.fixture(scope="session")
def evaluator() -> Iterator[Evaluator]:
    with Evaluator(toolkit.find("virtual")) as found:
        yield found
