"""Code of two runs: files paired by their path, the difference as text, and the functions it touches."""

from __future__ import annotations

import ast
import difflib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from traindx_tools.notebooks.cells import cell_of
from traindx_tools.on_code.source import SourceFile, parse_source
from traindx_tools.source_files.texts import Text, read_texts

CONTEXT = 2
ALIKE, MOST_PAIRS = 0.6, 400
"""Share of lines from which two files of other names are versions of one, and pairs that are compared."""
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
    starts: tuple[int, ...] = ()
    """Of a notebook: the line at which each code cell begins; lines are those of the joined cells."""

    def at(self, line: int) -> str:
        """`train.py:3`, of a notebook `train.ipynb:cell 2:3`."""
        return "{}:cell {}:{}".format(self.name, *cell_of(line, self.starts)) if self.starts else f"{self.name}:{line}"

    def joined(self, cell: int | None, line: int) -> int:
        """A line as a finding counts it, as it is counted here."""
        return self.starts[cell - 1] + line - 1 if cell is not None and 0 < cell <= len(self.starts) else line

    @property
    def cells(self) -> str:
        """The cells of a notebook that differ, "" of a script."""
        found = list(dict.fromkeys(cell_of(line, self.starts)[0] for line in self.lines)) if self.starts else []
        return f" ({'cell' if len(found) == 1 else 'cells'} {', '.join(map(str, found[:8]))})" if found else ""

    def statement(self) -> str:
        """One line."""
        if self.there is None:
            return f"{self.name}: only the broken run has this file"
        if self.here is None:
            return f"{self.name}: only the working run has this file"
        if not self.functions:
            return f"{self.name}: differs in form only (comments, line breaks)"
        more = " ..." if len(self.functions) > 6 else ""
        return f"{self.name}: differs in {', '.join(self.functions[:6])}{more}{self.cells}"


def code_differences(here: Sequence[Path], there: Sequence[Path]) -> list[CodeDifference]:
    """The files that differ, those in both runs first."""
    mine, other = _by_name(here), _by_name(there)
    for name, same in _renamed(mine, other).items():
        other[name] = other.pop(same)
    found = []
    for name in dict.fromkeys([*mine, *other]):
        one, two = mine.get(name), other.get(name)
        if one is None or two is None or one.text != two.text:
            found.append(_difference(name, one, two))
    return sorted(found, key=lambda d: (d.here is None or d.there is None, not d.functions, d.name))


def _renamed(mine: Mapping[str, Text], other: Mapping[str, Text]) -> dict[str, str]:
    """Files of one run that the other holds under another name: what is left over on both sides and most alike."""
    left = [(n, o) for n in mine if n not in other for o in other if o not in mine and Path(n).suffix == Path(o).suffix]
    alike = sorted(((_alike(mine[n].text, other[o].text), n, o) for n, o in left[:MOST_PAIRS]), reverse=True)
    found: dict[str, str] = {}
    for share, name, same in alike:
        if share >= ALIKE and name not in found and same not in found.values():
            found[name] = same
    return found


def _alike(one: str, other: str) -> float:
    """The share of lines, blank ones aside, that both texts have."""
    a, b = ({line.strip() for line in t.splitlines() if line.strip()} for t in (one, other))
    return 2 * len(a & b) / max(1, len(a) + len(b))


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
    return CodeDifference(name, here.path, there.path, _functions(here, there), tuple(sorted(changed)), "\n".join(diff),
                          here.cells)


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
