"""Sessions with the real Claude CLI against a scripted Messages API: no network, a fake key, a home of its own."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from traindx.settings import Settings

sys.path.insert(0, str(Path(__file__).parent / "support"))
sys.path.insert(0, str(Path(__file__).parents[2] / "orchestrator" / "support"))

EXAMPLES = Path(__file__).parents[3] / "examples"
INSTALLED = importlib.util.find_spec("claude_agent_sdk") is not None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All of this folder needs the SDK, and most of it takes its CLI's seconds."""
    here = Path(__file__).parent
    for item in () if INSTALLED else items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.skip(reason="claude-agent-sdk is not installed: pip install 'traindx[agent]'"))


@pytest.fixture(autouse=True)
def _nothing_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """No key, no proxy and no setting of whoever runs the tests reaches the CLI."""
    kept = {"PATH", "LANG", "LC_ALL", "TMPDIR", "PYTHONPATH", "VIRTUAL_ENV", "OMP_NUM_THREADS"}
    for name in list(os.environ):
        if name not in kept and not name.startswith("PYTEST_"):
            monkeypatch.delenv(name)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A copy of a run that really failed: a log of zero in numpy."""
    return Path(shutil.copytree(EXAMPLES / "numpy-lr", tmp_path / "work"))


@pytest.fixture
def project(work: Path) -> Path:
    """The example's run; its verification fails until EPS is 1e-4."""
    lines = (work / "train.py").read_text().split("\n")
    assert lines[19].startswith("EPS = 1e-12"), "the diagnosis names this line"
    (work / "check.py").write_text("import sys\nsys.exit('EPS = 1e-4' not in open('train.py').read())\n")
    return work


@pytest.fixture
def settings(tmp_path: Path) -> Callable[..., Settings]:
    """Settings for a session against the API at this address."""

    def made(url: str, **changes: object) -> Settings:
        home = tmp_path / "home"
        for folder in (home, home / "tmp"):
            folder.mkdir(exist_ok=True)
        environment = {
            "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "fake-key", "HOME": str(home),
            "CLAUDE_CONFIG_DIR": str(home / "config"), "CLAUDE_CODE_TMPDIR": str(home / "tmp"), "NO_PROXY": "127.0.0.1",
        }
        values = {"backend": "claude", "retries": 0, "seconds_each": 60.0, "environment": environment, **changes}
        return Settings(**values)  # type: ignore[arg-type]

    return made
