"""Where a session lives on disk: its folder, its lock, its journal, and the session that the journal adds up to."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from filelock import BaseFileLock, FileLock, Timeout
from pydantic import ValidationError

from traindx import arguments
from traindx.durable import StateNotWritable, write_state
from traindx.events import EVENTS, Event
from traindx.journal import Journal, JournalDamaged, Record, read_journal
from traindx.known_folders import known_folders, remember
from traindx.machine import Session, advance
from traindx.model import Artifacts, Budget, Model, Quoted, Symptom, Verify, now
from traindx.patching import Store
from traindx.runner.folders import command_runs
from traindx.workspace import SCRATCH, Fingerprint
from traindx_tools import unlinked
from traindx_tools.errors import TraindxError

JOURNAL = "journal.jsonl"
FORMAT = 1
"""Version of the journal's format; another one is refused, not guessed at."""

LOCK_SECONDS = 5.0
"""How long a second process waits for the first before it says that the session is busy."""


class SessionBusy(TraindxError):
    """Another process drives this session at the moment."""


class NoSuchSession(TraindxError):
    """There is no session with this id or in this folder."""


class NoPlaceForSession(StateNotWritable):
    """A session cannot be begun: its folder lies in the workspace, which cannot be written to."""

    def __init__(self, workspace: Path, cause: OSError) -> None:
        TraindxError.__init__(self, f"no session was begun: it lives in {workspace / SCRATCH}, which cannot be written "
                              f"({cause.strerror or cause}). Work on a copy of the folder, or make one that you may "
                              f"write to: mkdir -p {workspace / SCRATCH}. `traindx diagnose` needs no place there")


class NotOurSession(TraindxError):
    """A folder that looks like a session, and that the protected runner's commands could have made."""


class Opening(Model):
    """The first record: what the session was asked, and with what consent."""

    format: int = FORMAT
    id: str
    workspace: str
    symptom: Symptom
    artifacts: Artifacts = Artifacts()
    verify: Verify | None = None
    budget: Budget = Budget()
    allow_run: bool = False
    good_commit: str | None = None
    unwatched: tuple[str, ...] = ()
    entry: tuple[str, ...] = ()
    """Files that the person calls the entry point of the run."""
    everything: bool = False
    """Judge all code of the workspace, also what the run does not use."""
    degraded: tuple[Quoted, ...] = ()
    """Who was asked for as investigator and could not be reached, and why."""


@dataclass(frozen=True)
class SessionFolder:
    """The paths of one session."""

    path: Path

    @property
    def journal(self) -> Path:
        """The record of all events."""
        return self.path / JOURNAL

    @property
    def store(self) -> Store:
        """Backups of every file that the session wrote or will write."""
        return Store(self.path / "backup")

    @property
    def workspace(self) -> Path:
        """The workspace that the folder lies in (scratch/debug/<session>)."""
        return self.path.parents[len(SCRATCH.parts)]

    @contextlib.contextmanager
    def locked(self, wait: float = LOCK_SECONDS) -> Iterator[BaseFileLock]:
        """Hold the session alone. Raises SessionBusy after `wait` seconds, NoSuchSession where there is none."""
        if not self.journal.is_file():
            raise NoSuchSession(f"no session in {self.path}: `traindx sessions` lists those that there are")
        if not _is_marked(self.path):
            raise NotOurSession(f"{self.path} does not bear the mark of a session (the sticky bit of its folder): a "
                                "command of a coding agent may have made it. If it is yours, "
                                f"`chmod +t {self.path}` marks it, which no such command can")
        lock = FileLock(str(self.path / ".lock"), thread_local=False)
        try:
            lock.acquire(timeout=wait)
        except Timeout as error:
            raise SessionBusy(f"session {self.path.name} is driven by another process: wait for it, "
                              "or end it") from error
        except OSError as error:
            raise StateNotWritable(self.path / ".lock", error) from error
        try:
            yield lock
        finally:
            lock.release()

    @property
    def is_driven(self) -> bool:
        """Whether a live process holds the session; the kernel gives the lock of a killed one back.

        Looking creates nothing. Where the lock cannot be looked at (another user's), the journal's word stands.
        """
        try:
            file = os.open(self.path / ".lock", os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        except OSError:
            return True
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)  # shared: two that look do not take each other for one
        except OSError:
            return True
        finally:
            os.close(file)
        return False

    def save_fingerprint(self, fingerprint: Fingerprint) -> None:
        """Keep what the workspace holds, for the comparison after a restart."""
        content = json.dumps({"files": fingerprint.files, "skipped": fingerprint.skipped}, sort_keys=True)
        write_state(self.path / "workspace.json", content.encode("utf-8", "surrogatepass"))

    def forget_fingerprint(self) -> None:
        """The next turn takes the workspace as it finds it."""
        (self.path / "workspace.json").unlink(missing_ok=True)

    def saved_fingerprint(self) -> Fingerprint | None:
        """The last fingerprint that was kept, or None."""
        try:
            data = json.loads((self.path / "workspace.json").read_bytes().decode("utf-8", "surrogatepass"))
        except (OSError, ValueError):
            return None
        return Fingerprint(dict(data["files"]), tuple(data["skipped"]))


