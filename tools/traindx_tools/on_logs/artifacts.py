"""Finds the files of a run by what was named: a path, several, a folder, a glob, "-" or an fsspec URL.

Nothing here trusts a file's name: a head of its bytes says what it is. Files that could run code when they are loaded
(pickles, checkpoints) and archives are named and never opened beyond that head.
"""

from __future__ import annotations

import glob
import gzip
import io
import itertools
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from traindx_tools.artifact import Artifact
from traindx_tools.errors import UnreadableInput
from traindx_tools.on_logs import zstandard
from traindx_tools.on_logs.folder_shares import SPREAD, spread_of_names
from traindx_tools.on_logs.nothing_there import nothing_there
from traindx_tools.on_logs.plain_text import PlainText, first_behind_zeros, is_binary
from traindx_tools.on_logs.unpacked import Bounded
from traindx_tools.on_logs.urls import resolve_url

if TYPE_CHECKING:
    from traindx_tools.on_logs.readers.line_forms import LineForm

HEAD_BYTES = 64 * 1024
"""What is looked at to tell a format."""
MAX_FILES = 2_000
"""Files looked at in one folder, of every kind of name some; the rest is said to be left out."""
MAX_LISTED = 500_000
"""Names that are listed of one folder and those below it."""
MAX_MATCHES = 10 * MAX_FILES
"""Files and folders that a pattern may match."""
MAX_MADE = 16 * 2**20
"""Bytes read of a file that says it is empty and is not: the system makes it up (/proc, /sys), perhaps without end."""
MAX_UNPACKED = 512 * 2**20
"""Bytes read of one packed stream: a bomb ends here."""
MAX_STDIN = 2 * 2**30
"""Bytes read from standard input."""
_ZEROS = bytes(HEAD_BYTES)
_SKIPPED_FOLDERS = frozenset({"__pycache__", "node_modules", "venv", "site-packages", "checkpoints_orbax"})
STDIN = "-"


@dataclass(frozen=True)
class Source:
    """One stream of bytes that may hold something of a run."""

    name: str
    """As the user named it: a path, a URL, or "-"; "history" for one that a program holds (`in_memory`)."""
    local: Path | None = None
    data: bytes | None = None
    filesystem: Any = None
    above: int = 0
    """Lines of its file before the first one here: not 0 where it is one of several runs."""
    forms: tuple[LineForm, ...] = ()
    """What a person says of the shapes of its lines."""
    sections: tuple[int, ...] = ()
    """Lines at which what another cell of a notebook printed begins."""
    formed: set[str] = field(default_factory=set, repr=False, compare=False)
    """Which of these a line had when it was read."""
    _opened: list[Bounded] = field(default_factory=list, repr=False, compare=False)
    _cut: list[str] = field(default_factory=list, repr=False, compare=False)
    _texts: list[PlainText] = field(default_factory=list, repr=False, compare=False)

    def raw(self) -> BinaryIO:
        """The bytes as they are stored. Raises OSError."""
        if self.data is not None:
            return io.BytesIO(self.data)
        if self.local is not None:
            return _as_made(self.local.open("rb"))
        return cast(BinaryIO, self.filesystem.open(self.name, "rb"))

    def open(self) -> BinaryIO:
        """The bytes, unpacked where they are gzip or zstandard, and then bounded by `MAX_UNPACKED`. Raises OSError."""
        stream = self.raw()
        if not self.zipped:
            return stream
        packed = zstandard.unpacked(stream) if self.stored_head.startswith(zstandard.MAGIC) else None
        self._opened[:] = [Bounded(packed or gzip.GzipFile(fileobj=stream), MAX_UNPACKED)]
        return cast(BinaryIO, self._opened[0])

    def text(self) -> BinaryIO:
        """The unpacked bytes, those of a text as UTF-8 without zeros, in whatever encodings it is. Raises OSError."""
        if is_binary(self.head):
            return self.open()
        self._texts[:] = [PlainText(self.open(), self.head)]
        return cast(BinaryIO, self._texts[0])

    @cached_property
    def text_head(self) -> bytes:
        """The first bytes of `text`. Raises OSError."""
        if b"\0" not in self.head:
            return self.head
        with self.text() as stream:
            return stream.read(HEAD_BYTES)

    @property
    def remark(self) -> str:
        """What a person should know of how it was read last."""
        cut = any(bounded.cut for bounded in self._opened)
        packed = [f"only the first {MAX_UNPACKED:,} bytes of what was packed were read"] if cut else [
            f"{b.damaged}: what came before was read" for b in self._opened if b.damaged]  # fmt: skip
        return "; ".join((*packed, *(t.remark for t in self._texts if t.remark), *self._cut))

    @property
    def damaged(self) -> str:
        """Where what is packed broke off when it was read last, "" where it came to its end."""
        return next((b.damaged for b in self._opened if b.damaged), "")

    def read_in_part(self, why: str) -> None:
        """A reader says that it left out what did not fit."""
        self._cut[:] = [why]

    @cached_property
    def stored_head(self) -> bytes:
        """The first bytes as they are stored. Raises OSError."""
        with self.raw() as stream:
            return stream.read(HEAD_BYTES)

    @property
    def size(self) -> int:
        """Bytes as they are stored; 0 where nobody says so. Raises OSError."""
        if self.data is not None:
            return len(self.data)
        return self.local.stat().st_size if self.local is not None else 0

    @property
    def zipped(self) -> bool:
        """Whether it is a gzip or a zstandard stream."""
        return self.stored_head.startswith((b"\x1f\x8b\x08", zstandard.MAGIC))

    @cached_property
    def head(self) -> bytes:
        """The first unpacked bytes, where they are zeros alone those behind them. Raises OSError."""
        if not self.zipped and self.stored_head != _ZEROS:
            return self.stored_head
        with self.open() as stream:
            try:
                head = stream.read(HEAD_BYTES)
                head = first_behind_zeros(stream, HEAD_BYTES) or head if head == _ZEROS else head
                if not head and self.damaged:
                    raise OSError(self.damaged)
                return head
            except OSError as broken:
                known = "zstandard" in str(broken) or str(broken) == self.damaged
                what = str(broken) if known else f"damaged gzip stream: {broken}"
                raise OSError(what) from broken


