"""Does a finding rest on a name? The program's own names are taken away, and the rules that spoke look again.

What a program does is the same under any names of its own variables, functions and classes. A finding that is still
there when they are gone follows from what the program does; one that is gone had a name for a premise ("this loader is
for validation, it is called val_loader"). Names that are not the program's own stay: what is imported, keywords of
calls, methods, attributes, and what a text of the program spells. Lines stay where they are.
"""

from __future__ import annotations

import ast
import builtins
import io
import keyword
import re
import tokenize
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from traindx_tools.code_audit.entry import audit_texts
from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.source import below
from traindx_tools.source_files.texts import Text, read_texts

_BUILT_IN = frozenset(dir(builtins)) | frozenset(keyword.kwlist) | {"self", "cls"}
_WORD = re.compile(r"[^\W\d]\w*")
MOST_LINES = 8_000
"""Lines of code that are read again at most; a finding in more than that counts as one that rests on names."""


def without_names(findings: Sequence[Finding], files: Sequence[str | Path]) -> tuple[Finding, ...]:
    """The findings, those in code that are gone without the program's names marked with `by_name`."""
    doubted = [f for f in findings
               if f.rule[0] == "C" and f.bearing is Bearing.CAUSE and f.severity is not Severity.INFO]
    if not doubted:
        return tuple(findings)
    texts, _ = read_texts(files)
    again = _seen_again(texts, sorted({f.rule for f in doubted}))
    gone = {id(f) for f in doubted if (f.rule, f.where.file, f.where.cell, f.where.line) not in again}
    return tuple(replace(f, by_name=True) if id(f) in gone else f for f in findings)


def _seen_again(texts: Sequence[Text], rules: Sequence[str]) -> set[tuple[str, str | None, int | None, int | None]]:
    """(rule, file, cell, line) of what these rules find where the names are gone."""
    if sum(t.text.count("\n") for t in texts) > MOST_LINES:
        return set()
    kept = _foreign(tree for t in texts if (tree := _parsed(t.text)) is not None)
    found = audit_texts([replace(t, text=renamed(t.text, kept)) for t in texts], rules).findings
    return {(f.rule, f.where.file, f.where.cell, f.where.line) for f in found}


def _foreign(trees: Iterable[ast.Module]) -> frozenset[str]:
    """Names that must stay in every file: those that are imported, passed by keyword, spelled in a text, or of a
    class."""
    kept = set(_BUILT_IN)
    for node in (n for tree in trees for n in below(tree)):
        kept.update(_kept_by(node))
    return frozenset(kept)


def _kept_by(node: ast.AST) -> Iterable[str]:
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return [part for a in node.names for part in (*a.name.split("."), a.asname or "")]
    if isinstance(node, ast.Call):
        return [k.arg for k in node.keywords if k.arg]
    if isinstance(node, ast.Attribute):
        return [node.attr]
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value] if node.value.isidentifier() else []
    if isinstance(node, ast.ClassDef):
        return [*(f.name for f in node.body if isinstance(f, (ast.FunctionDef, ast.AsyncFunctionDef))),
                *(n.id for f in node.body if not isinstance(f, (ast.FunctionDef, ast.AsyncFunctionDef))
                  for n in below(f) if isinstance(n, ast.Name))]  # fmt: skip
    return ()


def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def renamed(text: str, kept: frozenset[str] = frozenset()) -> str:
    """The source with its own names replaced by v0, v1 ...; as it is where it does not parse.

    `kept`: names that other files of the program need.
    """
    tree = _parsed(text)
    if tree is None:
        return text
    kept = kept | _foreign([tree])
    own = sorted(n for n in _bound(tree) if n not in kept and not n.startswith("__"))
    new = {name: f"v{i}" for i, name in enumerate(own)}
    try:
        return _replaced(text, new)
    except (tokenize.TokenError, IndentationError, SyntaxError):
        return text


def _bound(tree: ast.Module) -> set[str]:
    """Names that the program gives itself: variables, parameters, functions and classes."""
    names: set[str] = set()
    for node in below(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
    return names


def _replaced(text: str, new: dict[str, str]) -> str:
    lines = text.splitlines(keepends=True)
    edits: list[tuple[int, int, int, str]] = []
    before = ""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME and before != "." and token.string in new:
            edits.append((token.start[0], token.start[1], token.end[1], new[token.string]))
        elif token.type == tokenize.STRING and token.start[0] == token.end[0] and "f" in token.string[:2].lower():
            edits.append((token.start[0], token.start[1], token.end[1], _in_format(token.string, new)))
        if token.type not in (tokenize.NL, tokenize.COMMENT):
            before = token.string
    for row, start, end, word in reversed(edits):
        line = lines[row - 1]
        lines[row - 1] = line[:start] + word + line[end:]
    return "".join(lines)


def _in_format(text: str, new: dict[str, str]) -> str:
    """A formatted text with the names in its braces replaced: before Python 3.12 it is one token."""
    def inside(match: re.Match[str]) -> str:
        return _WORD.sub(lambda w: new.get(w[0], w[0]) if match[0][w.start() - 1:w.start()] != "." else w[0], match[0])

    return re.sub(r"\{[^{}:!]*", inside, text)
