"""What a change touches: which files have to be read for it, and which findings belong to it.

A finding belongs to a change when the change touches the function around a place that the finding names (at module
level: the statement around it). A deleted `zero_grad()` leaves no line of its own, so that lines alone would miss it.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from traindx_tools.finding import Finding
from traindx_tools.on_code.source import SourceFile, below, parse_source
from traindx_tools.source_files.imports import ModuleIndex, imported
from traindx_tools.source_files.texts import Text

Span = tuple[int, int]
"""First and last line, 1-based and inclusive."""

@dataclass(frozen=True)
class ChangedLines:
    """Lines that a change touches, by the real path of the file; None stands for the whole file."""

    lines: Mapping[str, tuple[Span, ...] | None] = field(default_factory=dict)

    def of(self, path: str) -> tuple[Span, ...] | None:
        """The touched lines of a file: () where it is untouched, None where all of it is."""
        return self.lines.get(os.path.realpath(path), ())


def related(texts: Sequence[Text], changes: ChangedLines) -> list[Text]:
    """The touched files, those that import them, and all that these import in turn: enough to judge the change."""
    index: ModuleIndex[Text] = ModuleIndex(texts)
    imports = {t.path: list(imported(t, index)) for t in texts}
    changed = {t.path for t in texts if changes.of(t.path) != ()}
    wanted = changed | {path for path, found in imports.items() if changed.intersection(found)}
    queue = list(wanted)
    while queue:
        for path in imports[queue.pop()]:
            if path not in wanted:
                wanted.add(path)
                queue.append(path)
    return [t for t in texts if t.path in wanted]


@dataclass(frozen=True)
class Units:
    """The functions and module-level statements of a file, as spans of lines."""

    text: Text

    @cached_property
    def _spans(self) -> tuple[list[Span], list[Span]]:
        source = parse_source(self.text.path, self.text.text)
        if not isinstance(source, SourceFile):
            return [], []
        functions = [_span(n) for n in below(source.tree) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))]
        return functions, [_span(s) for s in source.tree.body]

    def around(self, line: int) -> Span:
        """The innermost function around a line, else the module-level statement, else the line."""
        functions, statements = self._spans
        for spans in (functions, statements):
            holding = [s for s in spans if s[0] <= line <= s[1]]
            if holding:
                return max(holding)
        return line, line


def _span(node: ast.AST) -> Span:
    decorators = [d.lineno for d in getattr(node, "decorator_list", ())]
    first = min([getattr(node, "lineno", 1), *decorators])
    return first, getattr(node, "end_lineno", None) or first


def belonging(findings: Sequence[Finding], texts: Sequence[Text], changes: ChangedLines) -> list[Finding]:
    """The findings that belong to a change."""
    units = {t.path: Units(t) for t in texts if changes.of(t.path) != ()}
    return [f for f in findings if any(_is_changed(path, line, units, changes) for path, line in _places(f, units))]


def _is_changed(path: str, line: int, units: Mapping[str, Units], changes: ChangedLines) -> bool:
    spans = changes.of(path)
    if spans is None:
        return True
    first, last = units[path].around(line)
    return any(start <= last and first <= end for start, end in spans)


def _places(finding: Finding, units: Mapping[str, Units]) -> Iterator[tuple[str, int]]:
    """Every place in a touched file that a finding names: its own, and those in its statement and measured values."""
    where = finding.where
    if where.file is not None and where.file in units:
        yield where.file, where.line or 1
    told = "\n".join([finding.statement, *(str(v) for v in finding.measured.values())])
    for path in units:
        if path in told:
            yield from ((path, int(m[1])) for m in re.finditer(re.escape(path) + r":(\d+)\b", told))