def _as_made(stream: BinaryIO) -> BinaryIO:
    """The stream, bounded where its size is unknown: it says 0, and there may be no end."""
    return stream if os.fstat(stream.fileno()).st_size else cast(BinaryIO, Bounded(stream, MAX_MADE))


_REFUSED_MAGIC = (
    (b"PK\x03\x04", "archive", "a zip archive that holds no weights: not opened"),
    (b"PK\x05\x06", "archive", "an empty zip archive"),
    (b"\x80\x02", "pickle", "a pickle: loading it could run code, so it is never opened"),
    (b"\x80\x03", "pickle", "a pickle: loading it could run code, so it is never opened"),
    (b"\x80\x04", "pickle", "a pickle: loading it could run code, so it is never opened"),
    (b"\x80\x05", "pickle", "a pickle: loading it could run code, so it is never opened"),
    (b"\x93NUMPY", "numpy", "a numpy array, no log"),
    (b"\x89HDF", "hdf5", "an HDF5 file, no log"),
    (b"BZh", "archive", "bzip2: unpack it first"),
    (b"\xfd7zXZ", "archive", "xz: unpack it first"),
    (b"7z\xbc\xaf", "archive", "a 7z archive: unpack it first"),
    (b"SQLite format 3", "sqlite", "an SQLite database: export its metrics as CSV"),
    (b"\x89PNG", "image", "a picture"),
    (b"\xff\xd8\xff", "image", "a picture"),
    (b"GIF8", "image", "a picture"),
    (b"%PDF", "pdf", "a PDF"),
    (b"\x7fELF", "binary", "a program"),
    (b"PAR1", "parquet", "a parquet table: data, no log"),
)

BATCH = ".batch.npz"
"""The end of the name of a batch that the live instruments kept."""
STEP = ".step.npz"
"""The same of a step (`live/step_file.py`)."""


WEIGHTS = "weights"
"""Format of a checkpoint: read by `on_weights`, which executes nothing of it."""


