"""The user's workspace: which paths belong to it, and a fingerprint that names every file that changed.

The fingerprint is bounded, so that a folder with a data set in it does not stall a session: small files are hashed,
large ones and those that git ignores, unless they are code, are taken by size and time, folders with too many entries
are left out and named.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import subprocess
import time
from collections import deque
from collections.abc import Iterator, Set
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

from traindx.protected_copy import SOURCE_ENDINGS
from traindx.scratch import SCRATCH as SCRATCH
from traindx_tools.errors import TraindxError

HASHED_UP_TO = 4 * 2**20
"""Bytes; a larger file is taken by size and modification time."""

HASHED_IN_ALL = 512 * 2**20
"""Bytes hashed in one fingerprint; after that, size and time."""

FILES_AT_MOST = 50_000
IGNORED_FILES_AT_MOST = 2_000
"""Files of one git-ignored folder; a larger one (checkpoints, a data set) is left out."""

_NEVER = frozenset({".git", ".hg", ".svn", "node_modules", "__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache",
                    ".ipynb_checkpoints", ".hypothesis", ".tox", ".nox"})
_ENVIRONMENT_MARKS = ("pyvenv.cfg", "conda-meta")
_GIT_WATCHED = ("HEAD", "config", "hooks")
"""Parts of .git that say what git will do; the rest changes by itself."""

_GIT_OFF = ("core.fsmonitor=false", "core.hooksPath=/dev/null", "core.quotePath=false", "log.showSignature=false",
            "core.untrackedCache=false")

_RACY_SECONDS = 2.0
"""A file changed so shortly ago may change again within one clock tick: its hash is not reused."""


_SIGNATURE = re.compile(r"(?P<mode>[0-7]+) (?P<stat>\d+ -?\d+) (?P<sha>-|[0-9a-f]{64})")
"""Of a regular file: permission bits, size and modification time, hash where it was hashed."""


def printable(path: str) -> str:
    """A file name as text, also where it is not valid UTF-8."""
    return os.fsencode(path).decode("utf-8", "replace")


class PathRefused(TraindxError):
    """A path leaves the workspace, or names something that must not be touched."""


def inside(workspace: Path, path: str) -> Path:
    """The real path of something in the workspace. Raises PathRefused for anything else.

    Refused: `..`, a symbolic link that leads out, another absolute path, a NUL byte, the workspace itself.
    """
    root = workspace.resolve()
    given = Path(path)
    if not path or "\0" in path or ".." in given.parts:
        raise PathRefused(f"refused path {path!r}: give a path inside {root}, without '..'")
    real = (root / given).resolve()
    if real == root or not real.is_relative_to(root):
        raise PathRefused(f"refused path {path!r}: it leads to {real}, outside the workspace {root}")
    return real


def editable(workspace: Path, path: str) -> Path:
    """`inside`, and not part of git's or the sessions' own state."""
    real = inside(workspace, path)
    relative = real.relative_to(workspace.resolve())
    if ".git" in relative.parts or relative.is_relative_to(SCRATCH):
        raise PathRefused(f"refused path {path!r}: {relative} belongs to git or to a debugging session")
    return real


@dataclass(frozen=True)
class Fingerprint:
    """What the workspace holds: relative path to a signature of the content, and the folders that were left out."""

    files: dict[str, str]
    skipped: tuple[str, ...] = ()

    def changed(self, later: Fingerprint) -> tuple[str, ...]:
        """Paths that were added, removed or changed, sorted."""
        skipped = tuple(f"{s}/" for s in (*self.skipped, *later.skipped))
        return tuple(sorted(p for p in self.files.keys() | later.files.keys()
                            if not _same(self.files.get(p), later.files.get(p)) and not p.startswith(skipped)))

    def taking(self, later: Fingerprint, paths: Set[str]) -> Fingerprint:
        """This one with the named files as a later one has them; names as they are printed."""
        rest = {p: s for p, s in self.files.items() if printable(p) not in paths}
        return Fingerprint({**rest, **{p: s for p, s in later.files.items() if printable(p) in paths}}, self.skipped)

    def digest(self) -> str:
        """A hash of all contents."""
        return hashlib.sha256(os.fsencode("\n".join(f"{p}\0{s}" for p, s in sorted(self.contents.items())))).hexdigest()

    @property
    def contents(self) -> dict[str, str]:
        """Path to the hash of the content, else to size and time: what says whether a program meets the same files."""
        found = {p: _SIGNATURE.fullmatch(s) for p, s in self.files.items()}
        return {p: s if (m := found[p]) is None else f"sha {m['sha']}" if m["sha"] != "-" else m["stat"]
                for p, s in self.files.items()}


def _same(one: str | None, other: str | None) -> bool:
    """Compare two signatures; where only one of two files was hashed, by mode, size and time."""
    if one is None or other is None or one == other:
        return one == other
    a, b = _SIGNATURE.fullmatch(one), _SIGNATURE.fullmatch(other)
    if a is None or b is None or a["mode"] != b["mode"]:
        return False
    return a["sha"] == b["sha"] if a["sha"] != "-" and b["sha"] != "-" else a["stat"] == b["stat"]


@dataclass
class Fingerprinter:
    """Takes fingerprints of one workspace; hashes a file again only where its stat changed."""

    workspace: Path
    unwatched: tuple[str, ...] = ()
    """Patterns of paths that may change at any time: a log that another process writes."""
    _known: dict[str, tuple[tuple[int, ...], str]] = field(default_factory=dict)
    _budget: int = 0

    def take(self) -> Fingerprint:
        """A fingerprint of the workspace as it is now. Files that vanish meanwhile are as if they were never there."""
        root = self.workspace.resolve()
        ignored = _ignored_folders(root)
        self._budget = HASHED_IN_ALL
        files: dict[str, str] = {}
        skipped: list[str] = []
        queue = deque([("", False)])
        while queue:
            folder, quiet = queue.popleft()
            if not quiet and folder in ignored:
                quiet = True
                if _too_many(root / folder):
                    skipped.append(folder)
                    continue
            if len(files) >= FILES_AT_MOST:
                skipped.append(folder)
                continue
            for entry in _entries(root / folder):
                relative = f"{folder}/{entry.name}" if folder else entry.name
                if entry.is_dir(follow_symlinks=False):
                    if not _left_out(entry, relative):
                        queue.append((relative, quiet))
                elif not any(fnmatch(relative, pattern) for pattern in self.unwatched):
                    code = os.path.splitext(entry.name)[1].lower() in SOURCE_ENDINGS
                    self._add(files, relative, entry, hashed=code or not quiet)
        for relative, real in _git_state(root):
            files[relative] = _hash(real)
        return Fingerprint(files, tuple(sorted(skipped)))

    def _add(self, files: dict[str, str], relative: str, entry: os.DirEntry[str], *, hashed: bool) -> None:
        try:
            files[relative] = self._signature(relative, entry, hashed=hashed)
        except FileNotFoundError:
            return
        except OSError as error:
            files[relative] = f"unreadable:{error.errno}"

    def _signature(self, relative: str, entry: os.DirEntry[str], *, hashed: bool) -> str:
        info = entry.stat(follow_symlinks=False)
        if stat.S_ISLNK(info.st_mode):
            return f"link:{os.readlink(entry.path)}{self._behind(entry)}"
        if not stat.S_ISREG(info.st_mode):
            return f"special:{stat.S_IFMT(info.st_mode):o}"
        plain = f"{stat.S_IMODE(info.st_mode):o} {info.st_size} {info.st_mtime_ns}"
        if not hashed or info.st_size > min(HASHED_UP_TO, self._budget):
            return f"{plain} -"
        self._budget -= info.st_size
        seen = (info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino, info.st_mode)
        known = self._known.get(relative)
        if known is not None and known[0] == seen:
            return known[1]
        signature = f"{plain} {_hash(Path(entry.path))}"
        if time.time() - info.st_ctime > _RACY_SECONDS:
            self._known[relative] = (seen, signature)
        return signature


    def _behind(self, entry: os.DirEntry[str]) -> str:
        """What a link to a file of code leads to: it may lie outside, and is a part of the program all the same."""
        path = Path(entry.path)
        if path.suffix.lower() not in SOURCE_ENDINGS or not path.is_file() or path.stat().st_size > HASHED_UP_TO:
            return ""
        return f" {_hash(path)}"


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return sorted(found, key=lambda e: e.name)
    except OSError:
        return []


def _left_out(entry: os.DirEntry[str], relative: str) -> bool:
    return (entry.name in _NEVER or Path(relative) == SCRATCH
            or any(os.path.exists(os.path.join(entry.path, mark)) for mark in _ENVIRONMENT_MARKS))


def _too_many(folder: Path) -> bool:
    count = 0
    for _, folders, files in os.walk(folder):
        count += len(files) + len(folders)
        if count > IGNORED_FILES_AT_MOST:
            return True
    return False


def _hash(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(2**20):
            digest.update(block)
    return digest.hexdigest()


def _git_state(root: Path) -> Iterator[tuple[str, Path]]:
    for name in _GIT_WATCHED:
        path = root / ".git" / name
        for real in sorted(path.iterdir()) if path.is_dir() else [path]:
            if real.is_file():
                yield real.relative_to(root).as_posix(), real


def run_git(root: Path, *arguments: str, limit: int = 2**20) -> str | None:
    """What a read-only git command prints, at most `limit` characters; None without git or a repository.

    Programs that the repository itself may name are all off: hooks, pagers, external diff programs, file-system
    monitors, filters, signature checkers, and the transports of a clone that fetches missing objects.
    """
    off = [part for setting in (*_GIT_OFF, *_filters_off(root)) for part in ("-c", setting)]
    printed = _git(root, *off, *arguments)
    return None if printed is None else printed.decode("utf-8", "replace")[:limit]


def _filters_off(root: Path) -> Iterator[str]:
    """Settings that empty the filters which the repository's own configuration defines; the user's own ones stay."""
    for scope in ("--local", "--worktree"):
        names = _git(root, "config", scope, "--includes", "--name-only", "-z", "--get-regexp", r"^filter\..*")
        for name in (names or b"").decode("utf-8", "replace").split("\0"):
            if name and "=" not in name and "\n" not in name:
                yield f"{name}={'false' if name.endswith('.required') else ''}"


def _git(root: Path, *arguments: str) -> bytes | None:
    command = ["git", "--no-pager", "--literal-pathspecs", *arguments]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    environment |= {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C", "GIT_NO_LAZY_FETCH": "1",
                    "GIT_ALLOW_PROTOCOL": "none"}
    try:
        done = subprocess.run(command, cwd=root, env=environment, capture_output=True, timeout=20, check=False,
                              stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def _ignored_folders(root: Path) -> frozenset[str]:
    if not any((folder / ".git").exists() for folder in (root, *root.parents)):
        return frozenset()
    listed = run_git(root, "ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z")
    return frozenset(p.rstrip("/") for p in (listed or "").split("\0") if p.endswith("/"))
