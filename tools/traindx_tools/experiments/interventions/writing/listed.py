"""Names of files taken out of the lists that a program reads: in YAML, JSON, TOML, Python source and lists of lines.

A program that names its files one by one stops where one of them is missing. What is taken out are entries of lists
that name a missing file and others beside it; a name by itself (`val: val.npz`) stays, and a list is never emptied.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

MAX_BYTES = 200_000
"""Largest file that is looked through: what is larger is data."""
MOST_FILES = 2_000
"""Files that are looked through; of more, those nearest to the workspace: a text for each sample is data."""
FEW = 50
"""Missing files up to which a file that speaks of none of them is not read as a list."""


class Entry(NamedTuple):
    """One entry of a list: its text, and where it stands in the file (characters)."""

    name: str
    start: int
    end: int


class Missing(NamedTuple):
    """How lists may name the missing files: by a path or its end; without suffix only where every entry of the list
    names a file of this kind so, missing or not."""

    whole: frozenset[str]
    stems: frozenset[str]
    all_stems: frozenset[str]

    @classmethod
    def of(cls, gone: Collection[str], kept: Collection[str]) -> Missing:
        """From the paths of files of the workspace."""
        whole, stems, rest = (frozenset(end for path in paths for end in _ends(path)) for paths in (
            gone, [os.path.splitext(g)[0] for g in gone], [os.path.splitext(k)[0] for k in kept]))
        return cls(whole, stems, stems | rest)


def without_entries(text: str, suffix: str, missing: Missing) -> str | None:
    """The text without the entries that name a missing file; None where there are none, or it cannot be read."""
    reader = _READERS.get(suffix)
    if reader is None or len(text) > MAX_BYTES:
        return None
    changes: list[tuple[int, int, str]] = []
    try:
        for entries in reader(text):
            bare = all(e.name in missing.all_stems for e in entries)
            left = [i for i, e in enumerate(entries)
                    if e.name not in missing.whole and not (bare and e.name in missing.stems)]
            if left and len(left) < len(entries):
                changes.append((entries[0].start, entries[-1].end, _rebuilt(text, entries, left)))
    except (ValueError, SyntaxError, RecursionError):
        return None
    for start, end, body in sorted(changes, reverse=True):
        text = text[:start] + body + text[end:]
    return text if changes else None


def _ends(path: str) -> Iterator[str]:
    """A path and every end of it that begins behind a slash, with and without `./`."""
    parts = path.split("/")
    for at in range(len(parts)):
        yield "/".join(parts[at:])
        yield "./" + "/".join(parts[at:])


def _rebuilt(text: str, entries: Sequence[Entry], left: Sequence[int]) -> str:
    """The entries that stay, each behind what stood before it."""
    pieces = [text[entries[left[0]].start:entries[left[0]].end]]
    pieces += [text[entries[i - 1].end:entries[i].end] for i in left[1:]]
    return "".join(pieces)


def _yaml_lists(text: str) -> Iterator[list[Entry]]:
    """Also those of JSON, which is YAML."""
    try:
        import yaml
    except ImportError:
        return
    try:
        stack = [yaml.compose(text, Loader=yaml.SafeLoader)]
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error
    seen: set[int] = set()
    while stack:
        node = stack.pop()
        if node is None or id(node) in seen or isinstance(node.value, str):
            continue
        seen.add(id(node))  # an alias is the same node
        if node.value and isinstance(node.value[0], tuple):
            stack += [part for pair in node.value for part in pair]
        elif node.value and all(isinstance(n.value, str) for n in node.value):
            yield [Entry(n.value, n.start_mark.index, n.end_mark.index) for n in node.value]
        else:
            stack += node.value


def _python_lists(text: str) -> Iterator[list[Entry]]:
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line.encode()))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)) and all(
                isinstance(e, ast.Constant) and isinstance(e.value, str) for e in node.elts):
            yield [_of_python(text, e, starts) for e in node.elts if isinstance(e, ast.Constant)]


def _of_python(text: str, node: ast.Constant, starts: Sequence[int]) -> Entry:
    data, last_line = text.encode(), node.end_lineno or node.lineno
    first, last = starts[node.lineno - 1] + node.col_offset, starts[last_line - 1] + (node.end_col_offset or 0)
    return Entry(str(node.value), len(data[:first].decode()), len(data[:last].decode()))


def _toml_lists(text: str) -> Iterator[list[Entry]]:
    """An array of texts is written as Python writes a list."""
    for found in re.finditer(r"=\s*(\[[^\[\]]*\])", text):
        for entries in _python_lists(found.group(1)):
            yield [Entry(e.name, e.start + found.start(1), e.end + found.start(1)) for e in entries]


def _line_lists(text: str) -> Iterator[list[Entry]]:
    yield [Entry(m.group(1), m.start(1), m.end(1)) for m in re.finditer(r"(?m)^[ \t]*(\S[^\n\r]*?)[ \t]*$", text)]


_READERS: dict[str, Callable[[str], Iterator[list[Entry]]]] = {
    ".yaml": _yaml_lists, ".yml": _yaml_lists, ".json": _yaml_lists, ".toml": _toml_lists, ".py": _python_lists,
    ".txt": _line_lists, ".lst": _line_lists, ".list": _line_lists,
}
"""What reads the lists of a file, by its suffix."""


def with_lists_without(workspace: Path, names: Collection[str], gone: Collection[str]) -> dict[str, bytes | None]:
    """The missing files, and every file of the workspace (`names`) whose lists named one of them, as it is then."""
    made: dict[str, bytes | None] = dict.fromkeys(gone)
    away = set(gone)
    like = {os.path.splitext(g)[1] for g in gone}
    missing = Missing.of(gone, [n for n in names if n not in away and os.path.splitext(n)[1] in like])
    words = {os.path.splitext(os.path.basename(g))[0] for g in gone}
    lists = [n for n in names if n not in away and os.path.splitext(n)[1].lower() in _READERS]
    for name in sorted(lists, key=lambda n: n.count("/"))[:MOST_FILES]:
        suffix = os.path.splitext(name)[1].lower()
        try:
            path = workspace / name
            text = path.read_bytes().decode() if path.stat().st_size <= MAX_BYTES else ""
        except (OSError, UnicodeDecodeError):
            continue
        speaks = len(words) > FEW or any(w in text for w in words)
        changed = without_entries(text, suffix, missing) if speaks else None
        if changed is not None:
            made[name] = changed.encode()
    return made
