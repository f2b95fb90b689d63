"""Reading Python sources: text in, syntax tree out, and an honest note where that fails.

Nothing is imported or run. A file that is too large, not text, not Python or nested beyond reason becomes an `Artifact`
with a note; it never becomes an exception.
"""

from __future__ import annotations

import ast
import io
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from traindx_tools.artifact import Artifact
from traindx_tools.on_code import fragments
from traindx_tools.on_code.answers import Keeps, kept
from traindx_tools.source_files.texts import MAX_BYTES, Text, read_texts

__all__ = ["MAX_BYTES", "MAX_DEPTH", "NOT_PARSED", "Source", "SourceFile", "Unparsed", "parse_all", "parse_source",
           "parse_texts", "read_sources", "unparsed"]

MAX_DEPTH = 150
"""Deepest nesting of syntax that is followed; code written by people stays under 60."""
NOT_PARSED = ("not parsed", "not followed")
"""How a note about a file begins whose code was not judged at all."""

@dataclass(frozen=True, eq=False)
class SourceFile(Keeps):
    """One parsed source. `path` is as the user named it; `lines` are without line ends, index 0 is line 1."""

    path: str
    text: str
    tree: ast.Module

    @property
    def parsed(self) -> SourceFile:
        """Itself."""
        return self

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """The text split as Python's tokenizer splits it, so that line numbers agree with the tree."""
        return tuple(line.rstrip("\r\n") for line in io.StringIO(self.text, newline=None))

    def line(self, number: int) -> str:
        """Line `number` (1-based), or "" outside the file."""
        return self.lines[number - 1] if 0 < number <= len(self.lines) else ""

    def quote(self, number: int) -> str:
        """Line `number` without its indentation, as a finding quotes it."""
        return self.line(number).strip()[:200]

    @kept
    def mentions(self, pattern: re.Pattern[str]) -> bool:
        """Whether a pattern is found anywhere in the text; looked for once."""
        return pattern.search(self.text) is not None

    def segment(self, node: ast.AST) -> str:
        """A short text for a syntax node, on one line."""
        try:
            text = ast.unparse(node)
        except (ValueError, RecursionError):  # a constant that cannot be printed, or an expression of absurd depth
            return "..."
        text = " ".join(text.split())
        return text if len(text) <= 90 else text[:87] + "..."


@dataclass(frozen=True, eq=False)
class Unparsed:
    """A source that is parsed where its tree is asked for first: in the process that judges it."""

    path: str
    text: str

    @cached_property
    def parsed(self) -> SourceFile | Artifact:
        """The source; an `Artifact` with a note where it cannot be followed."""
        return parse_source(self.path, self.text)


class Source(Protocol):
    """A source that was parsed, or will be."""

    @property
    def path(self) -> str:
        """The path as the user named it."""

    @property
    def text(self) -> str:
        """What the file holds."""

    @property
    def parsed(self) -> SourceFile | Artifact:
        """The source; an `Artifact` with a note where it cannot be followed."""


def read_sources(paths: Sequence[str | Path]) -> tuple[list[SourceFile], list[Artifact]]:
    """Parse the Python files among `paths` (folders are searched). Returns the sources and a note for each refusal."""
    texts, notes = read_texts(paths)
    return parse_texts(texts, notes), notes


def parse_texts(texts: Iterable[Text], notes: list[Artifact]) -> list[SourceFile]:
    """Parse texts that were read already; those that cannot be followed get a note."""
    return parse_all(unparsed(texts, notes), notes)


def unparsed(texts: Iterable[Text], notes: list[Artifact]) -> list[Unparsed]:
    """Sources that are parsed later; cells of notebooks that are left out get a note."""
    files: list[Unparsed] = []
    for text in texts:
        if text.left_out:
            notes.append(Artifact(text.path, "python", note=text.left_out))
        files.append(Unparsed(text.path, text.text))
    return files


def parse_all(sources: Iterable[Source], notes: list[Artifact]) -> list[SourceFile]:
    """The sources parsed; those that cannot be followed get a note."""
    files: list[SourceFile] = []
    for source in sources:
        found = source.parsed
        if isinstance(found, SourceFile):
            files.append(found)
        else:
            notes.append(found)
    return files


