"""What differs from a commit, as lines that a change touches: for `traindx audit --diff`.

Git runs hardened (`workspace.run_git`): nothing that the repository itself names is run.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from traindx.workspace import run_git
from traindx_tools.code_reports.changed_code import ChangedLines, Span
from traindx_tools.errors import BadUsage
from traindx_tools.source_files.texts import SUFFIXES

MOST_CHARACTERS = 200_000_000
"""Of a difference that is read; a difference of more says nothing to anybody."""

_DIFF = ("-c", "diff.relative=false", "diff", "-U0", "--inter-hunk-context=0", "--no-ext-diff", "--no-textconv",
         "--no-color", "--ignore-submodules=all", "--find-renames", "--src-prefix=a/", "--dst-prefix=b/")
"""Whatever the user's configuration says of differences, this one can be parsed."""
_HUNK = re.compile(r"@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@")
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)")
_ESCAPED = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v"}


def lines_changed_since(folder: Path, base: str, staged: bool = False) -> ChangedLines:
    """The lines of Python files and notebooks that differ from `base`: committed, staged, in the worktree, untracked.

    `staged`: what is committed or staged alone, as a hook before a commit has to look at it.
    Of a branch name the point where the current branch left it counts, as in a pull request. Raises BadUsage.
    """
    top = run_git(folder, "rev-parse", "--show-toplevel")
    if top is None:
        raise BadUsage(f"--diff needs a git repository, and {folder} is in none that git can read: leave --diff out to "
                       "audit everything")
    root = Path(top.removesuffix("\n"))
    index = ("--cached",) if staged else ()
    difference = run_git(root, *_DIFF, *index, _commit(root, base), "--", limit=MOST_CHARACTERS + 1)
    listed = ("ls-files", "--others", "--exclude-standard", "-z")
    others = "" if staged else run_git(root, *listed, limit=MOST_CHARACTERS)
    if difference is None or len(difference) > MOST_CHARACTERS:
        raise BadUsage(f"git could not tell what differs from {base!r} (too much, or it took too long): name a nearer "
                       "commit, or leave --diff out")
    lines: dict[str, tuple[Span, ...] | None] = {os.path.realpath(root / path): spans
                                                 for path, spans in files_in(difference) if path.endswith(SUFFIXES)}
    new = [name for name in (others or "").split("\0") if name.endswith(SUFFIXES)]
    return ChangedLines({**lines, **{os.path.realpath(root / name): None for name in new}})


def _commit(root: Path, base: str) -> str:
    if not base or base.startswith("-"):
        raise BadUsage(f"--diff {base!r} is no commit: give a branch, a tag or a commit, e.g. --diff=main")
    known = run_git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{base}^{{commit}}")
    if known is None and base == "HEAD":  # nothing is committed yet: everything differs
        return (run_git(root, "hash-object", "-t", "tree", "--stdin") or "").strip()
    if known is None:
        raise BadUsage(f"--diff {base!r} is no commit that is here: give a branch, a tag or a commit, e.g. "
                       "--diff=main. In CI fetch it first (actions/checkout with fetch-depth: 0)")
    left_at = run_git(root, "merge-base", known.strip(), "HEAD")
    return (left_at or known).strip()


def files_in(difference: str) -> Iterator[tuple[str, tuple[Span, ...] | None]]:
    """The files of a difference without context lines, with the lines that it touches; None for a whole notebook.

    Where only lines were deleted, the lines on both sides of the gap count.
    """
    path: str | None = None
    spans: list[Span] = []
    left = 0  # lines of the current hunk that are still to come: they may look like anything
    for line in difference.split("\n"):
        if left > 0 and line[:1] in ("+", "-"):
            left -= 1
        elif line.startswith("diff --git "):
            if path is not None:
                yield path, _spans(path, spans)
            path, spans = None, []
        elif line.startswith("+++ ") and path is None:
            path = _path(line[4:])
        elif match := _HUNK.match(line):
            start, count = int(match[1]), int(match[2] or "1")
            spans.append((start, start + count - 1) if count else (max(start, 1), start + 1))
            left = _length(line)
    if path is not None:
        yield path, _spans(path, spans)


def _spans(path: str, spans: list[Span]) -> tuple[Span, ...] | None:
    return None if path.endswith(".ipynb") else tuple(spans)


def _length(hunk: str) -> int:
    """How many lines with a sign follow."""
    counts = re.findall(r"[-+]\d+(?:,(\d+))?", hunk.split("@@")[1])
    return sum(int(c or "1") for c in counts)


def _path(name: str) -> str | None:
    """The file after `+++ `; None for one that was deleted. Git quotes names with special characters as C does."""
    name = name.removesuffix("\t")
    if name.startswith('"') and name.endswith('"'):
        raw = _ESCAPE.sub(lambda m: bytes([int(m[1], 8)]) if m[1].isdigit() else _ESCAPED.get(m[1], m[1]),
                          name[1:-1].encode("utf-8", "surrogateescape"))
        name = os.fsdecode(raw)
    return name[2:] if name.startswith("b/") else None
