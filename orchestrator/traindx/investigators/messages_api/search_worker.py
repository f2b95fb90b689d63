"""Searches files for a regular expression, in a process of its own: a pattern that never ends is killed with it.

    python search_worker.py < request.json        prints one JSON line a match; standard library only
"""

from __future__ import annotations

import fnmatch
import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FILE_AT_MOST = 16 * 2**20
"""Bytes of a file that is searched; a larger one is named and passed over."""
LINE_AT_MOST = 2_000
SKIPPED = frozenset({".git", ".hg", ".svn", "__pycache__", "node_modules"})


def files(root: Path, glob: str | None) -> Iterator[Path]:
    """The file itself, or those below a folder, links left alone."""
    if root.is_file():
        yield root
        return
    for here, below, names in os.walk(root):
        below[:] = sorted(n for n in below if n not in SKIPPED)
        for name in sorted(names):
            path = Path(here) / name
            if not path.is_symlink() and (glob is None or fnmatch.fnmatch(name, glob.rsplit("/", 1)[-1])):
                yield path


def lines_of(path: Path) -> list[str] | None:
    """The lines of a text file; None for one that is binary, too large or not readable."""
    try:
        if not path.is_file() or path.stat().st_size > FILE_AT_MOST:
            return None
        content = path.read_bytes()
    except OSError:
        return None
    if b"\0" in content[:8192]:
        return None
    return [line[:LINE_AT_MOST] for line in content.decode("utf-8", "replace").split("\n")]


def search(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """One record for each line shown: file, number, text, and whether it matches or only stands beside a match."""
    pattern = re.compile(request["pattern"], re.IGNORECASE if request["ignore_case"] else 0)
    context, left = request["context"], request["limit"]
    for path in files(Path(request["root"]), request["glob"]):
        lines = lines_of(path)
        hits = [n for n, line in enumerate(lines or ()) if pattern.search(line)]
        if not hits or lines is None:
            continue
        shown = sorted({m for n in hits for m in range(max(n - context, 0), min(n + context + 1, len(lines)))})
        for n in shown:
            yield {"file": str(path), "line": n + 1, "text": lines[n], "hit": n in set(hits[:10_000])}
            left -= 1
            if left <= 0:
                yield {"more": True}
                return


if __name__ == "__main__":
    try:
        for record in search(json.load(sys.stdin)):
            print(json.dumps(record))
    except re.error as error:
        print(json.dumps({"error": f"the pattern is no regular expression: {error}"}))