def parse_source(path: str, text: str) -> SourceFile | Artifact:
    """A source from text that was read already; an `Artifact` with a note where it cannot be followed."""
    if "\0" in text:  # Python's own words for it differ from release to release, and name no line
        line = text.count("\n", 0, text.index("\0")) + 1
        return Artifact(path, "python", note=f"not parsed: a NUL byte in line {line}, which no Python source holds")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in the user's strings are not our business
            tree = fragments.parsed(text)
    except SyntaxError as error:
        place = "" if error.lineno is None else f" in line {error.lineno}"
        return Artifact(path, "python", note=f"not parsed: {error.msg}{place}")
    except (ValueError, RecursionError, MemoryError) as error:  # nesting beyond the parser's stack
        why = str(error)[:100] or "nested too deeply for Python's own parser"
        return Artifact(path, "python", note=f"not parsed: {type(error).__name__}: {why}")
    if _too_deep(tree):
        return Artifact(path, "python", note=f"not followed: nested deeper than {MAX_DEPTH} levels")
    return SourceFile(path, text, tree)


_LEAVES = frozenset({"ctx", "op", "ops", "id", "attr", "arg", "kind", "names", "module", "level", "asname", "simple",
                     "conversion", "is_async", "rest", "type_comment", "type_ignores"})  # fmt: skip
"""Fields of syntax nodes that hold no statement or expression: names, numbers, operators, load or store."""


class _Fields(dict[type, tuple[str, ...]]):
    """For each kind of node its fields that may hold statements or expressions."""

    def __missing__(self, kind: type[ast.AST]) -> tuple[str, ...]:
        leaves = _LEAVES - {"names"} if kind in (ast.Import, ast.ImportFrom) else _LEAVES
        fields = () if kind is ast.Constant else tuple(f for f in kind._fields if f not in leaves)
        self[kind] = fields
        return fields


_FIELDS = _Fields()


_HOLDS: dict[type[ast.AST], Callable[[Any], Sequence[ast.AST]] | None] = {ast.Name: None, ast.Constant: None,
    ast.alias: None, ast.Attribute: lambda n: [n.value], ast.Call: lambda n: [n.func, *n.args, *n.keywords],
    ast.keyword: lambda n: [n.value], ast.Expr: lambda n: [n.value], ast.Assign: lambda n: [*n.targets, n.value],
    ast.BinOp: lambda n: [n.left, n.right], ast.Compare: lambda n: [n.left, *n.comparators],
    ast.Subscript: lambda n: [n.value, n.slice], ast.If: lambda n: [n.test, *n.body, *n.orelse],
    ast.Tuple: lambda n: n.elts, ast.List: lambda n: n.elts, ast.BoolOp: lambda n: n.values,
    ast.UnaryOp: lambda n: [n.operand], ast.JoinedStr: lambda n: n.values, ast.arg: lambda n: () if n.annotation is None
    else [n.annotation], ast.Return: lambda n: () if n.value is None else [n.value]}
"""For the most frequent kinds of nodes the statements and expressions in them, in the order of their fields."""


_ENDS = frozenset(kind for kind, holds in _HOLDS.items() if holds is None)


def children(node: ast.AST) -> Sequence[ast.AST]:
    """Like `ast.iter_child_nodes` without operators and contexts, at a fraction of the cost: it runs over every node.

    The node's own list may come back: it is not to be changed.
    """
    holds = _HOLDS.get(node.__class__, any_children)
    return holds(node) if holds is not None else ()


def any_children(node: ast.AST) -> list[ast.AST]:
    """What `children` gives, of any kind of node."""
    found: list[ast.AST] = []
    for name in _FIELDS[type(node)]:
        value = getattr(node, name, None)
        if value.__class__ is list:
            found += [v for v in value if isinstance(v, ast.AST)]
        elif isinstance(value, ast.AST):
            found.append(value)
    return found


def below(node: ast.AST) -> Iterator[ast.AST]:
    """Like `ast.walk` without operators and contexts, in the same order, at a third of the cost."""
    queue = [node]
    holder = _HOLDS.get
    for one in queue:
        yield one
        holds = holder(one.__class__, any_children)
        if holds is not None:
            queue += holds(one)


def next_arm(node: ast.If) -> ast.If | None:
    """The `elif` of an `if`: the tree nests it, people write it beside."""
    inner = node.orelse[0] if len(node.orelse) == 1 else None
    return inner if isinstance(inner, ast.If) and inner.col_offset == node.col_offset else None


def _too_deep(tree: ast.Module) -> bool:
    level: list[ast.AST] = [tree]
    for _ in range(MAX_DEPTH):
        below_it: list[ast.AST] = []
        for node in level:
            while isinstance(node, ast.If) and (arm := next_arm(node)) is not None:
                below_it += (node.test, *node.body)
                node = arm
            if node.__class__ not in _ENDS:
                below_it += children(node)
        level = below_it
        if not level:
            return False
    return True
