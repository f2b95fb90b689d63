"""Apply an approved change, and take it back exactly.

Bytes are kept as they are: line ends, a missing final newline, a byte-order mark, the permission bits. Before anything
is written, the old and the new content of every file lie in the session's store, and the journal names their hashes:
after a kill, a file's own hash tells whether it was written. A file that the user changed meanwhile is never
overwritten: an apply is refused, and a revert takes back only the lines of the fix, or refuses.
"""

from __future__ import annotations

import codecs
import contextlib
import hashlib
import os
import re
import shlex
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher, unified_diff
from itertools import pairwise
from pathlib import Path

from traindx.durable import StateNotWritable, sync_folder, write_durably, write_state
from traindx.model import Model, ProposedEdit
from traindx.workspace import editable
from traindx_tools.errors import TraindxError

PATCHED_UP_TO = 20 * 2**20
"""Bytes; source files are far smaller."""

_COOKIE = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)", re.MULTILINE)


class PatchRefused(TraindxError):
    """A change cannot be applied or taken back without risk: the message shows why. Nothing was written."""


class ReadOnlyFile(PatchRefused):
    """The file may not be written: the message says which, and how to allow it."""


class FileState(Model):
    """One file of a change: hashes of its content before and after; None where it does not exist."""

    path: str
    before: str | None
    after: str | None
    mode: int = 0o644


class Store:
    """File contents by sha256, in the session's folder: backups of what was there and of what was put there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, content: bytes) -> str:
        """Keep the content durably; returns its hash. Raises StateNotWritable."""
        digest = hashlib.sha256(content).hexdigest()
        if not (self.folder / digest).exists():
            write_state(self.folder / digest, content)
        return digest

    def get(self, digest: str) -> bytes:
        """The content with this hash. Raises PatchRefused where it is gone or damaged."""
        path = self.folder / digest
        content = path.read_bytes() if path.is_file() else b""
        if hashlib.sha256(content).hexdigest() != digest:
            raise PatchRefused(f"the backup {path} is missing or damaged: restore the file from your own backup or git")
        return content


@dataclass(frozen=True)
class _Line:
    text: bytes
    end: bytes


def _lines(content: bytes) -> list[_Line]:
    out = []
    for raw in _split_on_newline(content):
        text = raw.rstrip(b"\n")
        cut = text[:-1] if raw.endswith(b"\r\n") else text
        out.append(_Line(cut, raw[len(cut):]))
    return out


def _split_on_newline(content: bytes) -> list[bytes]:
    parts = content.split(b"\n")
    return [p + b"\n" for p in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def _texts(value: str) -> list[str]:
    """The lines of an edit's text; a final line end adds none."""
    if not value:
        return []
    return value.replace("\r\n", "\n").removesuffix("\n").split("\n")


def _encoding(content: bytes) -> str:
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        cookie = _COOKIE.search(b"\n".join(content.split(b"\n", 2)[:2]))
        name = cookie[1].decode("ascii", "replace") if cookie else "latin-1"
        try:
            return codecs.lookup(name).name
        except LookupError:
            return "latin-1"
    return "utf-8"


def _matches(line: _Line, text: str, encoding: str) -> bool:
    bare = line.text.removeprefix(codecs.BOM_UTF8)
    return text in (bare.decode(encoding, "replace"), bare.decode("utf-8", "replace"))


def _edited(path: str, content: bytes, edits: Sequence[ProposedEdit]) -> bytes:
    """The content after all edits of one file, given by the line numbers of `content`."""
    lines = _lines(content)
    encoding = _encoding(content)
    ends = [ln.end for ln in lines if ln.end]
    usual = b"\r\n" if ends.count(b"\r\n") * 2 > len(ends) else b"\n"
    ordered = sorted(edits, key=lambda e: (e.line, e.end_line))
    for one, two in pairwise(ordered):
        if two.line <= one.end_line or (two.line, two.end_line) == (one.line, one.end_line):
            raise PatchRefused(f"{path}: two edits overlap at line {two.line}")
    for edit in reversed(ordered):
        lines = _replace(path, lines, edit, encoding, usual)
    return b"".join(ln.text + ln.end for ln in lines)


def _replace(path: str, lines: list[_Line], edit: ProposedEdit, encoding: str, usual: bytes) -> list[_Line]:
    start, stop = edit.line - 1, edit.end_line
    if stop > len(lines) or start > len(lines):
        raise PatchRefused(f"{path}: the fix is for lines {edit.line}-{edit.end_line}, the file has {len(lines)} now")
    old = lines[start:stop]
    if old != [] or edit.original:
        _expect(path, edit, old, encoding)
    end = old[0].end or usual if old else usual
    try:
        new = [_Line(t.encode(encoding), end) for t in _texts(edit.replacement)]
    except UnicodeEncodeError as error:
        lacking = error.object[error.start]
        raise PatchRefused(f"{path}: the file is in {encoding}, which cannot hold {lacking!r}") from error
    marked = start == 0 and bool(lines) and lines[0].text.startswith(codecs.BOM_UTF8)
    head, tail = lines[:start], lines[stop:]
    result = _joined(head, new, tail, ends_open=bool(lines) and not lines[-1].end, end=end)
    return _marked(result) if marked else result


