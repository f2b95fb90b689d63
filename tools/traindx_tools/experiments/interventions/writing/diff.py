"""A unified diff applied to files as they are: context has to fit at the line that it names, or at one other place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from traindx_tools.errors import BadUsage

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


@dataclass
class _Hunk:
    start: int
    old: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)


def patched(diff: str, workspace: Path) -> dict[str, bytes | None]:
    """The files as the diff makes them, None for one that it removes. Raises BadUsage where a part does not fit."""
    found: dict[str, bytes | None] = {}
    for old, new, hunks in _files(diff):
        source, target = _path(old), _path(new)
        before = [] if source is None else _lines(source, workspace)
        after = _applied(source or str(target), before, hunks)
        if target is None:
            found[str(source)] = None
        else:
            found[target] = "".join(after).encode()
            if source is not None and source != target:
                found[source] = None
    if not found:
        raise BadUsage("the patch changes no file: a unified diff is expected, as `git diff` or `diff -u` print it.")
    return found


def _files(diff: str) -> Iterator[tuple[str, str, list[_Hunk]]]:
    lines = diff.splitlines(keepends=True)
    at = 0
    while at < len(lines):
        if not (lines[at].startswith("--- ") and at + 1 < len(lines) and lines[at + 1].startswith("+++ ")):
            at += 1
            continue
        old, new = lines[at][4:], lines[at + 1][4:]
        at += 2
        hunks: list[_Hunk] = []
        while at < len(lines) and (head := _HUNK.match(lines[at])):
            hunk = _Hunk(int(head.group(1)))
            left, right, before = int(head.group(2) or 1), int(head.group(4) or 1), " "
            at += 1
            while at < len(lines) and (left > 0 or right > 0 or lines[at].startswith("\\")):
                line = lines[at]
                at += 1
                if line.startswith("\\"):  # no newline at the end of the file
                    for side, signs in ((hunk.old, " -"), (hunk.new, " +")):
                        if side and before in signs:
                            side[-1] = side[-1].rstrip("\n")
                    continue
                before = line[:1] if line[:1] in " -+" else " "
                if before in " -":
                    hunk.old.append(line[1:] if line[:1] in " -" else line)
                    left -= 1
                if before in " +":
                    hunk.new.append(line[1:] if line[:1] in " +" else line)
                    right -= 1
            hunks.append(hunk)
        yield old, new, hunks


def _path(head: str) -> str | None:
    name = head.rstrip("\n").split("\t")[0].strip()
    if name == "/dev/null":
        return None
    return name[2:] if name.startswith(("a/", "b/")) else name


def _lines(name: str, workspace: Path) -> list[str]:
    path = workspace / name
    if not path.resolve().is_relative_to(workspace.resolve()):
        raise BadUsage(f"the patch names {name}, which lies outside of {workspace}.")
    try:
        return path.read_bytes().decode("utf-8").splitlines(keepends=True)
    except (OSError, ValueError) as error:
        raise BadUsage(f"the patch names {name}, which cannot be read: {getattr(error, 'strerror', None) or error}."
                       ) from error


def _applied(name: str, before: list[str], hunks: list[_Hunk]) -> list[str]:
    after, moved = list(before), 0
    for hunk in hunks:
        at = max(0, hunk.start - 1) + moved if hunk.old else hunk.start + moved
        if after[at:at + len(hunk.old)] != hunk.old:
            places = [i for i in range(len(after) - len(hunk.old) + 1) if after[i:i + len(hunk.old)] == hunk.old]
            if len(places) != 1 or not hunk.old:
                raise BadUsage(f"the part of the patch at line {hunk.start} does not fit {name}: it holds other lines "
                               "there. Make the diff against the files as they are.")
            at = places[0]
        after[at:at + len(hunk.old)] = hunk.new
        moved += len(hunk.new) - len(hunk.old)
    return after
