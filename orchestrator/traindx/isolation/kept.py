"""Outcomes of runs on disk: one JSON line a run, written when it ended, so that a search that was cut off goes on."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from traindx_tools import unlinked
from traindx_tools.errors import UnreadableInput
from traindx_tools.experiments.isolating.oracle import Trial
from traindx_tools.experiments.isolating.outcomes import Shown

NAME = "trials.jsonl"


@dataclass
class Kept:
    """The outcomes in a folder, by a hash of all that they depend on."""

    folder: Path
    _known: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, folder: Path) -> Kept:
        """Reads what is there; a last line that was cut off is left out. Raises UnreadableInput."""
        try:
            unlinked.made(folder)
            text = (folder / NAME).read_text(encoding="utf-8") if (folder / NAME).is_file() else ""
            if text and not text.endswith("\n"):  # a line that was cut off: the next one begins anew
                unlinked.append(folder / NAME, "\n")
        except OSError as error:
            raise UnreadableInput(f"{folder}: outcomes cannot be kept there: {error.strerror}; name another folder "
                                  "with --out") from error
        made = cls(folder)
        for line in text.splitlines():
            try:
                row = json.loads(line)
                made._known[str(row["key"])] = row
            except (ValueError, KeyError, TypeError):
                continue
        return made

    def trial(self, key: str) -> Trial | None:
        """The outcome of a run of before, None where there is none."""
        row = self._known.get(key)
        if row is None or row["shown"] == Shown.UNRESOLVED.value:
            return None  # what was missing then may be there now
        return Trial(Shown(row["shown"]), str(row["why"]), float(row["seconds"]))

    def add(self, key: str, trial: Trial, what: Iterable[str]) -> None:
        """Keeps an outcome. Raises UnreadableInput where it cannot be written."""
        row = {"key": key, "shown": trial.shown.value, "why": trial.why, "seconds": round(trial.seconds, 3),
               "with": list(what)[:20]}
        self._known[key] = row
        try:
            unlinked.append(self.folder / NAME, json.dumps(row) + "\n", lasting=True)
        except OSError as error:
            raise UnreadableInput(f"{self.folder}: outcomes cannot be kept there: {error.strerror}") from error
