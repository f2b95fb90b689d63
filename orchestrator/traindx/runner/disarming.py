"""Names below scratch/debug that other programs act on by themselves: a command leaves none of them behind.

A repository's settings name commands that `git status` runs, also when an editor or the host asks for it; settings and
skills of a coding agent, of an editor or of direnv are read where they lie. What acts is renamed when the command ends.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

NAMES = frozenset({".git", ".hg", ".svn", ".claude", ".mcp.json", ".vscode", ".idea", ".envrc", ".direnv", ".husky",
                   ".gitmodules", ".pre-commit-config.yaml", ".devcontainer"})
LOOKED_AT = 50_000
"""Entries; what lies behind them is not looked at."""


def acting(folders: Iterable[str]) -> set[str]:
    """The paths below these folders that bear such a name, or hold what git takes for a repository."""
    found: set[str] = set()
    seen = 0
    for folder in folders:
        for where, inner, files in os.walk(folder):
            found |= {os.path.join(where, name) for name in (*inner, *files) if name in NAMES}
            if "HEAD" in files and {"objects", "refs"} <= {*inner}:
                found.add(os.path.join(where, "HEAD"))  # a repository without a working tree
            inner[:] = [name for name in inner if name not in NAMES]
            seen += len(inner) + len(files)
            if seen > LOOKED_AT:
                return found
    return found


def disarm(before: set[str], folders: Iterable[str]) -> None:
    """Rename what came since, and say so."""
    for path in sorted(acting(folders) - before):
        folder, name = os.path.split(path)
        to = os.path.join(folder, f"disarmed-{name.lstrip('.')}-{os.getpid()}")
        try:
            os.rename(path, to)
        except OSError:
            continue
        print(f"protected: {path} is now {os.path.basename(to)}, for other programs act on such a name. Work with it "
              "below $TMPDIR", file=sys.stderr)
