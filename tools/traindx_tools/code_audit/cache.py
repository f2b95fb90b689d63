"""Results of audits by content: the same files judged by the same rules are not judged again.

The key is made of every file's path and bytes and of the auditor's own source, so that a changed rule forgets what it
said. Configuration files that the code opens by name are checked again at each use. An entry is one file, written aside
and moved into place; a broken one counts as absent, and a folder that cannot be written costs only time.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from traindx_tools import __version__
from traindx_tools.code_audit.results import BROKEN, RuleResults
from traindx_tools.source_files import configuration
from traindx_tools.source_files.texts import Text

MOST_ENTRIES = 200
"""Entries that are kept, the latest written ones."""
MOST_BYTES = 20_000_000
"""Largest entry that is read."""
JUDGES = ("code_audit", "code_rules", "edits", "invariants", "knowledge", "notebooks", "on_code", "program",
          "source_files")  # fmt: skip
"""The rooms that decide what is said of a program: who changes one of them makes another auditor."""


def default_folder() -> Path | None:
    """`$XDG_CACHE_HOME/traindx/audit`, or below ~/.cache; None where there is no home."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    try:
        home = Path(given) if os.path.isabs(given) else Path.home() / ".cache"  # the XDG rule: a relative one is void
    except RuntimeError:
        return None
    return home / "traindx" / "audit"


@cache
def engine() -> str:
    """A digest of the auditor: its version, its source with the tables it asks, and the Python that parses."""
    digest = hashlib.sha256(f"{__version__} {sys.version_info[:2]}".encode())
    # In an archive no file of the package can be listed as one: the archive itself is the source.
    archive = getattr(globals().get("__loader__"), "archive", None)
    home = Path(__file__).parent.parent
    sources = (f for room in JUDGES for kind in ("*.py", "*.toml") for f in (home / room).rglob(kind))
    for source in [Path(archive)] if archive else sorted(sources):
        digest.update(source.read_bytes())
    return digest.hexdigest()


def key_of(texts: Sequence[Text]) -> str:
    """The key of these files as one project."""
    digest = hashlib.sha256(engine().encode())
    for text in texts:
        digest.update(f"\n{text.path}\0{os.path.abspath(text.path)}\0{text.digest}".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


@dataclass(frozen=True)
class Cache:
    """Results in one folder, which is made when the first one is stored."""

    folder: Path

    def load(self, key: str) -> RuleResults | None:
        """What was said under this key, if the configuration files it rests on still read the same."""
        path = self._path(key)
        try:
            if path.stat().st_size > MOST_BYTES:
                return None
            entry = json.loads(path.read_bytes())
            fresh = all(configuration.digest(Path(p)) == was for p, was in entry["opened"].items())
            return RuleResults.loads(entry["judged"]) if fresh else None
        except (OSError, *BROKEN):
            return None

    def store(self, key: str, results: RuleResults, opened: Mapping[str, str]) -> None:
        """Remember what was said; where that is not possible nothing happens."""
        with contextlib.suppress(OSError):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self.folder, suffix=".part")
            try:
                with os.fdopen(handle, "w", encoding="utf-8") as file:
                    json.dump({"opened": dict(opened), "judged": results.dumps()}, file)
                os.replace(name, self._path(key))
            except BaseException:  # also Ctrl-C: no half-written file stays behind; it is raised again
                with contextlib.suppress(OSError):
                    os.unlink(name)
                raise
            self._prune()

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.json"

    def _prune(self) -> None:
        """Entries beyond the number that is kept, the oldest first; another process may be doing the same."""
        entries = sorted(self.folder.iterdir(), key=_written, reverse=True)
        for old in entries[MOST_ENTRIES:]:
            with contextlib.suppress(OSError):
                old.unlink()


def _written(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