def _holds_weights(path: str) -> bool:
    from traindx_tools.on_weights import is_weights

    return is_weights(path)


def refusal(source: Source) -> Artifact | None:
    """Why a source is not read, or None where it may be: archives, pickles and other binary files."""
    head = source.head
    if source.name.endswith(BATCH) and head.startswith(b"PK"):
        return Artifact(source.name, "traindx batch", note=f"what the program failed on: traindx replay {source.name}")
    if source.name.endswith(STEP) and head.startswith(b"PK"):
        return Artifact(source.name, "traindx step",
                        note=f"the step that went wrong: traindx replay {source.name} --run CMD")
    if source.local is not None and _holds_weights(str(source.local)):
        return Artifact(source.name, WEIGHTS)
    for magic, form, why in _REFUSED_MAGIC:
        if head.startswith(magic):
            return Artifact(source.name, form, note=f"refused: {why}")
    if len(head) >= 262 and head[257:262] == b"ustar":
        return Artifact(source.name, "archive", note="refused: a tar archive: unpack it first")
    return None


@dataclass
class Discovery:
    """What was found, and what was left out and why."""

    sources: list[Source] = field(default_factory=list)
    left_out: list[Artifact] = field(default_factory=list)


def discover(paths: Sequence[str | Path], *, stdin: bytes | None = None, most: int = MAX_FILES) -> Discovery:
    """Every source that the paths name, in order, each once; of one folder or URL `most` files.

    Raises UnreadableInput for a path that is not there, for a folder without files and for a glob that matches nothing;
    MissingExtra where a URL needs a package that is not installed.
    """
    found = Discovery()
    if not paths:
        raise UnreadableInput("No input was named. Give a log, a folder, a glob, '-' for standard input or a URL.")
    for path in paths:
        _discover_one(str(path), found, stdin, most)
    unique = {_identity(s): s for s in reversed(found.sources)}
    found.sources = [s for s in found.sources if unique[_identity(s)] is s or s.data is not None]
    found.sources = list({_identity(s): s for s in found.sources}.values())
    return found


def first_files(found: Discovery, most: int = MAX_FILES) -> Discovery:
    """What was found, of more than `most` files some of every kind of name, and a word about the rest."""
    if len(found.sources) <= most:
        return found
    kept = spread_of_names([s.name for s in found.sources], most)
    first_left = next((i for i, k in enumerate(kept) if i != k), most)
    rest = Artifact(str(Path(found.sources[first_left].name).parent), "folder",
                    note=f"only {len(kept):,} of {len(found.sources):,} files were looked at: {SPREAD}")
    return Discovery([found.sources[i] for i in kept], [*found.left_out, rest])


def _identity(source: Source) -> str:
    return os.path.realpath(source.local) if source.local is not None else source.name


def _discover_one(path: str, found: Discovery, stdin: bytes | None, most: int) -> None:
    if path == STDIN:
        found.sources.append(Source(getattr(stdin, "name", STDIN), data=_standard_input(stdin)))
    elif path.startswith("file://"):
        _discover_one(path.removeprefix("file://"), found, stdin, most)
    elif "://" in path:
        _discover_url(path, found, most)
    elif os.path.isdir(path):
        _discover_folder(path, found, most)
    elif os.path.exists(path):
        _add_file(path, found, named=True)
    else:
        matches = _matches(path, found)
        if not matches and (database := in_database(path)) is not None:
            found.sources.append(Source(path, local=database))
            return
        if not matches:
            raise UnreadableInput(nothing_there(path))
        for match in matches:
            if os.path.isdir(match):
                _discover_folder(match, found, most, may_be_empty=True)
            else:
                _add_file(match, found)


def in_database(path: str) -> Path | None:
    """The database in "DATABASE:RUN", as one run of a tracker's database is named; None for any other path."""
    database, _, run = path.rpartition(":")
    return Path(database) if database and run and os.path.isfile(database) else None