def _expect(path: str, edit: ProposedEdit, old: list[_Line], encoding: str) -> None:
    """Raise PatchRefused, with a diff, unless the lines hold what the edit was made for."""
    expected = edit.original.replace("\r\n", "\n").split("\n")
    if len(expected) == len(old) + 1 and not expected[-1]:
        expected.pop()
    if len(expected) != len(old) or not all(_matches(ln, t, encoding) for ln, t in zip(old, expected, strict=True)):
        raise PatchRefused(_stale(path, edit, expected, [ln.text.decode(encoding, "replace") for ln in old]))


def _marked(lines: list[_Line]) -> list[_Line]:
    """The byte-order mark on the first line and nowhere else."""
    bare = [_Line(ln.text.removeprefix(codecs.BOM_UTF8), ln.end) for ln in lines[:2]]
    return [_Line(codecs.BOM_UTF8 + bare[0].text, bare[0].end), *bare[1:], *lines[2:]] if bare else []


def _joined(head: list[_Line], new: list[_Line], tail: list[_Line], *, ends_open: bool, end: bytes) -> list[_Line]:
    """Put the parts together; where the file had no final newline, its last line still has none."""
    if not new or tail or not ends_open:
        return [*head, *new, *tail]
    closed = [*head[:-1], _Line(head[-1].text, head[-1].end or end)] if head else []
    return [*closed, *new[:-1], _Line(new[-1].text, b"")]


def _stale(path: str, edit: ProposedEdit, expected: list[str], found: list[str]) -> str:
    shown = "\n".join(list(unified_diff(expected, found, "approved against", "in the file now", lineterm=""))[:40])
    return f"{path}:{edit.line}: the text that the fix was made for is no longer there.\n{shown}"


def _read(real: Path) -> tuple[bytes | None, int]:
    try:
        info = real.stat()
    except FileNotFoundError:
        return None, 0o644
    if not stat.S_ISREG(info.st_mode) or info.st_size > PATCHED_UP_TO:
        raise PatchRefused(f"{real}: only regular files up to {PATCHED_UP_TO // 2**20} MiB are changed")
    return real.read_bytes(), stat.S_IMODE(info.st_mode)


def _hash(content: bytes | None) -> str | None:
    return None if content is None else hashlib.sha256(content).hexdigest()


def plan(workspace: Path, edits: Iterable[ProposedEdit], store: Store | None = None) -> tuple[FileState, ...]:
    """What the edits make of the files, kept in `store` where one is given; the workspace is only read.

    Raises PathRefused or PatchRefused: a path leads out, the text is not the expected one, edits overlap, the file is
    read-only or not a regular file.
    """
    by_file: dict[Path, list[ProposedEdit]] = {}
    for edit in edits:
        by_file.setdefault(editable(workspace, edit.path), []).append(edit)
    states = []
    for real, its in by_file.items():
        path = real.relative_to(workspace.resolve()).as_posix()
        before, mode = _read(real)
        if before is None and not real.parent.is_dir():
            raise PatchRefused(f"{path}: its folder does not exist")
        if before is None and (len(its) > 1 or (its[0].line, its[0].end_line) != (1, 0)):
            raise PatchRefused(f"{path}: the file does not exist")
        if before is not None and not (mode & 0o222 and os.access(real, os.W_OK)):
            raise ReadOnlyFile(f"{path} cannot be written, it is read-only: allow it with "
                               f"`chmod u+w {shlex.quote(_from_here(real))}`, or change it by hand")
        after = _edited(path, before or b"", its)
        if before is None and after and not after.endswith(b"\n"):
            after += b"\n"
        if store is not None:
            for content in (before, after):
                if content is not None:
                    store.put(content)
        states.append(FileState(path=path, before=_hash(before), after=_hash(after), mode=mode))
    return tuple(states)


def preview(workspace: Path, edits: Iterable[ProposedEdit]) -> dict[str, tuple[bytes, bytes]]:
    """Each file's content before and after the edits, by its path in the workspace; nothing is written or kept.

    Raises PathRefused or PatchRefused as `plan` does.
    """
    by_file: dict[Path, list[ProposedEdit]] = {}
    for edit in edits:
        by_file.setdefault(editable(workspace, edit.path), []).append(edit)
    out = {}
    for real, its in by_file.items():
        path = real.relative_to(workspace.resolve()).as_posix()
        before = _read(real)[0] or b""
        out[path] = (before, _edited(path, before, its))
    return out


