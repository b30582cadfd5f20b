"""What ``ascendopt-tune`` does before anything is imported."""

from __future__ import annotations

import os

import pytest

from ascendopt_tune import cli
from ascendopt_tune.__main__ import main


@pytest.mark.parametrize(("given", "then"), [(None, "PASSIVE"), ("ACTIVE", "ACTIVE")])
def test_openmp_is_asked_not_to_spin_unless_told(given: str | None, then: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_WAIT_POLICY", given or "")
    if given is None:
        monkeypatch.delenv("OMP_WAIT_POLICY")
    seen: list[str | None] = []
    monkeypatch.setattr(cli, "main", lambda: seen.append(os.environ.get("OMP_WAIT_POLICY")))
    main()
    assert seen == [then]
