"""Reading Python sources: text in, syntax tree out, and an honest note where that fails.

Nothing is imported or run. A file that is too large, not text, not Python or nested beyond reason becomes an `Artifact`
with a note; it never becomes an exception.
"""

from __future__ import annotations

import ast
import io
import json
import tokenize
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from traindx_tools.on_logs.run import Artifact

MAX_BYTES = 2_000_000
"""Largest source that is parsed. The largest hand-written training scripts are a tenth of it."""
MAX_DEPTH = 150
"""Deepest nesting of syntax that is followed; code written by people stays under 60."""
MAX_FILES = 20_000

_SKIPPED_FOLDERS = {".git", ".hg", "__pycache__", ".venv", "venv", "node_modules", ".tox", ".mypy_cache", ".eggs"}


@dataclass(frozen=True, eq=False)
class SourceFile:
    """One parsed source. `path` is as the user named it; `lines` are without line ends, index 0 is line 1."""

    path: str
    text: str
    tree: ast.Module

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """The text split as Python's tokenizer splits it, so that line numbers agree with the tree."""
        return tuple(line.rstrip("\r\n") for line in io.StringIO(self.text, newline=None))

    def line(self, number: int) -> str:
        """Line `number` (1-based), or "" outside the file."""
        return self.lines[number - 1] if 0 < number <= len(self.lines) else ""

    def segment(self, node: ast.AST) -> str:
        """A short text for a syntax node, on one line."""
        try:
            text = ast.unparse(node)
        except (ValueError, RecursionError):  # a constant that cannot be printed, or an expression of absurd depth
            return "..."
        text = " ".join(text.split())
        return text if len(text) <= 90 else text[:87] + "..."


def read_sources(paths: Sequence[str | Path]) -> tuple[list[SourceFile], list[Artifact]]:
    """Parse the Python files among `paths` (folders are searched). Returns the sources and a note for each refusal."""
    files: list[SourceFile] = []
    notes: list[Artifact] = []
    for path in _expand(paths, notes):
        found = _read(path)
        (files if isinstance(found, SourceFile) else notes).append(found)  # type: ignore[arg-type]
    return files, notes


def parse_source(path: str, text: str) -> SourceFile | Artifact:
    """A source from text that was read already; an `Artifact` with a note where it cannot be followed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in the user's strings are not our business
            tree = ast.parse(text)
    except SyntaxError as error:
        return Artifact(path, "python", note=f"not parsed: {error.msg} in line {error.lineno}")
    except (ValueError, RecursionError, MemoryError) as error:  # null bytes; nesting beyond the parser's stack
        return Artifact(path, "python", note=f"not parsed: {type(error).__name__}: {str(error)[:100]}")
    if _too_deep(tree):
        return Artifact(path, "python", note=f"not followed: nested deeper than {MAX_DEPTH} levels")
    return SourceFile(path, text, tree)


def _expand(paths: Sequence[str | Path], notes: list[Artifact]) -> Iterator[Path]:
    seen: set[Path] = set()
    for given in paths:
        root = Path(given)
        for path in [root] if root.is_file() else _python_files(root):
            key = path.resolve()
            if key in seen:
                continue
            seen.add(key)
            if len(seen) > MAX_FILES:
                notes.append(Artifact(str(given), "python", note=f"only the first {MAX_FILES} files were read"))
                return
            yield path
        if not root.exists():
            notes.append(Artifact(str(given), "python", note="not found"))


def _python_files(root: Path) -> Iterator[Path]:
    if not root.is_dir():
        return
    for path in sorted(root.rglob("*.py")) + sorted(root.rglob("*.ipynb")):
        if not _SKIPPED_FOLDERS.intersection(path.relative_to(root).parts) and path.is_file():
            yield path


def _read(path: Path) -> SourceFile | Artifact:
    try:
        if path.stat().st_size > MAX_BYTES:
            return Artifact(str(path), "python", note=f"refused: larger than {MAX_BYTES:,} bytes")
        raw = path.read_bytes()
    except OSError as error:
        return Artifact(str(path), "python", note=f"not read: {error.strerror or error}")
    text = _decode(raw)
    if text is None:
        return Artifact(str(path), "python", note="not read: neither UTF-8 nor its declared encoding")
    if path.suffix == ".ipynb":
        text = _notebook_code(text)
    return parse_source(str(path), text)


def _decode(raw: bytes) -> str | None:
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(raw).readline)
        return raw.decode(encoding)
    except (SyntaxError, UnicodeDecodeError, LookupError):
        return None


def _notebook_code(text: str) -> str:
    """The code cells of a notebook, one after the other; magics and shell lines become comments."""
    try:
        cells = json.loads(text).get("cells", [])
        sources = ["".join(c.get("source", [])) for c in cells if c.get("cell_type") == "code"]
    except (ValueError, AttributeError, TypeError, RecursionError):
        return text
    return "\n".join(_without_magics(s) for s in sources)


def _without_magics(cell: str) -> str:
    return "\n".join("pass  #" + line if line.lstrip()[:1] in ("%", "!") else line for line in cell.splitlines())


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """Like `ast.iter_child_nodes`, at half the cost: this runs over every node of every file."""
    for value in node.__dict__.values():
        if isinstance(value, ast.AST):
            yield value
        elif isinstance(value, list):
            yield from (v for v in value if isinstance(v, ast.AST))


def _too_deep(tree: ast.Module) -> bool:
    level: list[ast.AST] = [tree]
    for _ in range(MAX_DEPTH):
        level = [child for node in level for child in _children(node)]
        if not level:
            return False
    return True
