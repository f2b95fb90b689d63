"""The generic edits of a source: insert, move, replace or wrap, add a term, give an argument, delete.

A `SourceEdit` is certain or nothing: half a change is a fault of its own. What cannot be made (a comment would be lost,
a statement shares its line, a name means another thing where it is moved) raises `Unsure`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from traindx_tools.edits.patches import still_parses
from traindx_tools.finding import Patch
from traindx_tools.on_code.source import SourceFile, below
from traindx_tools.on_code.syntax import FunctionNode, Syntax, syntax, written

_OPERATIONS = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.IfExp, ast.Await)
_LOOSE = (*_OPERATIONS, ast.Lambda, ast.NamedExpr)


class Unsure(Exception):
    """The edit is not certain."""


def sure(condition: object) -> None:
    """Raises Unsure where a condition does not hold."""
    if not condition:
        raise Unsure


@dataclass(frozen=True)
class _Piece:
    """What comes in place of the text between two places (line, column in UTF-8 bytes); `whole`: of whole lines."""

    start: tuple[int, int]
    stop: tuple[int, int]
    text: str
    whole: bool = False

    @property
    def end(self) -> int:
        """The last line that it changes; the one before the first where it only puts lines there."""
        return self.stop[0] - self.whole


@dataclass(eq=False)
class SourceEdit:
    """Edits of one file, collected. `summary` says in one clause what they do."""

    file: SourceFile
    summary: str
    pieces: list[_Piece] = field(default_factory=list)

    @property
    def code(self) -> Syntax:
        """The file's syntax."""
        return syntax(self.file)

    def replace(self, node: Any, text: str) -> None:
        """Put code in place of an expression, or around it: `<>` is the expression, whose own text stays as it is.

        In parentheses where it would bind to what stands beside.
        """
        start, end = _start(node), _end(node)
        before, around, after = text.partition("<>")
        edges = self.file.line(start[0]).encode()[start[1] - 1 : start[1]] + self.file.line(end[0]).encode()[end[1] :]
        enclosed = self._is_operand(node) and edges[:2] == b"()"
        outer = self._is_operand(node) and not enclosed and _is_operation(text.replace("<>", "x"))
        inner = isinstance(node, _LOOSE) and after[:1] in (".", "" if isinstance(node, ast.BinOp) else " ", ".")
        if enclosed and after[:1] == ".":
            start, end, inner = (start[0], start[1] - 1), (end[0], end[1] + 1), False
        if around:
            self._put(start, start, "(" * outer + before + "(" * inner)
            self._put(end, end, ")" * inner + after + ")" * outer)
        else:
            sure(start[0] == end[0] or not any("#" in self.file.line(n) for n in range(start[0], end[0] + 1)))
            self._put(start, end, f"({text})" if outer else text)

    def set_argument(self, call: Any, given: str) -> None:
        """Give a call a keyword argument, `name=value`: replaced where it is given, else added at the end."""
        sure(isinstance(call, ast.Call) and all(k.arg is not None for k in call.keywords))  # **options may hold it
        name, _, value = given.partition("=")
        for keyword in call.keywords:
            if keyword.arg == name:
                return self.replace(keyword.value, value)
        held = [_end(a) for a in (*call.args, *(k.value for k in call.keywords))]
        end = max(held, default=(call.end_lineno, call.end_col_offset - 1))
        return self._put(end, end, f", {given}" if held else given)

    def insert(self, statement: Any, text: str) -> None:
        """Put whole lines before and behind a statement, which is `<>`, with its indentation; above its decorators."""
        before, behind = text.split("<>")
        self._insert(statement, before.split("\n")[:-1], behind.split("\n")[1:])

    def delete(self, statement: Any) -> None:
        """Take a statement out with its lines. Not where it is alone in its block, which would be left empty."""
        inner = range(self._alone(statement), statement.end_lineno)  # a comment on the last line goes with it
        sure(len(self.code.block(statement)) > 1 and not any("#" in self.file.line(n) for n in inner))
        self._lines(statement.lineno, statement.end_lineno + 1, "")

    def move_before(self, statement: Any, target: Any) -> None:
        """Move a statement in front of another one, with its own comment at the line's end."""
        self._insert(target, self._movable(statement, target), [])
        self.delete(statement)

    def move_behind(self, statement: Any, target: Any) -> None:
        """Move a statement behind another one, with its own comment at the line's end."""
        self._insert(target, [], self._movable(statement, target))
        self.delete(statement)

    def patches(self) -> tuple[Patch, ...]:
        """The edits as patches that touch no line twice; empty where what comes out would not be Python."""
        made = tuple(map(self._patch, _groups(self.pieces)))
        try:
            return made if made and still_parses(self.file, made) else ()
        except ValueError:  # two of them touch one line
            return ()

    def _put(self, start: tuple[int, int], stop: tuple[int, int], text: str) -> None:
        self.pieces.append(_Piece(start, stop, text))

    def _lines(self, first: int, behind: int, text: str) -> None:
        self.pieces.append(_Piece((first, 0), (behind, 0), text, whole=True))

    def _is_operand(self, node: ast.AST) -> bool:
        """Whether an operation in the place of a node needs parentheses: beside an operator, a call or a dot."""
        up = self.code.parent(node)
        return isinstance(up, (*_OPERATIONS, ast.Starred)) or any(
            getattr(up, name, None) is node and not isinstance(up, (ast.stmt, ast.keyword, ast.NamedExpr))
            for name in ("func", "value"))  # fmt: skip

    def _insert(self, statement: Any, before: list[str], behind: list[str]) -> None:
        first = min([self._alone(statement), *(d.lineno for d in getattr(statement, "decorator_list", ()))])
        for line, texts in ((first, before), (statement.end_lineno + 1, behind)):
            if texts:
                self._lines(line, line, "".join(f"{self._pad(statement)}{text}\n" for text in texts))

    def _movable(self, statement: Any, target: Any) -> list[str]:
        """The lines of a statement, if its names mean the same at another one and nothing between them misses it."""
        first, last = self._alone(statement), statement.end_lineno
        inside, read, bound = target.lineno < first <= target.end_lineno, *names_of(statement)
        passed = range(target.lineno, target.end_lineno + 1 if inside else first) if target.lineno < first else (
            range(last + 1, target.end_lineno + 1))
        sure(self.code.scope(target) is self.code.scope(statement) and not bound & read)
        for one in {*self.code.block(statement), *self.code.block(target)} - {statement}:
            if one.lineno < passed.stop and passed.start <= (one.end_lineno or 0):
                for node in below(one):
                    reads, binds = names_of(node, deep=False) if not first <= getattr(node, "lineno", 0) <= last else (
                        set(), set())
                    sure(not binds & (bound | {n for n in read if "." not in n}) and (inside or not reads & bound))
        return [self.file.line(n).removeprefix(self._pad(statement)) for n in range(first, last + 1)]

    def _alone(self, statement: Any) -> int:
        """The first line of a statement that shares none with another one."""
        sure(isinstance(statement, ast.stmt))
        behind = self.file.line(statement.end_lineno).encode()[statement.end_col_offset :].strip()
        sure(not self._pad(statement).strip() and (not behind or behind.startswith(b"#")))
        return int(statement.lineno)

    def _pad(self, statement: Any) -> str:
        return self.file.line(statement.lineno).encode()[: statement.col_offset].decode()

    def _patch(self, group: list[_Piece]) -> Patch:
        first, last = group[0].start[0], max(p.end for p in group)
        lines = [self.file.line(n) for n in range(first, last + 1)]
        starts = [0]  # of each line, and behind the last one, in bytes
        for line in lines:
            starts.append(starts[-1] + len(line.encode()) + 1)
        raw = "".join(line + "\n" for line in lines).encode()
        for piece in reversed(group):
            start, stop = (starts[line - first] + column for line, column in (piece.start, piece.stop))
            raw = raw[:start] + piece.text.encode() + raw[stop:]
        text = raw.decode().removesuffix("\n")
        return Patch(self.file.path, first, last, "\n".join(lines), text, self.summary)


