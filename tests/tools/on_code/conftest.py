"""What several tests of the auditor share."""

from __future__ import annotations

import pytest

from traindx_tools.on_code import parallel


@pytest.fixture(params=["rules shared", "programs shared"])
def forking(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes are forked however small the sources are, in both ways of sharing the work."""
    monkeypatch.setattr(parallel, "LARGE_PROGRAM", 0 if request.param == "rules shared" else 10**9)
    monkeypatch.setattr(parallel, "WORTH_SHARING", 0)
