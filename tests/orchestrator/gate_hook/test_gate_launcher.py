"""The launcher as Claude Code calls it: silent and without Python while nothing is open, closed where it fails."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HOOKS = Path(__file__).resolve().parents[3] / "tools" / "hooks"
EDIT = {"tool_name": "Edit", "tool_input": {"file_path": "train.py", "old_string": "1e-12", "new_string": "1e-6"}}
SKILL = {"tool_name": "Skill", "tool_input": {"skill": "traindx:ml-debug"}}


class Launcher:
    """Calls `gate.sh` in an environment of its own."""

    def __init__(self, work: Path, home: Path) -> None:
        self.work = work
        self.script = HOOKS / "gate.sh"
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(home), "CLAUDE_PROJECT_DIR": str(work)}

    def __call__(self, name: str, event: dict[str, Any], **environment: str) -> subprocess.CompletedProcess[str]:
        said = json.dumps({"cwd": str(self.work), "session_id": "c1", "hook_event_name": name, **event},
                          separators=(",", ":"))
        return subprocess.run(["sh", str(self.script), name], input=said, capture_output=True, text=True, timeout=60,
                              check=False, env={**self.environment, **environment}, cwd=self.work)

    def denied(self, event: dict[str, Any], **environment: str) -> bool:
        done = self("PreToolUse", event, **environment)
        return done.returncode == 2 or '"permissionDecision": "deny"' in done.stdout


@pytest.fixture
def launch(work: Path, tmp_path: Path) -> Launcher:
    return Launcher(work, tmp_path / "home")


def test_while_nothing_is_open_python_is_not_started(launch: Launcher) -> None:
    """A Python that does not exist is never asked for."""
    for name, event in (("PreToolUse", EDIT), ("UserPromptSubmit", {"prompt": "approve A"}), ("Stop", {}),
                        ("SubagentStart", {}), ("PostToolUse", EDIT), ("SessionStart", {}),
                        ("PreToolUse", {"tool_name": "Bash", "tool_input": {"command": "rm train.py"}})):
        done = launch(name, event, PATH="/nonexistent:/bin", TRAINDX_PYTHON="/nonexistent/python")
        assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), name
    assert not (Path(launch.environment["HOME"])).exists(), "nothing is written either"


def test_the_skill_opens_and_an_edit_is_refused(launch: Launcher) -> None:
    assert launch("PreToolUse", SKILL).returncode == 0
    assert launch.denied(EDIT)
    assert not launch.denied(EDIT, TRAINDX_GATE="off")
    state = Path(launch.environment["HOME"]) / ".local" / "state" / "traindx" / "gate"
    assert [p.name for p in (state / "open").iterdir()]
    assert not list(launch.work.glob("scratch/**/*")), "the state is not in the workspace"


def test_a_person_opens_and_closes_it(launch: Launcher) -> None:
    assert "a debug session is open" in launch("UserPromptSubmit", {"prompt": "open a debug session"}).stdout
    assert launch.denied(EDIT)
    assert "closed" in launch("UserPromptSubmit", {"prompt": "close the debug session"}).stdout
    assert not launch.denied(EDIT)


def test_text_that_mentions_the_skill_opens_nothing(launch: Launcher) -> None:
    launch("PreToolUse", {"tool_name": "Write", "tool_input": {"file_path": "a.md", "content": 'the "ml-debug" skill, '
                                                               '"tool_name":"Skill"'}})
    launch("UserPromptSubmit", {"prompt": "what is the ml-debug skill of traindx?"})
    assert not launch.denied(EDIT)


def test_an_approval_by_the_model_is_refused_while_nothing_is_open(launch: Launcher) -> None:
    assert launch.denied({"tool_name": "Bash", "tool_input": {"command": "traindx approve s --option A"}})


@pytest.mark.parametrize("python", ["raise SystemExit(1)", "raise SystemExit(139)",
                                    "import os; os.kill(os.getpid(), 9)"])
def test_a_python_that_fails_refuses(launch: Launcher, tmp_path: Path, python: str) -> None:
    launch("PreToolUse", SKILL)
    broken = tmp_path / "python"
    broken.write_text(f"#!/usr/bin/env python3\n{python}\n")
    broken.chmod(0o755)
    assert launch("PreToolUse", EDIT, TRAINDX_PYTHON=str(broken)).returncode == 2


def test_a_python_that_is_too_old_is_passed_over(launch: Launcher, tmp_path: Path) -> None:
    launch("PreToolUse", SKILL)
    old = tmp_path / "python"
    old.write_text("#!/bin/sh\nexit 75\n")
    old.chmod(0o755)
    assert launch.denied(EDIT, TRAINDX_PYTHON=str(old))


def test_without_any_python_it_refuses_and_says_what_to_do(launch: Launcher, tmp_path: Path) -> None:
    launch("PreToolUse", SKILL)
    copy = tmp_path / "gate.sh"
    copy.write_text((HOOKS / "gate.sh").read_text().replace("/usr/bin/python3 /usr/local/bin/python3", ""))
    launch.script = copy
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("sh", "cat", "dirname", "printf"):
        (tools / name).symlink_to(shutil.which(name) or "/bin/false")
    done = launch("PreToolUse", EDIT, PATH=str(tools))
    assert done.returncode == 2
    assert "TRAINDX_PYTHON" in done.stderr


def test_a_plugin_that_lost_its_files_refuses(launch: Launcher, tmp_path: Path) -> None:
    launch("PreToolUse", SKILL)
    lonely = tmp_path / "plugin" / "tools" / "hooks"
    lonely.mkdir(parents=True)
    for name in ("gate.sh", "gate.py"):
        shutil.copy(HOOKS / name, lonely / name)
    launch.script = lonely / "gate.sh"
    assert launch("PreToolUse", EDIT).returncode == 2


def test_a_state_that_cannot_be_written_refuses_the_skill(launch: Launcher, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert launch.denied(SKILL, TRAINDX_GATE_STATE=str(tmp_path / "file" / "gate"))


def test_large_and_odd_input_is_judged(launch: Launcher) -> None:
    launch("PreToolUse", SKILL)
    for content in ("x" * 2_000_000, "\\n$(rm -rf .)`'\"%s\\c\n\t", "\u2028\U0001f525\ud800"):
        assert launch.denied({"tool_name": "Write", "tool_input": {"file_path": "train.py", "content": content}})
    assert "EPS" in (launch.work / "train.py").read_text()


@pytest.mark.parametrize(("name", "event"), [
    ("PreToolUse", EDIT), ("PreToolUse", {"tool_name": "Bash", "tool_input": {"command": "git diff --stat"}}),
    ("UserPromptSubmit", {"prompt": "why is it NaN?"})])
def test_a_call_imports_little(launch: Launcher, name: str,
                                                             event: dict[str, Any]) -> None:
    """The time itself is measured by benchmarks/hook_latency.py: a loaded machine would make a test of it lie."""
    launch("PreToolUse", SKILL)
    code = ("import os, runpy, sys; os._exit = sys.exit; sys.argv = sys.argv[1:]\n"
            "try: runpy.run_path(sys.argv[0], run_name='__main__')\nexcept SystemExit: pass\n"
            "print('', *sorted(sys.modules), sep='\\n')")
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code, str(HOOKS / "gate.py"), name], check=True, text=True,
                          input=json.dumps({"cwd": str(launch.work), **event}), capture_output=True, timeout=60,
                          env=launch.environment)
    modules = set(done.stdout.split("\n"))
    assert "traindx.gate_hook.program" in modules
    slow = {"dataclasses", "inspect", "hashlib", "subprocess", "difflib", "numpy", "pydantic", "traindx.gate",
            "traindx.machine", "traindx_tools", "tempfile", "asyncio", "logging"}
    assert not modules & slow
    assert sum(m.startswith("traindx") for m in modules) <= 18
