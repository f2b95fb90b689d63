"""`traindx debug --backend`: which investigator is taken, said on standard error; the session itself as ever."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from answers_for import doubt, said
from lead_scripts import LEAD, open_answer
from scripted_api import Fail, answer, scripted

from traindx.settings import Settings

pytestmark = pytest.mark.slow


def debug(work: Path, settings: Settings, *more: str) -> tuple[dict[str, object], str]:
    """The session's result and what was said beside it."""
    environment = {**os.environ, **settings.environment, "TRAINDX_RETRIES": "0"}
    done = subprocess.run([sys.executable, "-m", "traindx", "debug", ".", "--symptom", "loss is nan", "--json", *more],
                          cwd=work, env=environment, capture_output=True, text=True, check=False, timeout=110,
                          stdin=subprocess.DEVNULL)
    assert done.returncode in (0, 1, 3), done.stderr
    assert "Traceback" not in done.stderr
    return json.loads(done.stdout), done.stderr


def test_claude_is_asked_and_said(work: Path, settings: Callable[..., Settings]) -> None:
    with scripted({LEAD: [open_answer()], "adversary": [doubt()]}) as api:
        result, said = debug(work, settings(api.url), "--backend", "claude", "--model", "claude-test-model")
    assert result["status"] == "awaiting_approval"
    assert "Investigating with Claude (claude-test-model)" in said
    assert "lead: answered" in said
    assert "adversary: answered" in said
    assert result["investigators"] == ["engine", "lead", "adversary"]
    assert result["degraded"] == ["unchallenged: no check of the adversary stands"]
    assert api.asked[0].body["model"] == "claude-test-model"


def test_auto_falls_back_and_says_why(work: Path, settings: Callable[..., Settings]) -> None:
    with scripted({"probe": [Fail(401, "authentication_error", "invalid x-api-key")]}) as api:
        result, said = debug(work, settings(api.url), "--backend", "auto")
    assert result["status"] == "awaiting_approval"
    assert "offline investigator, because Claude cannot be reached (claude: unauthorized" in said
    assert api.roles == {"probe"}


def test_auto_takes_claude(work: Path, settings: Callable[..., Settings]) -> None:
    with scripted({"probe": [answer({"ok": True})], LEAD: [open_answer()], "adversary": [doubt()]}) as api:
        _, said = debug(work, settings(api.url), "--backend", "auto")
    assert "Investigating with Claude" in said
    assert api.roles == {"probe", LEAD, "adversary"}


def test_offline_asks_nobody(work: Path, settings: Callable[..., Settings]) -> None:
    with scripted({}) as api:
        result, said = debug(work, settings(api.url))
    assert result["status"] == "awaiting_approval"
    assert "Claude" not in said
    assert not api.asked


def test_a_session_goes_on_with_whom_it_began(work: Path, settings: Callable[..., Settings]) -> None:
    place = (work / "train.py").read_text().split("\n").index("    prob = np.clip(prob, EPS, 1.0 - EPS)") + 2
    edit = {"path": "train.py", "line": place, "end_line": place - 1, "original": "",
            "replacement": "    prob = np.clip(prob, np.float32(1e-7), np.float32(1.0 - 1e-6))"}
    option = {"option": "B", "summary": "Clip with constants that float32 tells from zero", "edits": [edit],
              "instructions": [], "metric": "", "verify": "", "otherwise": "", "fragile": ""}
    scripts = {LEAD: [open_answer()], "adversary": [doubt()], "fix-author": [said("fix-author", options=[option])],
               "fix-reviewer": [said("fix-reviewer", verdict="accept")]}
    with scripted(scripts) as api:
        made = settings(api.url)
        waiting, _ = debug(work, made, "--backend", "claude", "--model", "claude-test-model", "--verify",
                           f"{sys.executable} train.py")
        done = subprocess.run([sys.executable, "-m", "traindx", "approve", str(waiting["session"]), "--option", "B"],
                              cwd=work, env={**os.environ, **made.environment}, capture_output=True, text=True,
                              check=False, timeout=110, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    assert "fix-author: answered" in done.stderr
    assert {a.body["model"] for a in api.of("fix-author")} == {"claude-test-model"}
    assert edit["replacement"] in (work / "train.py").read_text()
