"""Which files belong to an audit, and what is in them: paths in, texts out. Nothing is parsed here."""

from __future__ import annotations

import hashlib
import io
import os
import tokenize
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from traindx_tools.on_code.notebook import code_of_notebook
from traindx_tools.on_logs.run import Artifact

MAX_BYTES = 2_000_000
"""Largest source that is parsed. The largest hand-written training scripts are a tenth of it."""
MAX_FILES = 20_000
SUFFIXES = (".py", ".ipynb")

_SKIPPED_FOLDERS = {".git", ".hg", "__pycache__", ".venv", "venv", "node_modules", ".tox", ".mypy_cache", ".eggs"}


@dataclass(frozen=True)
class Text:
    """What one file holds. `path` is as the user named it; `digest` is the SHA-256 of its bytes."""

    path: str
    text: str
    digest: str
    cells: tuple[int, ...] = ()
    """Of a notebook: the line (1-based) at which each code cell begins."""
    left_out: str = ""
    """Of a notebook: which cells are not in the text and why, in words."""
    encoding: str = "utf-8"
    """What the bytes are the text in; "utf-8-sig" where a byte order mark stands before it."""


Refuses = Callable[[Path], bool]
"""Whether a file is excluded."""


def read_texts(
    paths: Sequence[str | Path], excluded: Refuses | None = None
) -> tuple[list[Text], list[Artifact]]:
    """Read the Python files among `paths` (folders are searched). Returns their texts and a note for each refusal."""
    texts: list[Text] = []
    notes: list[Artifact] = []
    for path in _expand(paths, notes):
        if excluded is not None and excluded(path):
            continue
        found = _read(path)
        if isinstance(found, Text):
            texts.append(found)
        else:
            notes.append(found)
    return texts, notes


def text_of(path: str, raw: bytes) -> Text | Artifact:
    """The text of a file's bytes, with a note where it is no text of Python."""
    if len(raw) > MAX_BYTES:
        return Artifact(path, "python", note=f"refused: larger than {MAX_BYTES:,} bytes")
    encoding, text = _decode(raw)
    if text is None:
        return Artifact(path, "python", note="not read: neither UTF-8 nor its declared encoding")
    digest = hashlib.sha256(raw).hexdigest()
    if not path.endswith(".ipynb"):
        return Text(path, text, digest, encoding=encoding)
    notebook = code_of_notebook(text)
    if isinstance(notebook, str):
        return Artifact(path, "python", note=notebook)
    return Text(path, notebook.code, digest, notebook.starts, notebook.left_out)


def _expand(paths: Sequence[str | Path], notes: list[Artifact]) -> Iterator[Path]:
    seen: set[str] = set()
    for given in paths:
        root = Path(given)
        for path in [root] if root.is_file() else _python_files(root):
            key = os.path.realpath(path)
            if key in seen:
                continue
            seen.add(key)
            if len(seen) > MAX_FILES:
                notes.append(Artifact(str(given), "python", note=f"only the first {MAX_FILES} files were read"))
                return
            yield path
        if not root.exists():
            notes.append(Artifact(str(given), "python", note=_why_absent(root)))


def _why_absent(root: Path) -> str:
    return "a link that leads nowhere, or to itself" if root.is_symlink() else "not found"


def _python_files(root: Path) -> Iterator[Path]:
    """Scripts first, then notebooks, each sorted by path; links to folders are not followed."""
    found: list[Path] = []
    for here, below, names in os.walk(root):
        below[:] = [n for n in below if n not in _SKIPPED_FOLDERS]
        found += [Path(here) / n for n in names if n.endswith(SUFFIXES)]
    yield from (p for p in sorted(found, key=lambda p: (p.suffix != ".py", p)) if p.is_file())


def _read(path: Path) -> Text | Artifact:
    try:
        if path.stat().st_size > MAX_BYTES:
            return Artifact(str(path), "python", note=f"refused: larger than {MAX_BYTES:,} bytes")
        raw = path.read_bytes()
    except OSError as error:
        return Artifact(str(path), "python", note=f"not read: {error.strerror or error}")
    return text_of(str(path), raw)


def _decode(raw: bytes) -> tuple[str, str | None]:
    """The encoding that Python reads a source in, and its text; None where that is not what the bytes are."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(raw).readline)
        return encoding, raw.decode(encoding)
    except (SyntaxError, UnicodeDecodeError, LookupError):
        return "", None
