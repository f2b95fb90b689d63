"""What probes, experiments and instruments printed in a session, under an id by which it is cited.

The text lies where a person looks for evidence, and a diagnostic may write there: so its digest is kept beside the
conversations, where no tool can write, and a text that was changed since counts as gone.
"""

from __future__ import annotations

import hashlib
import json
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from traindx.durable import StateNotWritable, write_state
from traindx_tools import unlinked

FOLDER = Path("evidence", "outputs")
LEDGER = Path("conversation", "outputs.jsonl")
RUN_LETTERS = {"run_probe": "P", "run_experiment": "X"}
"""What was run by the agents themselves: direct evidence. An instrument's output has the letter I."""


@dataclass(frozen=True)
class Output:
    """One output. `asked`: the arguments as canonical JSON; `users`: who called for exactly this."""

    id: str
    tool: str
    asked: str
    text: str
    users: frozenset[str] = frozenset()

    @property
    def was_run(self) -> bool:
        """True for a probe or an experiment."""
        return self.id[0] in RUN_LETTERS.values()

    @property
    def lines(self) -> list[str]:
        """The text line by line, the first is number 1."""
        return self.text.split("\n")

    @property
    def path(self) -> str:
        """Where it lies, below the session's folder."""
        return (FOLDER / f"{self.id}.txt").as_posix()


@dataclass
class Outputs:
    """The outputs of the session that lives in `scratch`."""

    scratch: Path
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, tool: str, arguments: dict[str, Any], text: str, who: str) -> Output:
        """Keep it. What an instrument says twice is kept once; a run is one of its own each time.

        Raises StateNotWritable.
        """
        asked = json.dumps(arguments, sort_keys=True, ensure_ascii=True)
        letter = RUN_LETTERS.get(tool, "I")
        with self._lock:
            known = self.all()
            same = next((o for o in known.values() if letter == "I" and (o.tool, o.asked, o.text) == (
                tool, asked, text)), None)
            if same is not None:
                self._note({"id": same.id, "who": who})
                return Output(same.id, tool, asked, text, same.users | {who})
            number = 1 + sum(i[0] == letter for i in self._ids())
            made = Output(f"{letter}{number:03d}", tool, asked, text, frozenset({who}))
            content = text.encode("utf-8", "replace")
            write_state(self.scratch / made.path, content)
            self._note({"id": made.id, "who": who, "tool": tool, "asked": asked,
                        "sha256": hashlib.sha256(content).hexdigest()})
            return made

    def all(self) -> dict[str, Output]:
        """Every output by id, without those whose text is gone or changed."""
        made: dict[str, Output] = {}
        for entry in self._entries():
            name, who = str(entry["id"]), str(entry.get("who", ""))
            if name in made:
                made[name] = Output(name, made[name].tool, made[name].asked, made[name].text, made[name].users | {who})
            elif "sha256" in entry:
                text = self._text(name, str(entry["sha256"]))
                if text is not None:
                    made[name] = Output(name, str(entry["tool"]), str(entry["asked"]), text, frozenset({who}))
        return made

    def _ids(self) -> set[str]:
        return {str(e["id"]) for e in self._entries()}

    def _text(self, name: str, digest: str) -> str | None:
        try:
            content = (self.scratch / FOLDER / f"{name}.txt").read_bytes()
        except OSError:
            return None
        return content.decode("utf-8", "replace") if hashlib.sha256(content).hexdigest() == digest else None

    def _note(self, entry: dict[str, str]) -> None:
        path = self.scratch / LEDGER
        try:
            unlinked.append(path, json.dumps(entry) + "\n")
        except OSError as error:
            raise StateNotWritable(path, error) from error

    def _entries(self) -> list[dict[str, Any]]:
        try:
            rows = (self.scratch / LEDGER).read_text(encoding="ascii").splitlines()
        except OSError:
            return []
        out = []
        for row in rows:
            try:
                entry = json.loads(row)
            except ValueError:
                continue  # cut off by a kill
            if isinstance(entry, dict) and "id" in entry:
                out.append(entry)
        return out
