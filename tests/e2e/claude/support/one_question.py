"""Puts one question to the scripted API with the real CLI, as the investigator does, or with its own fences taken down.
"""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path
from typing import Any

from traindx.investigators.claude_code.asking import Asker, Reply
from traindx.investigators.claude_code.cli import CliAsker
from traindx.investigators.claude_code.conversation import Conversations, Question
from traindx.investigators.claude_code.instruments import names
from traindx.investigators.claude_code.purse import Purse
from traindx.policy import Scope
from traindx.settings import Settings

FORM = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"], "additionalProperties": False}
EVERYTHING = ("Read", "Grep", "Glob", "Edit", "Write", "NotebookEdit", "Bash", "Agent", "WebFetch", "WebSearch")


@dataclasses.dataclass
class Unfenced(CliAsker):
    """Offers every tool and accepts edits, as a careless change of the options would: only the hook is left."""

    more: dict[str, Any] = dataclasses.field(default_factory=dict)

    def options(self, question: Question, dollars: float, heard: Any, resume: str = "") -> Any:
        """The same options without the other fences."""
        made = super().options(question, dollars, heard, resume)
        open_ = {"tools": list(EVERYTHING), "allowed_tools": [*EVERYTHING, *names()], "disallowed_tools": [],
                 "permission_mode": "acceptEdits"}
        return dataclasses.replace(made, **{**open_, **self.more})


def asker(work: Path, scratch: Path, settings: Settings, kind: type[Asker] = CliAsker, **more: Any) -> Asker:
    """An asker of one session."""
    return kind(work, settings, Scope(work, mcp_read_only=frozenset(names())), Conversations.of(scratch),
                Purse(settings.dollars_all, scratch / "spent.jsonl"), **more)


READING = ("Read", "Grep", "Glob")


def question(role: str = "tester", tools: tuple[str, ...] = (*READING, *names()), model: str = "") -> Question:
    """A question whose answer is {"ok": true}."""
    return Question(role, f"Role: {role}", "Look at the run.", FORM, tools, model)


def denials(reply: Reply) -> str:
    """All refusals, for assertions."""
    return "\n".join(reply.denied)


def contents(folder: Path) -> dict[str, str]:
    """Every file, folder and link below, with what it holds and when it was written."""
    out = {}
    for path in sorted(folder.rglob("*")):
        if path.is_symlink():
            out[str(path)] = f"-> {path.readlink()}"
        else:
            held = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
            out[str(path)] = f"{held} {path.stat().st_mtime_ns if path.is_file() else ''}"
    return out
