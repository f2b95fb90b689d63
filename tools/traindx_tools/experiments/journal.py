"""The record of experiments: a line for each that began, each run, each verdict. Only ever appended to."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from traindx_tools.unlinked import append

NAME = "journal.jsonl"
FIRST = "X001"


@dataclass(frozen=True)
class Journal:
    """The journal of a folder of experiments."""

    folder: Path

    @property
    def path(self) -> Path:
        """The file."""
        return self.folder / NAME

    def add(self, kind: str, **fields: Any) -> None:
        """Appends a record and forces it to the disk. Raises OSError."""
        append(self.path, json.dumps({"kind": kind, **fields}, default=str) + "\n", lasting=True)

    def records(self) -> Iterator[Mapping[str, Any]]:
        """What was written; a last line that was cut off is passed over."""
        try:
            text = self.path.read_text("utf-8", errors="replace")
        except OSError:
            return
        for line in text.splitlines():
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if isinstance(record, dict) and "kind" in record:
                yield record

    def begin(self, question: Mapping[str, Any], *, resume: bool = False) -> str:
        """The evidence id of an experiment: that of the same question where it is resumed, else the next one."""
        begun = [r for r in self.records() if r["kind"] == "experiment"]
        known = next((str(r["id"]) for r in reversed(begun) if r.get("question") == question), None) if resume else None
        if known is not None:
            return known
        number = max((int(str(r["id"])[1:]) for r in begun), default=0) + 1
        name = f"X{number:03d}"
        self.add("experiment", id=name, question=dict(question))
        return name