def _groups(pieces: list[_Piece]) -> Iterator[list[_Piece]]:
    """Pieces that touch the same lines belong to one patch, and lines that are put before a line that is changed."""
    group: list[_Piece] = []
    for piece in sorted(pieces, key=lambda p: (p.start, p.stop)):
        if group and piece.start[0] > max(p.end + (p.start == p.stop and p.whole) for p in group):
            yield group
            group = []
        group.append(piece)
    if group:
        yield group


def _is_operation(text: str) -> bool:
    try:
        return isinstance(ast.parse(f"({text})", mode="eval").body, _LOOSE)
    except SyntaxError:
        return False


def names_of(node: ast.AST, deep: bool = True) -> tuple[set[str], set[str]]:
    """The names and attributes that are read and bound in a node, or by the node alone."""
    found: tuple[set[str], set[str]] = set(), set()
    for one in below(node) if deep else (node,):
        if isinstance(one, (ast.Name, ast.Attribute)):
            found[isinstance(one.ctx, ast.Store)].add(written(one))
        elif isinstance(one, (*FunctionNode, ast.ClassDef)):
            found[1].add(one.name)
    return found


def _start(node: Any) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _end(node: Any) -> tuple[int, int]:
    return node.end_lineno, node.end_col_offset


def source_of(file: SourceFile, node: Any) -> str:
    """The text of an expression exactly as it is written."""
    lines = [file.line(n).encode() for n in range(node.lineno, node.end_lineno + 1)]
    lines[-1] = lines[-1][: node.end_col_offset]  # first the end: both may be of one line
    lines[0] = lines[0][node.col_offset :]
    return b"\n".join(lines).decode("utf-8", "replace") or ast.unparse(node)
