"""What a caller hands over, as paths that can be read: entries that are text become files of a scratch folder.

A context package may name a file or hold the text ("RuntimeError: CUDA error ..."). Nothing is guessed: an entry that
looks like a path and is not there is missing, and said so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from traindx.model import Artifacts
from traindx_tools import unlinked

ROLE_WORDS = {
    "training_logs": "the training log",
    "loss_curves": "the metrics (a CSV, JSON lines or TensorBoard file)",
    "model_code": "the training script",
    "error_messages": "the error message in full",
    "config": "the configuration of the run",
}
"""What a person calls the roles of a context package."""


def missing_in_words(missing: Iterable[str]) -> tuple[str, ...]:
    """Roles and entries that are missing, as a person reads them; a role whose entry was not found names the entry."""
    out = []
    for item in missing:
        role, _, entry = item.partition(": ")
        what = ROLE_WORDS.get(role, role)
        out.append(f"{what}: there is no {entry}" if entry else what)
    return tuple(out)


ROLES = ("training_logs", "loss_curves", "model_code", "error_messages", "config", "paths")
_SUFFIX = {"model_code": ".py", "config": ".yaml"}
_PATH_LIKE = re.compile(r"[^\s\n\r\x00]{1,1024}")

_ENDING = re.compile(r"/[^/]*\w\.[A-Za-z][A-Za-z0-9]{0,5}$")


@dataclass(frozen=True)
class HandedOver:
    """Paths to read and entries that could not be found ("training_logs: run/log.txt")."""

    paths: tuple[Path, ...]
    missing: tuple[str, ...]


def _existing(entry: str, root: Path) -> Path | None:
    if not entry.strip() or "\0" in entry:
        return None
    if not _PATH_LIKE.fullmatch(entry) and "\n" in entry:
        return None
    try:
        path = root / Path(entry).expanduser()
        return path if path.exists() else None
    except (OSError, ValueError):  # too long or not a name at all: then it is text
        return None


def _looks_like_path(entry: str) -> bool:
    """One word, or one line with a folder and an ending in it ("my runs/log.txt")."""
    if _PATH_LIKE.fullmatch(entry):
        return True
    return "\n" not in entry and len(entry) < 1024 and "/" in entry and bool(_ENDING.search(entry))


def hand_over(artifacts: Artifacts, root: Path, scratch: Path) -> HandedOver:
    """Resolves every entry against `root`; texts are written to `scratch`. Roles without an entry are named missing."""
    paths: list[Path] = []
    missing: list[str] = list(artifacts.missing)
    for role in ROLES:
        for number, entry in enumerate(getattr(artifacts, role), 1):
            found = _existing(entry, root)
            if found is not None:
                paths.append(found)
            elif role == "paths" or (_looks_like_path(entry) and role != "error_messages"):
                missing.append(f"{role}: {entry}")
            elif entry.strip():
                target = scratch / f"{role}-{number}{_SUFFIX.get(role, '.txt')}"
                unlinked.made(scratch)
                unlinked.write(target, entry)
                paths.append(target)
    return HandedOver(tuple(dict.fromkeys(paths)), tuple(missing))