def _matches(pattern: str, found: Discovery) -> list[str]:
    """What a pattern matches, each file and folder once: `**` goes through circles of links, at every depth anew."""
    if not glob.has_magic(pattern):
        return []
    matches = list(itertools.islice(glob.iglob(pattern, recursive=True), MAX_MATCHES + 1))
    if len(matches) > MAX_MATCHES:
        found.left_out.append(Artifact(pattern, "folder", note=f"only the first {MAX_MATCHES} matches were looked at"))
    once: dict[str, str] = {}
    for match in sorted(matches[:MAX_MATCHES], key=lambda m: (m.count(os.sep), m)):
        once.setdefault(os.path.realpath(match), match)
    return sorted(once.values())


def _standard_input(given: bytes | None) -> bytes:
    return given if given is not None else sys.stdin.buffer.read(MAX_STDIN)


def _add_file(path: str, found: Discovery, *, named: bool = False) -> None:
    if not os.path.isfile(path):
        reason = "a pipe, socket or device, not a file: send it to standard input instead ('-')"
        if named:
            raise UnreadableInput(f"{path!r} is {reason}.")
        found.left_out.append(Artifact(path, "unknown", note=f"refused: {reason}"))
    elif not os.access(path, os.R_OK):
        if named:
            raise UnreadableInput(f"{path!r} cannot be read: no permission. Change its mode or copy it.")
        found.left_out.append(Artifact(path, "unknown", note="not read: no permission"))
    else:
        found.sources.append(Source(path, local=Path(path)))


def _discover_folder(folder: str, found: Discovery, most: int, *, may_be_empty: bool = False) -> None:
    before = len(found.sources) + len(found.left_out)
    root = os.path.realpath(folder)
    paths = list(itertools.islice(_walk(folder, root, found), MAX_LISTED))
    if (count := len(paths)) > most:
        paths = [paths[i] for i in spread_of_names(paths, most)]
        of = f"{count:,}" if count < MAX_LISTED else f"more than {count:,}"
        said = f"only {len(paths):,} of its {of} files were looked at: {SPREAD}; name a pattern for the others"
        found.left_out.append(Artifact(folder, "folder", note=said))
    for path in paths:
        _add_file(path, found)
    if len(found.sources) + len(found.left_out) == before and not may_be_empty:
        if not os.access(folder, os.R_OK | os.X_OK):
            raise UnreadableInput(f"The folder {folder!r} cannot be read: no permission. Change its mode or copy it.")
        raise UnreadableInput(f"The folder {folder!r} holds no files that could be read. Name the folder in which the "
                              "training wrote its log.")


def _walk(folder: str, root: str, found: Discovery) -> Iterator[str]:
    """The files below a folder in a stable order; links that leave it are reported and not followed.

    `scratch/debug` holds what traindx itself wrote, no evidence of the run.
    """
    for here, folders, files in os.walk(folder, followlinks=False):
        for name in sorted(folders):
            if os.path.islink(os.path.join(here, name)):
                _left_as_link(os.path.join(here, name), root, found)
        own = {"debug"} if os.path.basename(here) == "scratch" else set()
        folders[:] = sorted(n for n in folders if n not in _SKIPPED_FOLDERS | own and not n.startswith("."))
        for name in sorted(files):
            path = os.path.join(here, name)
            if name.startswith("."):
                continue
            if os.path.islink(path) and not _inside(os.path.realpath(path), root):
                _left_as_link(path, root, found)
                continue
            yield path


def _inside(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip(os.sep) + os.sep)


def _left_as_link(path: str, root: str, found: Discovery) -> None:
    if not _inside(os.path.realpath(path), root):
        found.left_out.append(Artifact(path, "link", note="refused: a link that leads out of the folder is not "
                                                         "followed; name its target if you want it read"))


def _discover_url(url: str, found: Discovery, most: int) -> None:
    filesystem, names = resolve_url(url)
    if not names:
        raise UnreadableInput(f"Nothing was found at {url!r}. Check the address and that you may read it.")
    found.sources.extend(Source(name, filesystem=filesystem) for name in names[:most])


def names(sources: Iterable[Source]) -> list[str]:
    """The names of sources, for messages."""
    return [s.name for s in sources]


def told_as(path: str, told: str) -> bool:
    """Whether a file is the one that is told by this name: its path, or the end of it that tells it from the others."""
    end = Path(told).parts
    return path == told or (bool(end) and Path(path).parts[-len(end):] == end)
