"""Was the change executed by the command that verifies it? Asked of the statements on changed lines of Python files.

A note for each executed line is left by `line_watch/sitecustomize.py`, which the command's Python processes load. What
that cannot see is told as unknown, never as "not executed": other files than Python, a command in which no Python
process took part or let itself be watched, and programs that compile their functions out of its sight.
"""

from __future__ import annotations

import ast
import contextlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Literal

from traindx.durable import write_state
from traindx.hindrances import Change
from traindx_tools import unlinked

VARIABLE = "TRAINDX_LINES"
WATCH = Path(__file__).with_name("line_watch")
MOST_READ = 400
"""Python files of a workspace that are looked through for compilers."""

_OUT_OF_SIGHT = re.compile(r"torch\.compile\(|jit\.(?:script|trace)\b|\btriton\b|\bnumba\b|tf\.function|"
                           r"(?<!\bre)\.compile\(")
"""What runs a function from its source or bytecode without executing its lines as Python does."""

Lines = Callable[[Change], Iterator[int]]


@dataclass(frozen=True)
class Executed:
    """`state`: "yes", "no" or "unknown"; `said`: which lines, or why it cannot be told."""

    state: Literal["yes", "no", "unknown"]
    said: str = ""


def statements(change: Change, lines: Lines | None = None) -> tuple[tuple[int, int], ...]:
    """(first, last) line of each statement that the change added or altered, in the file as it is after it.

    Of a compound statement its header alone. Where lines were only taken out, the statements beside the gap stand for
    them. Comments, blank lines and texts by themselves are no statements. Empty for what cannot be parsed.
    """
    try:
        spans = tuple(_spans(ast.parse(change.after)))
    except (SyntaxError, ValueError, RecursionError):
        return ()
    found = [s for line in (lines or _changed_lines)(change) for s in [_innermost(spans, line)] if s is not None]
    return tuple(dict.fromkeys(found))


def _made_lines(changes: Iterable[Change], workspace: Path) -> frozenset[tuple[str, int]]:
    """(real path, line) of the statements on lines that came, and not only beside lines that went."""
    return frozenset((str((workspace / c.path).resolve()), line) for c in changes if c.path.endswith(".py")
                     for first, last in statements(c, _came) for line in range(first, last + 1))


def _came(change: Change) -> Iterator[int]:
    return _changed_lines(change, beside_gaps=False)


def _changed_lines(change: Change, *, beside_gaps: bool = True) -> Iterator[int]:
    old, new = change.before.split("\n"), change.after.split("\n")
    for kind, _, _, start, stop in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "delete":
            yield from (start, start + 1) if beside_gaps else ()
        elif kind != "equal":
            yield from range(start + 1, stop + 1)


def _spans(tree: ast.AST) -> Iterator[tuple[int, int]]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.stmt) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            continue
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
        body = getattr(node, "body", None) or getattr(node, "cases", None)
        inner = [getattr(b, "lineno", 0) or b.pattern.lineno for b in body] if body else []
        last = max(first, min(inner) - 1) if inner else node.end_lineno or node.lineno
        yield first, last


def _innermost(spans: Iterable[tuple[int, int]], line: int) -> tuple[int, int] | None:
    around = [s for s in spans if s[0] <= line <= s[1]]
    return min(around, key=lambda s: s[1] - s[0], default=None)


def watched(changes: Sequence[Change], workspace: Path) -> dict[str, list[int]]:
    """Lines to be noted, by real path."""
    lines = {str((workspace / c.path).resolve()): [n for first, last in statements(c) for n in range(first, last + 1)]
             for c in changes if c.path.endswith(".py")}
    return {path: sorted(set(numbers)) for path, numbers in lines.items() if numbers}


def watching(folder: Path, lines: Mapping[str, Sequence[int]], environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of a command whose executed lines are noted in `folder`, which is made."""
    if not lines:
        return dict(environment)
    unlinked.made(folder)
    told = {"folder": str(folder.resolve()), "lines": {p: list(n) for p, n in lines.items()}}
    write_state(folder / "lines.json", json.dumps(told).encode())
    given = environment.get("PYTHONPATH", "")
    return {**environment, VARIABLE: str((folder / "lines.json").resolve()),
            "PYTHONPATH": os.pathsep.join([str(WATCH), *([given] if given else [])])}


def executed(changes: Sequence[Change], workspace: Path, folders: Sequence[Path]) -> Executed:
    """What the notes of all runs say of the change."""
    other = sorted(c.path for c in changes if not c.path.endswith(".py"))
    lines = watched(changes, workspace)
    if not lines:
        what = f"{', '.join(other)} is no Python file" if other else "the change holds no line that is executed"
        return Executed("unknown", f"whether the change was executed cannot be told: {what}")
    notes = {p.name for folder in folders if folder.is_dir() for p in folder.iterdir()}
    hit = [(path, line) for number, path in enumerate(sorted(lines)) for line in lines[path]
           if f"{number}-{line}" in notes]
    if hit:
        made = _made_lines(changes, workspace)
        path, line = next((h for h in hit if h in made), hit[0])
        what = "the changed line" if (path, line) in made else "the line beside those that went,"
        return Executed("yes", f"{what} {Path(path).name}:{line} was executed")
    why = _unseen(notes, other, workspace)
    if why:
        return Executed("unknown", f"whether the change was executed cannot be told: {why}")
    named = ", ".join(f"{Path(path).name}:{numbers[0]}" for path, numbers in sorted(lines.items()))
    return Executed("no", f"the command did not execute the changed lines ({named})")


def _unseen(notes: set[str], other: Sequence[str], workspace: Path) -> str:
    """Why the absence of a note says nothing, "" where it does."""
    if other:
        return f"{', '.join(other)} is no Python file"
    if not any(n.startswith("process-") for n in notes):
        return "no Python process of the command could be watched"
    compiler = next((m[0] for text in _sources(workspace) for m in [_OUT_OF_SIGHT.search(text)] if m), "")
    return f"the program compiles its functions ({compiler.rstrip('(').lstrip('.')})" if compiler else ""


def _sources(workspace: Path) -> Iterator[str]:
    skipped = {".git", "node_modules", "__pycache__", "scratch"}
    count = 0
    for folder, names, files in os.walk(workspace):
        names[:] = [n for n in names if n not in skipped and not os.path.exists(os.path.join(folder, n, "pyvenv.cfg"))]
        for name in files:
            if name.endswith(".py") and count < MOST_READ:
                count += 1
                with contextlib.suppress(OSError):
                    yield Path(folder, name).read_text(encoding="utf-8", errors="replace")
