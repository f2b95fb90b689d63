"""What was asked and answered, kept in the session's folder: whole, redacted, and found again after a crash.

An answer is stored under the digest of its question. A session that is killed and resumed puts the same question and
reads the answer from here: nothing is paid for twice. A thread is a conversation that goes on over many questions,
steps and processes: what was said in it is not sent and paid for anew.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from traindx.durable import StateNotWritable, write_state
from traindx.investigators.claude_code.redaction import redacted_json
from traindx.settings import Settings
from traindx_tools import unlinked

FOLDER = "conversation"
"""Below the session's folder."""


SETTINGS = "settings.json"


def keep_settings(scratch: Path, settings: Settings) -> None:
    """Remember with what this session is investigated. Raises StateNotWritable."""
    write_state(scratch / FOLDER / SETTINGS, json.dumps(settings.kept(), indent=1).encode())


def kept_settings(scratch: Path) -> dict[str, Any] | None:
    """The settings that a session with specialists goes on with, or None where it has none."""
    try:
        kept = json.loads((scratch / FOLDER / SETTINGS).read_bytes())
    except (OSError, ValueError):
        return None
    return kept if isinstance(kept, dict) else None


@dataclass(frozen=True)
class Helper:
    """A specialist that may be sent from within a conversation."""

    name: str
    description: str
    system: str
    schema: Mapping[str, Any]
    tools: tuple[str, ...]
    model: str = ""


@dataclass(frozen=True)
class Question:
    """One question, with the form that its answer must have."""

    who: str
    system: str
    prompt: str
    schema: Mapping[str, Any]
    tools: tuple[str, ...]
    model: str = ""
    thread: str = ""
    """The conversation that it goes on with; "" for a question by itself."""
    recap: str = ""
    """What is said before the prompt where that conversation is gone."""
    helpers: tuple[Helper, ...] = ()
    turns: int = 0
    """Turns at most; 0 takes the setting."""

    @property
    def digest(self) -> str:
        """sha256 (hex) over all that decides the answer."""
        text = json.dumps([self.who, self.system, self.prompt, self.schema, self.tools, self.model, self.thread],
                          sort_keys=True)
        return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


@dataclass(frozen=True)
class Kept:
    """An answer that was paid for, and what it took."""

    answer: dict[str, Any]
    dollars: float = 0.0
    tokens: int = 0
    seconds: float = 0.0
    fetched: tuple[str, ...] = ()


@dataclass(frozen=True)
class Thread:
    """Where a conversation that goes on stands: the CLI's id of it and what that cost so far, or its messages."""

    id: str = ""
    dollars: float = 0.0
    messages: tuple[dict[str, Any], ...] = ()


@dataclass
class Conversations:
    """The conversations of one session."""

    folder: Path
    _open: dict[str, Path] = field(default_factory=dict)

    @classmethod
    def of(cls, scratch: Path) -> Conversations:
        """Those of the session that lives in this folder."""
        return cls(scratch / FOLDER)

    def note(self, question: Question, kind: str, body: Any) -> None:
        """Append one message to the question's conversation. Raises StateNotWritable."""
        path = self._path(question)
        plain = dataclasses.asdict(body) if dataclasses.is_dataclass(body) and not isinstance(body, type) else body
        text = json.dumps({"kind": kind, "body": redacted_json(plain)}, ensure_ascii=True, allow_nan=True)
        try:
            unlinked.append(path, text + "\n")
        except OSError as error:
            raise StateNotWritable(path, error) from error

    def _path(self, question: Question) -> Path:
        """One file a question; asked again in a later process, it goes on in the same file."""
        return self._open.setdefault(question.digest, self.folder / f"{question.who}-{question.digest[:12]}.jsonl")

    def keep(self, question: Question, kept: Kept) -> None:
        """Store an answer durably. Raises StateNotWritable."""
        content = json.dumps(redacted_json(dataclasses.asdict(kept), most=200_000), ensure_ascii=True)
        write_state(self._answer(question), content.encode("ascii"))

    def recall(self, question: Question) -> Kept | None:
        """The stored answer to exactly this question, or None."""
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
            data = json.loads(self._answer(question).read_text(encoding="ascii"))
            return Kept(dict(data["answer"]), float(data["dollars"]), int(data["tokens"]), float(data["seconds"]),
                        tuple(data["fetched"]))
        return None

    def thread(self, question: Question) -> Thread:
        """Where the question's thread stands; an empty one where it begins, or is damaged."""
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
            data = json.loads(self._thread(question).read_text(encoding="ascii"))
            return Thread(str(data["id"]), float(data["dollars"]), tuple(data["messages"]))
        return Thread()

    def keep_thread(self, question: Question, thread: Thread) -> None:
        """Remember where the question's thread stands. Raises StateNotWritable."""
        if question.thread:
            content = json.dumps(redacted_json(dataclasses.asdict(thread), most=200_000), ensure_ascii=True)
            write_state(self._thread(question), content.encode("ascii"))

    def _thread(self, question: Question) -> Path:
        return self.folder / f"thread-{question.thread or question.who}.json"

    def _answer(self, question: Question) -> Path:
        return self.folder / "answers" / f"{question.digest}.json"
