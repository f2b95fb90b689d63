"""Commits between a good and a bad state of a git repository, each as the files that a run finds.

The repository is only read, by its objects: no checkout, no worktree, no index, no filter and no hook is run. Files of
the workspace that git does not know (data, environments) stay as they are.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from traindx_tools.errors import BadUsage, UnreadableInput
from traindx_tools.experiments.isolating.outcomes import Items
from traindx_tools.experiments.isolating.spaces.space import hashed
from traindx_tools.experiments.place import Prepared

SECONDS = 120.0
"""For one question to git."""
MOST_COMMITS = 100_000
_LINK, _MODULE = "120000", "160000"


class Repository:
    """Questions to git about a repository at `root`, none of which writes. Raises UnreadableInput or BadUsage."""

    def __init__(self, folder: Path) -> None:
        self.root = folder
        self.root = Path(self.ask("rev-parse", "--show-toplevel").strip())

    def ask(self, *words: str) -> str:
        """What git prints."""
        return self._run(words).decode("utf-8", "surrogateescape")

    def _run(self, words: tuple[str, ...], given: bytes | None = None) -> bytes:
        environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C",
                       "GIT_NO_LAZY_FETCH": "1", "GIT_NO_REPLACE_OBJECTS": "1"}
        command = ["git", "-c", "core.fsmonitor=false", "-C", str(self.root), *words]
        try:
            done = subprocess.run(command, input=given, capture_output=True, timeout=SECONDS, env=environment,
                                  check=False)
        except FileNotFoundError:
            raise UnreadableInput("git is not installed here, or not on PATH") from None
        except subprocess.TimeoutExpired:
            raise UnreadableInput(f"git {words[0]} did not end within {SECONDS:g} s") from None
        if done.returncode:
            said = done.stderr.decode("utf-8", "replace").strip().splitlines()
            raise BadUsage(f"{self.root}: git says: {said[0] if said else f'exit code {done.returncode}'}")
        return done.stdout

    def commit(self, name: str) -> str:
        """The id of a commit."""
        if not name or name.startswith("-"):
            raise BadUsage(f"{name!r} names no commit")
        return self.ask("rev-parse", "--verify", "--end-of-options", f"{name}^{{commit}}").strip()

    def between(self, good: str, bad: str) -> tuple[str, ...]:
        """Commits after `good` up to `bad`, oldest first, along first parents: a merge is one step."""
        if self.ask("merge-base", good, bad).strip() != good:
            raise BadUsage(f"{good[:10]} is no ancestor of {bad[:10]}: name two commits of one line, GOOD..BAD")
        told = self.ask("rev-list", "--reverse", "--first-parent", f"--max-count={MOST_COMMITS + 1}", bad, f"^{good}")
        return tuple(told.split())

    def parents(self, commit: str) -> tuple[str, ...]:
        """Of a commit, the first one first."""
        return tuple(self.ask("rev-list", "--parents", "--max-count=1", commit).split()[1:])

    def subject(self, commit: str) -> str:
        """`1a2b3c4d5e subject`."""
        return self.ask("log", "-1", "--no-show-signature", "--format=%h %s", "--abbrev=10", commit).strip()

    def tree(self, commit: str) -> dict[str, tuple[str, str]]:
        """Mode and object of each file of a commit, by its path."""
        rows = self.ask("ls-tree", "-r", "-z", "--full-tree", commit).split("\0")
        found = {}
        for row in filter(None, rows):
            told, _, path = row.partition("\t")
            mode, _, blob = told.split()
            found[path] = mode, blob
        return found

    def known(self) -> frozenset[str]:
        """Paths in the index: what git looks after in the workspace."""
        return frozenset(filter(None, self.ask("ls-files", "-z", "--full-name").split("\0")))

    def blobs(self, names: tuple[str, ...]) -> dict[str, bytes]:
        """Contents of objects, as they are stored."""
        out = self._run(("cat-file", "--batch"), "".join(f"{n}\n" for n in names).encode()) if names else b""
        found, at = {}, 0
        for name in names:
            end = out.index(b"\n", at)
            told = out[at:end].split()
            if len(told) != 3 or told[1] != b"blob":
                raise UnreadableInput(f"{self.root}: the object {name} is not there (a partial clone?): fetch it first")
            size = int(told[2])
            found[name] = out[end + 1: end + 1 + size]
            at = end + 2 + size
        return found


def object_id(content: bytes, like: str) -> str:
    """The id that git gives to a file's content: SHA-1, or SHA-256 where the ids of the repository are as long."""
    data = b"blob %d\0" % len(content) + content
    return (hashlib.sha256(data) if len(like) == 64 else hashlib.sha1(data, usedforsecurity=False)).hexdigest()


@dataclass(frozen=True)
class Commits:
    """See `spaces.space.Space`: differences 0 to i - 1 together are the state after the i-th commit."""

    repository: Repository
    good: str
    commits: tuple[str, ...]
    command: str
    folder: str = ""
    """Where in the repository the command runs."""
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, spec: str, command: str, folder: Path) -> Commits:
        """`spec`: GOOD..BAD. Raises BadUsage or UnreadableInput."""
        good, dots, bad = spec.partition("..")
        if not dots or not good or "..." in spec:
            raise BadUsage(f"{spec!r} names no commits: expected GOOD..BAD, as in v1.0..HEAD")
        if not folder.is_dir():
            raise UnreadableInput(f"{folder}: there is no such folder")
        repository = Repository(folder.resolve())
        first, last = repository.commit(good), repository.commit(bad or "HEAD")
        inside = str(folder.resolve().relative_to(repository.root.resolve()))
        return cls(repository, first, repository.between(first, last), command, "" if inside == "." else inside)

    def within(self, commit: str) -> Commits | None:
        """The commits that a merge brought, beside what its first parent had; None where it is no merge."""
        parents = self.repository.parents(commit)
        if len(parents) != 2:
            return None
        base = self.repository.ask("merge-base", *parents).strip()
        return Commits(self.repository, base, self.repository.between(base, parents[1]), self.command, self.folder)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Abbreviated id and subject."""
        return tuple(map(self.repository.subject, self.commits))

    @cached_property
    def identity(self) -> str:
        """Of the two ends."""
        return hashed(["commits", self.good, *self.commits])

    def state(self, part: Items) -> str:
        """The commit whose files a run finds."""
        return self.commits[len(part) - 1] if part else self.good

    def prepared(self, part: Items) -> Prepared:
        """The workspace with the files of that commit."""
        command = f"cd {shlex.quote(self.folder)} && {self.command}" if self.folder else self.command
        return Prepared(command, files=self.files(self.state(part)))

    def files(self, commit: str) -> Mapping[str, bytes | None]:
        """What differs from the workspace: contents of the commit, None for what it does not have."""
        tree = self.repository.tree(commit)
        gone = {p: None for p in self.repository.known() if p not in tree}
        changed = {p: blob for p, (mode, blob) in tree.items()
                   if mode not in (_LINK, _MODULE) and not self._same(p, blob)}
        contents = self.repository.blobs(tuple(dict.fromkeys(changed.values())))
        return {**gone, **{p: contents[blob] for p, blob in changed.items()}}

    def _same(self, path: str, blob: str) -> bool:
        place = self.repository.root / path
        try:
            return not place.is_symlink() and object_id(place.read_bytes(), blob) == blob
        except OSError:
            return False
