"""A conversation with the gate, event by event, in a workspace of its own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from gate_words import DIAGNOSIS

from traindx.gate_hook import program
from traindx.gate_hook.state import State
from traindx.gate_hook.store import Store, state_folder

ROOT = Path(__file__).resolve().parents[3]
RUNNER = ROOT / "tools" / "hooks" / "protected.py"
CODE = "import math\n\nEPS = 1e-12\n\n\ndef loss(p):\n    return -math.log(1.0 - p + EPS)\n"


class Conversation:
    """One conversation in one workspace. Each method is an event and returns the gate's answer."""

    def __init__(self, work: Path, state: Path, capsys: pytest.CaptureFixture[str],
                 project: Path | None = None) -> None:
        self.work = work
        self.environment = {"TRAINDX_GATE_STATE": str(state), "CLAUDE_PROJECT_DIR": str(project or work)}
        self.store = Store(state_folder(self.environment))
        self.capsys = capsys
        self.code = 0

    def event(self, name: str, **fields: Any) -> dict[str, Any]:
        said = {"hook_event_name": name, "session_id": "c1", "cwd": str(self.work), "transcript_path": "/none",
                **fields}
        self.capsys.readouterr()
        self.code = program.main(name, str(ROOT), json.dumps(said), self.environment)
        out = self.capsys.readouterr().out
        answer: dict[str, Any] = json.loads(out) if out else {}
        return {**answer, **answer.get("hookSpecificOutput", {})}

    def runs(self, command: str, **arguments: Any) -> str:
        """The line that is run in the place of this command."""
        said = self.event("PreToolUse", tool_name="Bash", tool_input={"command": command, **arguments})
        return str(said.get("updatedInput", {"command": command})["command"])

    def asks(self, *labels: str, answer: str) -> str:
        """The agent asks a question that offers these answers; what the gate says to the person's answer."""
        given = {"questions": [{"question": "Which fix?", "options": [{"label": label} for label in labels]}]}
        said = self.event("PreToolUse", tool_name="AskUserQuestion", tool_input=given)
        question = said.get("updatedInput", given)["questions"][0]["question"]
        done = self.event("PostToolUse", tool_name="AskUserQuestion", tool_input=given,
                          tool_response={"answers": {question: answer}})
        return str(done.get("additionalContext", ""))

    def call(self, tool: str, **arguments: Any) -> str:
        """Asks whether a tool may be called; the reason of a refusal, or ""."""
        return str(self.event("PreToolUse", tool_name=tool, tool_input=arguments).get("permissionDecisionReason", ""))

    def prompt(self, text: str) -> str:
        """The person types; what the gate says about it."""
        return str(self.event("UserPromptSubmit", prompt=text).get("additionalContext", ""))

    def shows(self, text: str = DIAGNOSIS) -> str:
        """The assistant's turn ends with this message; what the person is told about it."""
        return str(self.event("Stop", last_assistant_message=text).get("systemMessage", ""))

    def opens(self) -> None:
        assert self.call("Skill", skill="traindx:ml-debug") == ""

    def edit(self, path: str = "train.py", old: str = "EPS = 1e-12", new: str = "EPS = 1e-6", *,
             agreed: bool = False) -> str:
        """An edit, which is made where it is not refused, or where the person is asked and has `agreed`."""
        file = self.work / path
        arguments = {"file_path": str(file), "old_string": old, "new_string": new}
        said = self.event("PreToolUse", tool_name="Edit", tool_input=arguments)
        refused = str(said.get("permissionDecisionReason", ""))
        if not refused or (agreed and said["permissionDecision"] == "ask"):
            refused = ""
            file.parent.mkdir(parents=True, exist_ok=True)
            text = file.read_text() if file.exists() else ""
            file.write_text(text.replace(old, new, 1) if old else new + text)
            self.event("PostToolUse", tool_name="Edit", tool_input=arguments, tool_response={})
        return refused

    def verifies(self, command: str = "python train.py --steps 1300", code: int = 1) -> str:
        """The agent runs a command in a copy; what the gate says when it ended with this exit code."""
        line = self.runs(f"python3 {RUNNER} --copy -- {command}")
        fields: dict[str, Any] = {"tool_name": "Bash", "tool_input": {"command": line}}
        if code == 0:
            said = self.event("PostToolUse", **fields, tool_response={"stdout": "", "stderr": ""})
        else:
            said = self.event("PostToolUseFailure", **fields, error=f"Exit code {code}\nloss nan", is_interrupt=False)
        return str(said.get("additionalContext", ""))

    @property
    def state(self) -> State:
        state = self.store.read(str(self.work))
        assert state is not None
        return state


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "work"
    folder.mkdir()
    (folder / "train.py").write_text(CODE)
    return folder


@pytest.fixture
def talk(work: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Conversation:
    return Conversation(work, tmp_path / "state", capsys)


@pytest.fixture
def elsewhere(work: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[[Path], Conversation]:
    """A conversation in another project on the same machine."""
    return lambda folder: Conversation(folder, tmp_path / "state", capsys)