def new_folder(workspace: Path, opening: Mapping[str, Any]) -> SessionFolder:
    """Make a session's folder and write its first record. Raises NoPlaceForSession, StateNotWritable."""
    scratch = workspace / SCRATCH
    stamp = now().strftime("%Y%m%d-%H%M%S")
    name = f"{stamp}-{secrets.token_hex(3)}"
    folder = SessionFolder(scratch / name)
    if command_runs(str(workspace.resolve()), os.environ):
        raise SessionBusy(f"a coding agent's command runs in {workspace} that may write below {SCRATCH}: wait for it "
                          "to end, or end it")
    try:
        unlinked.made(folder.path)
        for part in ("evidence", "plots", "backup", "verify"):
            (folder.path / part).mkdir()
        folder.path.chmod(stat.S_IMODE(folder.path.stat().st_mode) | stat.S_ISVTX)
    except OSError as error:
        raise NoPlaceForSession(workspace, error) from error
    first = Opening.model_validate({**opening, "id": name, "workspace": str(workspace)})
    with Journal(folder.journal) as journal:
        journal.append("opened", first.to_json())
    remember(workspace)
    return folder


def _is_marked(folder: Path) -> bool:
    """True for a folder that `new_folder` made; where there is no runner, nothing else needs to be told apart."""
    return not sys.platform.startswith("linux") or bool(folder.stat().st_mode & stat.S_ISVTX)


def opening_of(records: Iterable[Record]) -> Opening:
    """The first record, with the terms that later turns changed.

    Raises JournalDamaged where it is missing or of another format.
    """
    listed = list(records)
    first = listed[0] if listed else None
    if first is None or first.kind != "opened" or first.body.get("format") != FORMAT:
        raise JournalDamaged(f"the journal does not begin with an opening record of format {FORMAT}: "
                             "start a new session")
    terms = {k: v for r in listed if r.kind == "terms" for k, v in r.body.items()}
    return Opening.model_validate({**first.body, **terms})


def replay(records: Iterable[Record]) -> Session:
    """The session that the records add up to. Raises JournalDamaged or IllegalTransition."""
    listed = list(records)
    opening = opening_of(listed)
    session = Session(id=opening.id, symptom=opening.symptom, artifacts=opening.artifacts)
    for event in events_of(listed):
        session = advance(session, event)
    return session


def events_of(records: Iterable[Record]) -> Iterator[Event]:
    """The events among the records. Raises JournalDamaged."""
    return (_event(r) for r in records if r.kind == "event")


def _event(record: Record) -> Event:
    try:
        return EVENTS.validate_python(dict(record.body))
    except ValidationError as error:
        raise JournalDamaged(f"record {record.number} is no event of this version of traindx: {error}") from error


def find_session(session: str | Path, workspace: Path | None = None) -> SessionFolder:
    """A session by its folder, its id, or the unambiguous beginning of its id. Raises NoSuchSession.

    Without a workspace the current folder is looked in first, then every folder that this user began sessions in.
    """
    path = arguments.path("session", session, "the folder or the id of a session (`traindx sessions` lists them)")
    if (path / JOURNAL).is_file():
        return SessionFolder(path.absolute())
    scratch = (workspace or Path.cwd()).absolute() / SCRATCH
    name = str(session)
    found = _beginning(name, scratch)
    if not found and workspace is None:
        found = [f for known in known_folders() for f in _beginning(name, known / SCRATCH)]
    if len(found) == 1:
        return SessionFolder(found[0])
    told = f"{len(found)} sessions begin with it" if found else "there is none"
    raise NoSuchSession(f"no session {name!r} in {scratch}: {told}. `traindx sessions` lists those of this folder, and "
                        "with --all those of the others; for another one give --workspace FOLDER.")


def _beginning(name: str, scratch: Path) -> list[Path]:
    """Session folders whose name begins so."""
    return [f for f in folders(scratch) if f.name.startswith(name)] if name and os.sep not in name else []


def folders(scratch: Path) -> list[Path]:
    """Session folders below scratch/debug, the oldest first."""
    return sorted(p.parent for p in scratch.glob(f"*/{JOURNAL}"))


FOLDERS_LOOKED_AT = 500


def below(folder: Path) -> list[Path]:
    """Workspaces with sessions one or two levels below a folder; so many folders are looked at."""
    near = (p for pattern in ("*/", "*/*/") for p in folder.glob(pattern))
    return [p for p in islice(near, FOLDERS_LOOKED_AT) if p.name[:1] != "." and folders(p / SCRATCH)]


def read_session(folder: SessionFolder) -> Session:
    """The session as it is on disk, without locking or changing anything."""
    return replay(read_journal(folder.journal))
