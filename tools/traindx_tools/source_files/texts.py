"""Which files belong to an audit, and what is in them: paths in, texts out. Nothing is parsed here."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import stat
import tokenize
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from traindx_tools.artifact import Artifact
from traindx_tools.notebooks.cells import code_of_notebook

MAX_BYTES = 2_000_000
"""Largest source that is parsed. The largest hand-written training scripts are a tenth of it."""
MAX_NOTEBOOK_BYTES = 64 * 2**20
"""Largest notebook with its outputs: pictures make most of it; its code is bounded as that of a script."""
MAX_FILES = 20_000
SUFFIXES = (".py", ".ipynb")
FOLDER = "folder"
"""The format of a note about a folder: how many files it stands for is not known."""

_SKIPPED_FOLDERS = {".git", ".hg", "__pycache__", ".venv", "venv", "node_modules", ".tox", ".mypy_cache", ".eggs"}

_OWN = frozenset({"debug"})
"""Below "scratch": what traindx itself wrote, copies of the code among it."""


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
    """Read the Python files among `paths` (folders are searched). Returns their texts and a note for each refusal.

    A note of the format "python" is about one file, a note of the format FOLDER about files that nobody counted.
    """
    texts: list[Text] = []
    notes: list[Artifact] = []
    refuses = excluded or (lambda path: False)
    for path in _expand(paths, notes, refuses):
        if refuses(path):
            continue
        found = _read(path)
        if isinstance(found, Text):
            texts.append(found)
        else:
            notes.append(found)
    return texts, notes


def text_of(path: str, raw: bytes) -> Text | Artifact:
    """The text of a file's bytes, with a note where it is no text of Python."""
    most = _most(path)
    if len(raw) > most:
        return Artifact(path, "python", note=f"refused: larger than {most:,} bytes")
    encoding, text = _decode(raw)
    if text is None:
        return Artifact(path, "python", note="not read: neither UTF-8 nor its declared encoding")
    digest = hashlib.sha256(raw).hexdigest()
    if not path.endswith(".ipynb"):
        return Text(path, text, digest, encoding=encoding)
    notebook = code_of_notebook(text, MAX_BYTES)
    if isinstance(notebook, str):
        return Artifact(path, "python", note=notebook)
    return Text(path, notebook.code, digest, notebook.starts, notebook.left_out)


def _most(path: str) -> int:
    return MAX_NOTEBOOK_BYTES if path.endswith(".ipynb") else MAX_BYTES


def _expand(paths: Sequence[str | Path], notes: list[Artifact], refuses: Refuses) -> Iterator[Path]:
    seen: set[str] = set()
    for given in paths:
        root = Path(given)
        for path in _python_files(root, notes, refuses) if os.path.isdir(root) else [root]:
            key = os.path.realpath(path)
            if key in seen:
                continue
            seen.add(key)
            if len(seen) > MAX_FILES:
                notes.append(Artifact(str(given), FOLDER, note=f"only the first {MAX_FILES} files were read"))
                return
            yield path


def _python_files(root: Path, notes: list[Artifact], refuses: Refuses) -> Iterator[Path]:
    """Scripts first, then notebooks, each sorted by path; links to folders are not followed.

    What has the name of a script is one, also where it turns out to be a pipe or a link that leads nowhere: left out
    without a word, it would pass for audited. The locks of Emacs (".#train.py") are such links and nobody's script.
    """
    def closed(error: OSError) -> None:
        if not refuses(Path(error.filename)):
            notes.append(Artifact(str(Path(error.filename)), FOLDER, note=f"folder not read: {error.strerror}"))

    found: list[Path] = []
    for here, below, names in os.walk(root, onerror=closed):
        own = _OWN if os.path.basename(os.path.abspath(here)) == "scratch" else frozenset()
        below[:] = [n for n in below if n not in _SKIPPED_FOLDERS and n not in own]
        found += [Path(here) / n for n in names if n.endswith(SUFFIXES) and not n.startswith(".#")]
    yield from sorted(found, key=lambda p: (p.suffix != ".py", p))


def _read(path: Path) -> Text | Artifact:
    try:
        mode = os.stat(path).st_mode
        if not stat.S_ISREG(mode):
            return Artifact(str(path), "python", note=f"not read: {_kind(mode)}")
        with path.open("rb") as file:
            raw = file.read(_most(str(path)) + 1)
    except FileNotFoundError:
        leads = "a link that leads nowhere" if path.is_symlink() else "not found"
        return Artifact(str(path), "python", note=leads)
    except OSError as error:
        why = "a link that leads to itself" if error.errno == errno.ELOOP else f"not read: {error.strerror or error}"
        return Artifact(str(path), "python", note=why)
    return text_of(str(path), raw)


def _kind(mode: int) -> str:
    """What stands in the place of a file. Reading it would wait for a writer, or never end."""
    if stat.S_ISFIFO(mode):
        return "a pipe, no file; give - and pipe into standard input"
    return "a socket, no file" if stat.S_ISSOCK(mode) else "a device, no file"


def _decode(raw: bytes) -> tuple[str, str | None]:
    """The encoding that Python reads a source in, and its text; None where that is not what the bytes are."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(raw).readline)
        return encoding, raw.decode(encoding)
    except (SyntaxError, UnicodeDecodeError, LookupError):
        return "", None
