"""Code of two runs: files paired by their path, the difference as text, and the functions it touches."""

from __future__ import annotations

import ast
import difflib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from traindx_tools.on_code.files import Text, read_texts
from traindx_tools.on_code.source import SourceFile, parse_source

CONTEXT = 2
MOST_LINES = 400
"""Lines of one file's difference that are kept."""


@dataclass(frozen=True)
class CodeDifference:
    """One file that differs. `here` and `there` are its paths in the two runs, None where it is missing.

    `functions` are the functions (or "the top level") in which the broken run's file differs in more than form; `lines`
    the lines of it that are changed or new, `diff` the unified difference from the working run to the broken one.
    """

    name: str
    here: str | None
    there: str | None
    functions: tuple[str, ...]
    lines: tuple[int, ...]
    diff: str

    def statement(self) -> str:
        """One line."""
        if self.there is None:
            return f"{self.name}: only the broken run has this file"
        if self.here is None:
            return f"{self.name}: only the working run has this file"
        if not self.functions:
            return f"{self.name}: differs in form only (comments, line breaks)"
        return f"{self.name}: differs in {', '.join(self.functions[:6])}" + (" ..." if len(self.functions) > 6 else "")


def code_differences(here: Sequence[Path], there: Sequence[Path]) -> list[CodeDifference]:
    """The files that differ, those in both runs first."""
    mine, other = _by_name(here), _by_name(there)
    found = []
    for name in dict.fromkeys([*mine, *other]):
        one, two = mine.get(name), other.get(name)
        if one is None or two is None or one.text != two.text:
            found.append(_difference(name, one, two))
    return sorted(found, key=lambda d: (d.here is None or d.there is None, not d.functions, d.name))


def _by_name(paths: Sequence[Path]) -> dict[str, Text]:
    """Texts by their path below the folder that holds them all."""
    texts, _ = read_texts(paths)
    if not texts:
        return {}
    root = os.path.commonpath([os.path.dirname(os.path.abspath(t.path)) for t in texts])
    return {os.path.relpath(os.path.abspath(t.path), root): t for t in texts}


def _difference(name: str, here: Text | None, there: Text | None) -> CodeDifference:
    if here is None or there is None:
        return CodeDifference(name, here.path if here else None, there.path if there else None, (), (), "")
    old, new = there.text.splitlines(), here.text.splitlines()
    diff = list(difflib.unified_diff(old, new, f"{name} (works)", f"{name} (broken)", n=CONTEXT, lineterm=""))
    if len(diff) > MOST_LINES:
        diff = [*diff[:MOST_LINES], f"... {len(diff) - MOST_LINES} more lines"]
    changed: set[int] = set()
    for tag, _, _, first, end in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            changed.update(range(first + 1, end + 1) if end > first else (first, first + 1))  # both sides of a gap
    return CodeDifference(name, here.path, there.path, _functions(here, there), tuple(sorted(changed)), "\n".join(diff))


def _functions(here: Text, there: Text) -> tuple[str, ...]:
    """Functions that are new, gone or changed in more than form."""
    mine, other = _bodies(here), _bodies(there)
    if mine is None or other is None:
        return ("the whole file (it cannot be parsed)",)
    return tuple(name for name in dict.fromkeys([*mine, *other]) if mine.get(name) != other.get(name))


def _bodies(text: Text) -> dict[str, str] | None:
    source = parse_source(text.path, text.text)
    if not isinstance(source, SourceFile):
        return None
    found: dict[str, str] = {}
    rest = _collect(source.tree.body, "", found)
    return {**found, "the top level": "\n".join(rest)}


def _collect(statements: Sequence[ast.stmt], prefix: str, found: dict[str, str]) -> list[str]:
    """Functions by qualified name into `found`; returns everything else."""
    rest = []
    for statement in statements:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found[f"{prefix}{statement.name}"] = ast.dump(statement)
        elif isinstance(statement, ast.ClassDef):
            inner = _collect(statement.body, f"{prefix}{statement.name}.", found)
            found[f"{prefix}{statement.name}"] = "\n".join([*(ast.dump(b) for b in statement.bases), *inner])
        else:
            rest.append(ast.dump(statement))
    return rest
