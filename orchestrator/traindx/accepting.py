"""After a halt: which files are accepted as they are, and what an accepted change makes of a fix that stands.

A person accepts what the halt named, as it is now; whatever else changed since halts again. A file that is as before
needs no word. Where an accepted change lies in a file that holds the fix, the fix is from now on the difference to that
file without it: the comparison has the person's edit on both sides.
"""

from __future__ import annotations

from collections.abc import Collection

from traindx import events, patching
from traindx.as_known import applied_fix, as_fixed, changed_since, content_of
from traindx.journal import Journal, read_journal
from traindx.machine import Session, advance
from traindx.patching import FileState, PatchRefused
from traindx.session_folder import SessionFolder, opening_of
from traindx.workspace import Fingerprint, Fingerprinter, inside


def go_on_from(folder: SessionFolder, journal: Journal, session: Session, accept: bool) -> None:
    """Record that a halted or interrupted session goes on, with what is accepted.

    Raises IllegalTransition where files that a halt named are neither put back nor accepted; PatchRefused where one
    changed in the fix's own lines, and cannot be accepted with the fix in it.
    """
    halt = session.halt if session.phase == "halted" else None
    before = folder.saved_fingerprint()
    if halt is None or halt.halt != "workspace-changed" or before is None:
        accepted = halt.files if halt is not None and accept else ()
        _record(journal, session, events.Resumed(accepted=accepted))
        if accepted and before is not None:
            folder.save_fingerprint(before.taking(_now(folder, journal), set(accepted)))
        return
    now = _now(folder, journal)
    changed = set(changed_since(before, now, session, journal.records, folder))
    accepted = tuple(f for f in halt.files if f in changed) if accept else ()
    event = events.Resumed(accepted=accepted, put_back=tuple(f for f in halt.files if f not in changed))
    advance(session, event)
    if session.stands_in == "verify":
        on_top(folder, journal, session, accepted)
    _record(journal, session, event)
    folder.save_fingerprint(before.taking(now, set(accepted)))


def _now(folder: SessionFolder, journal: Journal) -> Fingerprint:
    return Fingerprinter(folder.workspace, opening_of(journal.records).unwatched).take()


def _record(journal: Journal, session: Session, event: events.Resumed) -> None:
    advance(session, event)
    journal.append("event", event.to_json())


def on_top(folder: SessionFolder, journal: Journal, session: Session, accepted: Collection[str]) -> None:
    """Record the applied fix as it is in files that changed since, and that are right as they are."""
    states = applied_fix(session, journal.records)
    if not accepted or all(s.path not in accepted for s in states):
        return
    fixed = [_with_edit(folder, s, session.id) if s.path in accepted else s for s in states]
    journal.finish(f"applied-{session.attempts[-1].number}", files=[s.to_json() for s in fixed])


def _with_edit(folder: SessionFolder, state: FileState, session: str) -> FileState:
    content = content_of(folder.workspace, state.path)
    without: bytes | None = None
    if content is not None and state.before is not None and state.after is not None:
        without = patching.undo(folder.store.get(state.before), folder.store.get(state.after), content)
    if content is None or (without is None and state.before is not None):
        raise PatchRefused(f"{state.path} changed in the same lines as the fix, so that it holds another change than "
                           f"the approved one: put them back, or take the fix out (traindx resume {session} --undo)")
    mode = inside(folder.workspace, state.path).stat().st_mode & 0o7777
    return FileState(path=state.path, before=None if without is None else folder.store.put(without),
                     after=folder.store.put(content), mode=mode)


def since_the_fix(folder: SessionFolder, session: Session) -> tuple[str, ...]:
    """That files hold something else than the fix made of them, in a sentence, for a person who judges it."""
    states = applied_fix(session, read_journal(folder.journal))
    other = [s.path for s in states if not as_fixed(folder, s)]
    return (f"{', '.join(other)} changed since the fix was made: what was checked is both",) if other else ()
