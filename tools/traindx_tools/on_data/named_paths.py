"""The files that the code of a run names, by its strings: which it writes, and which it only names."""

from __future__ import annotations

import ast
import glob
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from traindx_tools.notebooks.cells import code_of_notebook

MOST_CODE = 2 * 2**20
"""Characters of a Python file that is searched for paths."""
MOST_NAMED = 2_000
_WRITERS = frozenset(
    {
        "save",
        "savez",
        "savez_compressed",
        "savetxt",
        "to_csv",
        "to_json",
        "to_parquet",
        "dump",
        "write_text",
        "write_bytes",
        "imwrite",
        "savefig",
        "tofile",
        "save_file",
        "FileHandler",
        "SummaryWriter",
        "CSVLogger",
    }
)
"""Calls whose path is written: numpy, pandas, torch, json, pathlib, logging, Lightning."""


def named_paths(code: Sequence[Path], root: Path, written: bool = False) -> Iterator[Path]:
    """Files and folders below the root, or below the code's own folder, that strings in the code name.

    Paths, patterns, and f-strings as patterns.
    `written`: those that the code writes, else those that it only names.
    """
    for found, _, _ in files_named(code, root, written):
        yield found


def named_folders(code: Sequence[Path], root: Path) -> Iterator[Path]:
    """Folders of the root, or of the code's own folder, whose name is a string of the code that nothing writes."""
    for file in code:
        tree = parsed(file)
        writes = _written(tree) if tree is not None else {}
        words = {t for t, node in _strings(tree) if id(node) not in writes and t.isidentifier() and len(t) < 100}
        for word in sorted(words):
            yield from (f / word for f in dict.fromkeys((file.parent, root)) if (f / word).is_dir())


def files_named(code: Sequence[Path], root: Path, written: bool = False) -> Iterator[tuple[Path, Path, int]]:
    """The same, each with the file of code and the line (1-based, of a notebook in its joined code) that names it."""
    base = root.resolve()
    count = 0
    for file in code:
        writes = _written(tree) if (tree := parsed(file)) is not None else {}
        for text, node in _strings(tree):
            if (id(node) in writes) is not written or not _like_a_path(text):
                continue
            for found in _existing(text, dict.fromkeys((file.parent, root))):
                real = found.resolve()
                if (
                    any(real.is_relative_to(b) and real != b for b in (base, file.parent.resolve()))
                    and real.suffix not in (".py", ".ipynb")
                    and count < MOST_NAMED
                ):
                    count += 1
                    yield found, file, node.lineno


def parsed(file: Path) -> ast.Module | None:
    """The syntax tree of a file or a notebook; None where there is none."""
    try:
        if file.suffix == ".ipynb":
            joined = code_of_notebook(file.read_text(encoding="utf-8-sig", errors="replace"))
            return None if isinstance(joined, str) else ast.parse(joined.code)
        if file.suffix == ".py" and file.stat().st_size <= MOST_CODE:
            return ast.parse(file.read_text(encoding="utf-8", errors="replace"))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return None


def _strings(tree: ast.Module | None) -> Iterator[tuple[str, ast.expr]]:
    """The string constants and, with * for what is filled in, the f-strings."""
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.JoinedStr):
            parts = [
                glob.escape(v.value) if isinstance(v, ast.Constant) and isinstance(v.value, str) else "*"
                for v in node.values
            ]
            yield "".join(parts), node
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value, node


def _like_a_path(text: str) -> bool:
    return (
        2 < len(text) < 300
        and "\n" not in text
        and "\0" not in text
        and not text.startswith("/")
        and ".." not in text
        and ("." in text or "/" in text)
        and text.strip("*./") != ""
    )


def _existing(text: str, folders: Iterable[Path]) -> Iterator[Path]:
    for folder in folders:
        try:
            if glob.has_magic(text):
                yield from (
                    Path(p) for p in sorted(glob.glob(os.path.join(glob.escape(str(folder)), text)))[:MOST_NAMED]
                )
            elif (folder / text).is_file() or ((folder / text).is_dir() and "/" in text.strip("/")):
                yield folder / text
        except (OSError, ValueError, RecursionError):
            continue


def _written(tree: ast.Module) -> dict[int, ast.expr]:
    """The strings within calls that write files."""
    out: dict[int, ast.expr] = {}
    for call in (n for n in ast.walk(tree) if isinstance(n, ast.Call)):
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        modes = [
            a.value
            for a in (*call.args[1:2], *(k.value for k in call.keywords if k.arg == "mode"))
            if isinstance(a, ast.Constant) and isinstance(a.value, str)
        ]
        if name in _WRITERS or (name == "open" and any(m[:1] in ("w", "a", "x") for m in modes)):
            out.update({id(n): n for n in ast.walk(call) if isinstance(n, (ast.Constant, ast.JoinedStr))})
    return out
