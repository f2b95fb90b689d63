"""One change of a source at one or more places, made of small edits and given out as patches of whole lines.

A `Change` is certain or nothing: an edit that cannot be made (a node over several lines of which others share one, a
statement that shares its line) spoils the whole, because half a change is a fault of its own.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from traindx_tools.finding import Patch
from traindx_tools.on_code.patching import indentation, still_parses
from traindx_tools.on_code.source import SourceFile
from traindx_tools.on_code.syntax import Syntax, syntax

_TIGHT = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.IfExp, ast.Starred, ast.Await)
_LOOSE = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.IfExp, ast.Lambda, ast.NamedExpr, ast.Await)


@dataclass(frozen=True)
class _Edit:
    """`first`..`last` are lines (an insertion has last == first - 1), columns are in UTF-8 bytes."""

    first: int
    last: int
    start: int
    stop: int
    text: str
    whole: bool = False


@dataclass(eq=False)
class Change:
    """Edits of one file, collected. `summary` says in one clause what they do."""

    file: SourceFile
    summary: str
    edits: list[_Edit] = field(default_factory=list)
    certain: bool = True

    @property
    def code(self) -> Syntax:
        """The file's syntax."""
        return syntax(self.file)

    def spoil(self) -> Change:
        """Something about it is not certain after all."""
        self.certain = False
        return self

    def replace(self, node: ast.AST | None, code: str) -> Change:
        """Put other code in place of an expression; lines between its first and last line are joined."""
        if node is None or not hasattr(node, "lineno") or node.end_lineno is None:  # type: ignore[attr-defined]
            return self.spoil()
        first, last = node.lineno, node.end_lineno  # type: ignore[attr-defined]
        if first != last and any("#" in self.file.line(n) for n in range(first, last + 1)):
            return self.spoil()  # a comment would be lost
        code = f"({code})" if self._binds_loosely(node, code) else code
        self.edits.append(_Edit(first, last, node.col_offset, node.end_col_offset, code))  # type: ignore[attr-defined]
        return self

    def insert(self, line: int, column: int, code: str) -> Change:
        """Put code at a place inside a line (the column in UTF-8 bytes)."""
        self.edits.append(_Edit(line, line, column, column, code))
        return self

    def edit(self, line: int, start: int, stop: int, code: str) -> Change:
        """Put code in place of a part of a line (columns in UTF-8 bytes)."""
        self.edits.append(_Edit(line, line, start, stop, code))
        return self

    def wrap(self, node: ast.AST | None, before: str, after: str) -> Change:
        """Put code around an expression, whose own text stays as it is."""
        if node is None or not hasattr(node, "end_lineno"):
            return self.spoil()
        self.insert(node.lineno, node.col_offset, before)  # type: ignore[attr-defined]
        return self.insert(node.end_lineno, node.end_col_offset, after)  # type: ignore[attr-defined]

    def unwrap(self, outer: ast.AST, inner: ast.AST) -> Change:
        """Leave only a part of an expression, whose own text stays as it is."""
        o, i = _span(outer), _span(inner)
        if o is None or i is None or o[0] != o[2]:
            return self.spoil()
        around = self._binds_loosely(outer, ast.unparse(inner))
        self.edits.append(_Edit(o[0], o[0], o[1], i[1], "(" if around else ""))
        self.edits.append(_Edit(o[2], o[2], i[3], o[3], ")" if around else ""))
        return self

    def _binds_loosely(self, node: ast.AST, code: str) -> bool:
        """Whether code needs parentheses in the place of a node: an operation beside an operator, a call or a dot."""
        try:
            new = ast.parse(code, mode="eval").body
        except SyntaxError:
            return False
        up = self.code.parent(node)
        tight = isinstance(up, _TIGHT) or (isinstance(up, (ast.Call, ast.Subscript, ast.Attribute)) and (
            node is getattr(up, "func", None) or node is getattr(up, "value", None)))  # fmt: skip
        return tight and isinstance(new, _LOOSE)

    def pass_argument(self, call: ast.Call, name: str, code: str) -> Change:
        """Give a call a keyword argument: replace it where it is given, else add it at the end."""
        for keyword in call.keywords:
            if keyword.arg == name:
                return self.replace(keyword.value, code)
            if keyword.arg is None:
                return self.spoil()  # **options may hold it
        given = [*call.args, *(k.value for k in call.keywords)]
        if given:
            last = max(given, key=lambda n: (n.end_lineno or 0, n.end_col_offset or 0))
            return self.insert(last.end_lineno or last.lineno, last.end_col_offset or 0, f", {name}={code}")
        return self.insert(call.end_lineno or call.lineno, (call.end_col_offset or 1) - 1, f"{name}={code}")

    def before(self, statement: ast.stmt | None, code: str) -> Change:
        """Put whole lines before a statement, with its indentation. Decorators stay with what they decorate."""
        if statement is None or not self._alone(statement):
            return self.spoil()
        first = min([statement.lineno, *(d.lineno for d in getattr(statement, "decorator_list", ()))])
        text = _indented(self._in_its_units(code), indentation(self.file, first))
        self.edits.append(_Edit(first, first - 1, 0, 0, text, True))
        return self

    def after(self, statement: ast.stmt | None, code: str) -> Change:
        """Put whole lines after a statement, with its indentation."""
        if statement is None or statement.end_lineno is None or not self._alone(statement):
            return self.spoil()
        at = statement.end_lineno + 1
        pad = indentation(self.file, statement.lineno)
        self.edits.append(_Edit(at, at - 1, 0, 0, _indented(self._in_its_units(code), pad), True))
        return self

    def delete(self, statement: ast.stmt | None) -> Change:
        """Take a statement out with its lines. Not where it is alone in its block, which would be left empty."""
        block = self.block(statement) if statement is not None else []
        if statement is None or not self._alone(statement) or len(block) < 2 or self._has_comment(statement):
            return self.spoil()
        self.edits.append(_Edit(statement.lineno, statement.end_lineno or statement.lineno, 0, 0, "", True))
        return self

    def move_before(self, statement: ast.stmt | None, target: ast.stmt | None) -> Change:
        """Move a statement in front of another one, with its own comments at the line's end."""
        text = self._text(statement)
        return self.spoil() if text is None else self.delete(statement).before(target, text)

    def move_after(self, statement: ast.stmt | None, target: ast.stmt | None) -> Change:
        """Move a statement behind another one, with its own comments at the line's end."""
        text = self._text(statement)
        return self.spoil() if text is None else self.delete(statement).after(target, text)

    def _in_its_units(self, code: str) -> str:
        """Code of several levels, written with four spaces, in the units of the file."""
        if "\n    " not in code or not any(line.startswith("\t") for line in self.file.lines):
            return code
        return re.sub(r"^( {4})+", lambda m: "\t" * (len(m[0]) // 4), code, flags=re.MULTILINE)

    def block(self, statement: ast.stmt) -> list[ast.stmt]:
        """The list of statements in which a statement stands."""
        return self.code.block(statement)

    def patches(self) -> tuple[Patch, ...]:
        """The edits as patches that touch no line twice; empty where anything was not certain."""
        if not self.certain or not self.edits:
            return ()
        made = tuple(self._patch(group) for group in _groups(self.edits))
        try:
            return made if still_parses(self.file, made) else ()
        except ValueError:  # two of them touch one line
            return ()

    def _alone(self, statement: ast.stmt) -> bool:
        first = self.file.line(statement.lineno).encode("utf-8")
        last = self.file.line(statement.end_lineno or statement.lineno).encode("utf-8")
        after = last[statement.end_col_offset or 0 :].strip()
        return not first[: statement.col_offset].strip() and (not after or after.startswith(b"#"))

    def _has_comment(self, statement: ast.stmt) -> bool:
        """Whether a comment stands on a line of its own inside, or beside anything but the last line."""
        lines = range(statement.lineno, statement.end_lineno or statement.lineno)
        return any("#" in self.file.line(n) for n in lines)

    def _text(self, statement: ast.stmt | None) -> str | None:
        if statement is None:
            return None
        lines = [self.file.line(n) for n in range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)]
        pad = indentation(self.file, statement.lineno)
        return "\n".join(line.removeprefix(pad) for line in lines)

    def _patch(self, group: list[_Edit]) -> Patch:
        first = min(e.first for e in group)
        last = max(e.last for e in group)
        if all(e.whole and e.last < e.first for e in group):  # only insertions, all at one place
            return Patch(self.file.path, first, first - 1, "", "\n".join(e.text for e in group), self.summary)
        lines: list[str] = []
        for number in range(first, max(first, last) + 1):
            lines += [e.text for e in group if e.whole and e.last < e.first == number]
            rest = self._changed(number, [e for e in group if not (e.whole and e.last < e.first)])
            lines += [] if rest is None else [rest]
        lines += [e.text for e in group if e.whole and e.last < e.first and e.first > max(first, last)]
        original = "\n".join(self.file.line(n) for n in range(first, max(first, last) + 1))
        return Patch(self.file.path, first, max(first, last), original, "\n".join(lines), self.summary)

    def _changed(self, number: int, edits: list[_Edit]) -> str | None:
        """A line with its edits; None where it goes away."""
        raw = self.file.line(number).encode("utf-8")
        for edit in sorted((e for e in edits if e.first <= number <= e.last), key=lambda e: e.start, reverse=True):
            if edit.whole or edit.first < number:
                return None
            if edit.last > number:
                tail = self.file.line(edit.last).encode("utf-8")[edit.stop :]
                raw = raw[: edit.start] + edit.text.encode("utf-8") + tail
            else:
                raw = raw[: edit.start] + edit.text.encode("utf-8") + raw[edit.stop :]
        return raw.decode("utf-8", "replace")


def _groups(edits: list[_Edit]) -> Iterator[list[_Edit]]:
    """Edits that touch the same lines belong to one patch; an insertion touches the line that it stands before."""
    ordered = sorted(edits, key=lambda e: (e.first, e.last))
    group: list[_Edit] = []
    end = -1
    for edit in ordered:
        if group and edit.first > end:
            yield group
            group, end = [], -1
        group.append(edit)
        end = max(end, edit.first, edit.last)
    if group:
        yield group


def _indented(code: str, pad: str) -> str:
    return "\n".join(pad + line if line.strip() else line for line in code.split("\n"))


def _span(node: ast.AST) -> tuple[int, int, int, int] | None:
    if getattr(node, "end_lineno", None) is None:
        return None
    return node.lineno, node.col_offset, node.end_lineno, node.end_col_offset  # type: ignore[attr-defined]


def source_of(file: SourceFile, node: ast.AST) -> str:
    """The text of an expression exactly as it is written."""
    span = _span(node)
    if span is None or not 0 < span[0] <= span[2] <= len(file.lines):
        return ast.unparse(node)
    first, start, last, stop = span
    lines = [file.line(n).encode("utf-8") for n in range(first, last + 1)]
    lines[-1] = lines[-1][:stop]  # first the end: both may be of one line
    lines[0] = lines[0][start:]
    return b"\n".join(lines).decode("utf-8", "replace") or ast.unparse(node)
