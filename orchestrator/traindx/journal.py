"""The append-only record of a session: one JSON object a line, numbered, chained by hash, forced to disk.

A record is there whole or not at all: a last line that a kill tore is cut off when the journal is opened for writing.
A damaged or altered line anywhere else is an error, because nothing after it can be trusted.

Side effects happen once: `begin(key)` is written before, `finish(key)` after. Where a begin has no finish, the effect
may or may not have happened; whoever resumes looks at the world (a file's hash, a result on disk) to know.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from traindx.durable import StateNotWritable, sync, sync_folder
from traindx.model import now
from traindx_tools.errors import TraindxError

_GENESIS = "0" * 64


class JournalDamaged(TraindxError):
    """A line of the journal, other than a torn last one, is not what was written."""


@dataclass(frozen=True)
class Record:
    """One line: its number (from 1), when, what kind, and the content."""

    number: int
    at: str
    kind: str
    body: Mapping[str, Any]
    digest: str


def _canonical(value: Mapping[str, Any]) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def _digest(previous: str, content: Mapping[str, Any]) -> str:
    return hashlib.sha256((previous + _canonical(content)).encode("ascii")).hexdigest()


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def _parse(line: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(line, parse_constant=_refuse)
    except (ValueError, RecursionError):  # no JSON; NaN, which we never write; nested deeper than anything of ours
        return None
    return value if isinstance(value, dict) and value.keys() == {"n", "at", "kind", "body", "hash"} else None


def _check(path: Path, value: dict[str, Any], number: int, previous: str) -> Record:
    content = {k: value[k] for k in ("n", "at", "kind", "body")}
    if value["n"] != number or value["hash"] != _digest(previous, content):
        raise JournalDamaged(f"{path}:{number}: the record was altered, or one before it is missing. Start a new "
                             "session; the workspace's backups are in this session's folder.")
    return Record(number, value["at"], value["kind"], value["body"], value["hash"])


def _scan(path: Path, data: bytes) -> tuple[list[Record], int]:
    """The records, and how many bytes of the file they fill; anything after that is a torn last line."""
    records: list[Record] = []
    good = 0
    lines = data.split(b"\n")
    for index, line in enumerate(lines[:-1]):
        value = _parse(line)
        if value is None:
            if index == len(lines) - 2 and not lines[-1]:
                break
            raise JournalDamaged(f"{path}:{index + 1}: not a journal record: {line[:80]!r}")
        records.append(_check(path, value, index + 1, records[-1].digest if records else _GENESIS))
        good += len(line) + 1
    return records, good


def read_journal(path: Path) -> list[Record]:
    """The records on disk, without changing anything. Raises JournalDamaged, or FileNotFoundError where none is."""
    return _scan(path, path.read_bytes())[0]


class Journal:
    """An open journal. Hold the session's lock while one is open: two writers would break the chain."""

    def __init__(self, path: Path) -> None:
        """Open or create. A torn last line is cut off. Raises StateNotWritable or JournalDamaged."""
        self.path = path
        try:
            created = not path.exists()
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
            data = path.read_bytes()
            self.records, self._size = _scan(path, data)
            if len(data) > self._size:
                os.ftruncate(self._fd, self._size)
            if created:
                sync_folder(path.parent)
        except OSError as error:
            raise StateNotWritable(path, error) from error

    def append(self, kind: str, body: Mapping[str, Any]) -> Record:
        """Write one record and wait until the disk has it. Raises StateNotWritable; then nothing was recorded."""
        number = len(self.records) + 1
        content: dict[str, Any] = {"n": number, "at": now().isoformat(), "kind": kind, "body": dict(body)}
        previous = self.records[-1].digest if self.records else _GENESIS
        digest = _digest(previous, content)
        line = (_canonical({**content, "hash": digest}) + "\n").encode("ascii")
        try:
            self._write(line)
        except OSError as error:
            self._undo()
            raise StateNotWritable(self.path, error) from error
        self._size += len(line)
        record = Record(number, content["at"], kind, json.loads(_canonical(content["body"])), digest)
        self.records.append(record)
        return record

    def _write(self, line: bytes) -> None:
        view = memoryview(line)
        while view:
            view = view[os.write(self._fd, view):]
        sync(self._fd)

    def _undo(self) -> None:
        """Take back half a record. If even that fails, opening the journal again does it."""
        try:
            os.ftruncate(self._fd, self._size)
        except OSError:
            return

    def begin(self, key: str, **facts: Any) -> None:
        """Record that an effect is about to happen, with what is needed to tell later whether it did."""
        self.append("begin", {"key": key, **facts})

    def finish(self, key: str, **result: Any) -> None:
        """Record that the effect happened."""
        self.append("finish", {"key": key, **result})

    def begun(self, key: str) -> Mapping[str, Any] | None:
        """The facts of the last begin of this effect, or None."""
        return _last(self.records, "begin", key)

    def finished(self, key: str) -> Mapping[str, Any] | None:
        """The result of this effect, or None while it is not known to have happened."""
        return _last(self.records, "finish", key)

    def close(self) -> None:
        """Close the file; idempotent."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()


def _last(records: Iterable[Record], kind: str, key: str) -> Mapping[str, Any] | None:
    found = [r.body for r in records if r.kind == kind and r.body.get("key") == key]
    return found[-1] if found else None
