"""What the MCP server may reach: files below its root that hold no secrets. Links are resolved before anything is read.

A path that is named is refused with a reason; a file that only lies in a named folder is left out and said so.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from traindx.mcp_arguments import DiagnoseRun
from traindx.policy import Scope, diagnostic, is_secret, readable, resolve
from traindx.session_folder import SessionFolder, find_session, folders
from traindx.workspace import SCRATCH
from traindx_tools.errors import BadUsage, TraindxError
from traindx_tools.examine import MOST_FILES
from traindx_tools.on_logs.artifacts import discover
from traindx_tools.scope import Asked
from traindx_tools.scope.find import entry_file

MOST_CODE_FILES = 5_000
"""Python files audited in one call; a larger tree is audited folder by folder."""

_SKIPPED = frozenset({"__pycache__", "venv", "node_modules", "site-packages"})
_SESSION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")


class Refused(TraindxError):
    """The server may not read or write there."""


@dataclass
class Admitted:
    """The files that may be read, and what was left out of the folders that were named, with the reason."""

    files: list[Path] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Reach:
    """Everything below one folder."""

    root: Path
    allow_run: bool = False
    """The person agreed, when they started the server, that files below the root are executed."""

    @classmethod
    def of(cls, root: str | Path, *, allow_run: bool = False) -> Reach:
        """The reach of a server with this root. Raises BadUsage for no folder and for the root of the file system."""
        real = Path(root).expanduser().resolve()
        if not real.is_dir():
            raise BadUsage(f"the root {root} is no folder: give the folder of the training code with --root")
        if real == Path(real.anchor):
            raise BadUsage(f"the root {real} would confine nothing: give the folder of the training code with --root")
        return cls(real, allow_run)

    def logs(self, given: Sequence[str]) -> Admitted:
        """Every file that the paths name: files, folders and globs, relative to the root. Raises Refused,
        UnreadableInput, and BadUsage where nothing is left to read."""
        found = Admitted()
        for path in given:
            named = discover([self._named(path)], most=MOST_FILES)
            found.left_out += [f"{self.shorten(a.path)}: {a.note}" for a in named.left_out]
            for source in named.sources:
                if source.local is not None:
                    self._admit(source.local, found)
        found.files = list(dict.fromkeys(found.files))
        self._refuse_stray_code(found.files)
        return self._some(found, given)

    def code(self, given: Sequence[str]) -> Admitted:
        """The Python files and notebooks that the paths name; folders are searched. Raises as `logs` does."""
        found = Admitted()
        for path in given:
            for file in _python_files(Path(self._named(path))):
                if len(found.files) >= MOST_CODE_FILES:
                    found.left_out.append(f"only the first {MOST_CODE_FILES} Python files were read: name a folder")
                    return found
                self._admit(file, found)
        return self._some(found, given)

    def asked(self, given: DiagnoseRun) -> Asked:
        """What was said of the run's files. Raises Refused and BadUsage for an entry point that may not be read."""
        entry = tuple(str(f) for e in given.entry for f in self.code([str(entry_file(e, self.root))]).files)
        return Asked(entry, given.everything, which=given.which, named=self.named(given.paths))

    def named(self, paths: Sequence[str]) -> tuple[Path, ...]:
        """The Python files that were named one by one. Raises Refused."""
        return tuple(f for p in paths if p.endswith(".py") for f in self.code([p]).files)

    def weights(self, given: str) -> Path:
        """A checkpoint: a file, or a folder of them. Raises Refused, and BadUsage where nothing is there."""
        path = Path(self._named(given))
        if not path.exists():
            raise BadUsage(f"there is no file or folder {given}: give a checkpoint below the root")
        if is_secret(path):
            raise Refused(f"{given} may hold secrets and is not read here")
        return path

    def session(self, session: str) -> SessionFolder:
        """A session below the root by its id or the beginning of it. Raises Refused, NoSuchSession."""
        if not _SESSION_ID.fullmatch(session):
            raise Refused(f"{session!r} is no session id: call session_status without one to list them")
        return self._checked(find_session(session, self._sessions_root()))

    def sessions(self) -> Iterator[SessionFolder]:
        """All sessions below the root, the oldest first; links that lead out are passed over."""
        for path in folders(self._sessions_root() / SCRATCH):
            if self._inside(path / "journal.jsonl"):
                yield SessionFolder(path)

    def picture(self, name: str) -> Path:
        """Where a picture of this name is written: below scratch/debug of the root, and nowhere else."""
        path = (self.root / SCRATCH / "plots" / f"{name}.png")
        real = path.resolve()
        if not self._inside(path) or not diagnostic(real, Scope(self.root)):
            raise Refused(f"{SCRATCH}/plots leads to {real}, where no picture may be written: remove that link")
        return real

    def probes(self) -> Path:
        """Where outputs of probes are kept: below scratch/debug of the root, and nowhere else. Raises Refused."""
        path = self.root / SCRATCH / "probes"
        if path.resolve() != path:
            raise Refused(f"{SCRATCH}/probes leads to {path.resolve()}, where no output may be written: remove that "
                          "link")
        return path

    def shorten(self, text: str) -> str:
        """The text with paths as seen from the root."""
        return text.replace(f"{self.root}{os.sep}", "")

    def _named(self, path: str) -> str:
        """The real path or pattern that the client named. Raises Refused."""
        if path == "-" or "://" in path or not path.strip():
            raise Refused(f"{path!r} cannot be read here: give files, folders or globs below {self.root}")
        if glob.has_magic(path) and not (self.root / path).exists():
            if ".." in Path(path).parts:
                raise Refused(f"the pattern {path!r} leaves the root: give one relative to {self.root}")
            self._readable(str(_fixed_part(Path(path))))
            return str(self.root / os.path.expanduser(path))
        self._readable(path)
        return str(resolve(path, self.root))

    def _readable(self, path: str) -> None:
        try:
            verdict = readable(path, Scope(self.root))
        except (OSError, ValueError, RuntimeError) as error:  # no path at all: a NUL byte, a loop of links, too long
            raise Refused(f"{path[:200]!r} cannot be read: {error}") from error
        if not verdict.allow:
            raise Refused(f"{verdict.reason}. Only files below {self.root} that hold no secrets are read here; "
                          f"{verdict.next_step}.")

    def _admit(self, file: Path, found: Admitted) -> None:
        real = file.resolve()
        if is_secret(file) or is_secret(real):
            found.left_out.append(f"{self.shorten(str(file))}: may hold secrets")
        elif not real.is_relative_to(self.root):
            found.left_out.append(f"{self.shorten(str(file))}: a link that leads out of the root")
        else:
            found.files.append(real)

    def _some(self, found: Admitted, given: Sequence[str]) -> Admitted:
        if not found.files:
            why = f" ({'; '.join(found.left_out[:3])})" if found.left_out else ""
            raise BadUsage(f"nothing to read in {', '.join(given)}{why}: name the run's log, its folder or its code")
        return found

    def _refuse_stray_code(self, files: Sequence[Path]) -> None:
        """The instruments read the Python files beside a log: none of them may be a link that leads out."""
        for folder in dict.fromkeys(f.parent for f in files if f.suffix != ".py"):
            for code in folder.glob("*.py"):
                if not self._inside(code):
                    raise Refused(f"{self.shorten(str(code))} is a link to {code.resolve()}, outside {self.root}, and "
                                  "code beside a log is read with it: remove the link or start the server further up")

    def _inside(self, path: Path) -> bool:
        return path.resolve().is_relative_to(self.root)

    def _sessions_root(self) -> Path:
        if not self._inside(self.root / SCRATCH):
            raise Refused(f"{self.root / SCRATCH} leads to {(self.root / SCRATCH).resolve()}, outside the root")
        return self.root

    def _checked(self, folder: SessionFolder) -> SessionFolder:
        if not self._inside(folder.journal):
            raise Refused(f"session {folder.path.name} leads to {folder.path.resolve()}, outside {self.root}")
        return folder


def _fixed_part(pattern: Path) -> Path:
    """The folder above the first part with a wildcard."""
    fixed: list[str] = []
    for part in pattern.parts[:-1]:
        if glob.has_magic(part):
            break
        fixed.append(part)
    return Path(*fixed)


def _python_files(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
        return
    if not path.exists():
        matches = [Path(m) for m in sorted(glob.glob(str(path), recursive=True))]
        if not matches:
            raise BadUsage(f"there is no file or folder {path}: give Python files or folders below the root")
        for match in matches:
            if match.exists():
                yield from _python_files(match)
        return
    for here, below, files in os.walk(path):
        below[:] = sorted(n for n in below if n not in _SKIPPED and not n.startswith("."))
        yield from (Path(here) / n for n in sorted(files) if n.endswith((".py", ".ipynb")))