def _from_here(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def keep(workspace: Path, paths: Iterable[str], store: Store) -> tuple[FileState, ...]:
    """Files as they are now, kept in `store`: what a change by hand will be taken back to."""
    states = []
    for path in dict.fromkeys(paths):
        real = editable(workspace, path)
        content, mode = _read(real)
        if content is not None:
            store.put(content)
        digest = _hash(content)
        states.append(FileState(path=real.relative_to(workspace.resolve()).as_posix(), before=digest, after=digest,
                                mode=mode))
    return tuple(states)


def put(workspace: Path, states: Sequence[FileState], store: Store) -> None:
    """Bring every file from its `before` to its `after`; those that are there already stay.

    All files are checked before the first is written. Raises PatchRefused where one is neither; StateNotWritable where
    the disk refuses, after the files written so far were put back.
    """
    found = {s.path: _hash(_read(editable(workspace, s.path))[0]) for s in states}
    strangers = [s.path for s in states if found[s.path] not in (s.before, s.after)]
    if strangers:
        raise PatchRefused(f"changed since the approval, and left alone: {', '.join(strangers)}")
    written: list[FileState] = []
    for s in states:
        if found[s.path] == s.after:
            continue
        try:
            _write(editable(workspace, s.path), None if s.after is None else store.get(s.after), s.mode, store)
        except OSError as error:
            _put_back(workspace, written, store)
            raise StateNotWritable(workspace / s.path, error) from error
        written.append(s)


def _put_back(workspace: Path, written: Sequence[FileState], store: Store) -> None:
    with contextlib.suppress(OSError):  # the disk refused already; a resume finishes by the files' hashes
        for s in written:
            _write(editable(workspace, s.path), None if s.before is None else store.get(s.before), s.mode, store)


def _write(real: Path, content: bytes | None, mode: int, store: Store) -> None:
    if content is None:
        real.unlink(missing_ok=True)
        sync_folder(real.parent)
        return
    same_device = store.folder.stat().st_dev == real.parent.stat().st_dev
    write_durably(real, content, mode=mode, staging=store.folder if same_device else None)


def plan_revert(workspace: Path, states: Sequence[FileState], store: Store) -> tuple[FileState, ...]:
    """From what the files hold now to what they hold without the fix, for `put`.

    Where the user changed a file after the fix, only the fix's own lines are taken back. Raises PatchRefused where the
    user's change touches those lines; both versions are then in the store, and nothing is written.
    """
    out = []
    conflicts = []
    for s in states:
        content, mode = _read(editable(workspace, s.path))
        current = _hash(content)
        if current in (s.before, s.after):
            out.append(FileState(path=s.path, before=current, after=s.before, mode=mode if content else s.mode))
            continue
        if content is not None:
            store.put(content)
        merged = _without_fix(s, content, store)
        if merged is None:
            conflicts.append(s.path)
        else:
            out.append(FileState(path=s.path, before=current, after=store.put(merged), mode=mode))
    if conflicts:
        raise PatchRefused(f"cannot take the fix back: {', '.join(conflicts)} changed in the same lines since. Your "
                           "version is left as it is; put the old lines back by hand (the old content is in "
                           f"{store.folder}), then resume.")
    return tuple(out)


def _without_fix(s: FileState, content: bytes | None, store: Store) -> bytes | None:
    if content is None or s.before is None or s.after is None:
        return None
    return undo(store.get(s.before), store.get(s.after), content)


def undo(before: bytes, after: bytes, current: bytes) -> bytes | None:
    """`current` with the change from `before` to `after` taken back; None where later changes touch its lines."""
    if current == after:
        return before
    old, new, now = (_split_on_newline(c) for c in (before, after, current))
    if max(len(old), len(new), len(now)) > 20_000:
        return None
    kept = [b for b in SequenceMatcher(None, new, now, autojunk=False).get_matching_blocks() if b.size]
    result = list(now)
    hunks = [o for o in SequenceMatcher(None, old, new, autojunk=False).get_opcodes() if o[0] != "equal"]
    for _, old_start, old_stop, start, stop in reversed(hunks):
        # One untouched line on each side (or the file's border) makes the place certain.
        low, high = max(start - 1, 0), min(stop + 1, len(new))
        block = next((b for b in kept if b.a <= low and high <= b.a + b.size), None)
        if block is None:
            return None
        shift = block.b - block.a
        result[start + shift:stop + shift] = old[old_start:old_stop]
    return b"".join(result)
