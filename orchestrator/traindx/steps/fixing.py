"""Apply the approved option: only it, only where it was approved, and so that a kill leaves a known state.

Also how a fix that failed is taken out again.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from pathlib import Path

from traindx import events, gate, patching
from traindx.as_known import applied_fix, begun_fix, content_of, decision_number, hash_of, states_of
from traindx.beside import FixUnderWay, fixed_meanwhile, one_fix_at_a_time, under_test, unsettled
from traindx.changed_files import KEPT_BESIDE
from traindx.hindrances import Change
from traindx.journal import read_journal
from traindx.machine import Session
from traindx.model import Attempt, Fix, ProposedEdit
from traindx.notices import Notice
from traindx.patching import FileState, PatchRefused, ReadOnlyFile
from traindx.session_folder import SessionFolder
from traindx.steps.made_of import is_as_diagnosed, not_as_diagnosed
from traindx.steps.old_run import remember_old_run
from traindx.steps.written import adopt
from traindx.turn import HaltRecorded, Interruption, Turn, in_thread
from traindx.workspace import PathRefused, inside

CHANGED_SINCE = "changed since the diagnosis: what was approved is not applied to other content than it was made of"


async def fix(turn: Turn) -> bool:
    """Bring the approved change into the workspace. False: a person must make it by hand."""
    try:
        with one_fix_at_a_time(turn.workspace):
            return await _fix(turn)
    except FixUnderWay as error:
        raise Interruption(str(error)) from error


async def _fix(turn: Turn) -> bool:
    diagnosis, decision = turn.session.diagnosis, turn.session.decision
    assert diagnosis is not None, "a fix follows a diagnosis"
    assert decision is not None, "a fix follows a decision"
    assert decision.option is not None, "an approval names an option"
    option = diagnosis.option(decision.option)
    assert option is not None, "the state machine checked the option"
    key = f"fix-{decision_number(turn.journal.records)}"
    hand = f"{key}-by-hand"
    begun = turn.journal.begun(key) or turn.journal.begun(hand)
    if begun is None and not await in_thread(_may_begin, turn, option):
        return True
    if begun is not None and "edits" in begun:
        await in_thread(_halt_with_the_fix_out, turn)
        edits = tuple(ProposedEdit.model_validate(e) for e in begun["edits"])
        return await in_thread(_apply, turn, key, option, edits)
    if not option.instructions:
        return await in_thread(_apply, turn, key, option, option.edits)
    if turn.fixer is not None and begun is None:
        edits = await turn.edits_of(turn.fixer, diagnosis, option)
        await in_thread(turn.halt_if_changed)
        return await in_thread(_apply, turn, key, option, edits)
    return await in_thread(_by_hand, turn, hand, option)


def _may_begin(turn: Turn, option: Fix) -> bool:
    diagnosis = turn.session.diagnosis
    assert diagnosis is not None, "a fix follows a diagnosis"
    refusal = turn.ledger.refusal(diagnosis, option)
    if refusal is not None:
        turn.record(events.ApprovalStale(reasons=(refusal,)))
        return False
    other = next(iter(under_test(turn.folder)), None)
    if other is not None:
        raise Interruption(unsettled(other))
    meanwhile, own = fixed_meanwhile(turn.folder), _files_of(turn, option)
    other_mode = [p for p in turn.changed() if p in own and is_as_diagnosed(turn, p)]
    if other_mode:
        turn.watch(only=other_mode)  # a read-only file is made writable, as the person is told
    changed = turn.changed()
    if meanwhile or set(changed) - own:
        turn.halt_for(changed, because=meanwhile)
    stale = tuple(sorted({*changed, *not_as_diagnosed(turn, own)}))
    if stale:
        _ask_anew(turn, stale, _refusal(turn, option))
    return not stale


def _refusal(turn: Turn, option: Fix) -> str:
    """Why the approved edits do not fit the files as they are, with the lines that differ; "" where they do."""
    try:
        patching.plan(turn.workspace, option.edits)
    except (PatchRefused, PathRefused) as error:
        return str(error)
    return ""


def _ask_anew(turn: Turn, files: Sequence[str], why: str = "") -> None:
    """The approval was for other content: the files are looked at again, and a person decides on what is found."""
    turn.watch(only=files)
    diagnosis = turn.session.diagnosis
    turn.asked -= {diagnosis.digest()} if diagnosis is not None else set()
    told = f"{', '.join(files)} {CHANGED_SINCE}" if files else ""
    meanwhile = fixed_meanwhile(turn.folder)
    in_brief = (told or why).split("\n", 1)[0].rstrip(": ")
    turn.hear(Notice("said", text=f"nothing was applied: {in_brief}. It is looked at again"))
    turn.record(events.ApprovalStale(reasons=tuple(filter(None, (meanwhile, told, why)))))


def _halt_with_the_fix_out(turn: Turn) -> None:
    """A process died while the fix was being written, and a file changed since: nothing more is written.

    Files that hold exactly the fix get back what they held; one that a person changed on top of it stays as it is.
    """
    if changed := turn.changed():
        _take_back(turn)
        halted = set(changed) & {s.path for s in begun_fix(turn.journal.records)}
        turn.halt_for(changed, f"the fix may stand in {', '.join(sorted(halted))}: --undo takes it out" if halted
                      else "the fix is not in the files")


def _files_of(turn: Turn, option: Fix) -> set[str]:
    """The files that the option names, as the fingerprint names them."""
    root = turn.workspace.resolve()
    return {inside(turn.workspace, p).relative_to(root).as_posix() for p, _, _ in option.places}


def _apply(turn: Turn, key: str, option: Fix, edits: Sequence[ProposedEdit]) -> bool:
    refused = gate.outside(option, edits)
    if refused or not edits:
        raise Interruption("edits outside the approval are refused: " + "; ".join(refused) if refused
                           else "the fixer gave no edits")
    try:
        begun = turn.journal.begun(key)
        if begun is None:
            states = patching.plan(turn.workspace, edits, turn.store)
            remember_old_run(turn)
            turn.halt_if_changed()  # reading the old run takes a while
            turn.journal.begin(key, edits=[e.to_json() for e in edits], files=[s.to_json() for s in states])
        else:
            states = states_of(begun["files"])
        patching.put(turn.workspace, states, turn.store)
    except ReadOnlyFile as error:
        raise Interruption(str(error)) from error
    except (PatchRefused, PathRefused) as error:
        _take_back(turn)
        own = _files_of(turn, option)
        _ask_anew(turn, sorted({*not_as_diagnosed(turn, own), *(own & set(turn.changed()))}), str(error))
        return True
    _halt_with_the_fix_out(turn)
    _applied(turn, option, states, edits)
    return True


def _take_back(turn: Turn) -> None:
    """Files that hold exactly the fix's content get back what they held; a file that the user changed stays."""
    written = [s for s in begun_fix(turn.journal.records) if _hash(turn.workspace, s.path) == s.after]
    patching.put(turn.workspace, patching.plan_revert(turn.workspace, written, turn.store), turn.store)


def _by_hand(turn: Turn, key: str, option: Fix) -> bool:
    """The person makes the change: remember the files, wait, and take over what they made of them."""
    begun = turn.journal.begun(key)
    if begun is None:
        kept = patching.keep(turn.workspace, [p for p, _, _ in option.places], turn.store)
        remember_old_run(turn)
        turn.halt_if_changed()
        turn.journal.begin(key, files=[s.to_json() for s in kept])
        return False
    before = states_of(begun["files"])
    now = patching.keep(turn.workspace, [s.path for s in before], turn.store)
    states = [b.model_copy(update={"after": n.after, "mode": n.mode}) for b, n in zip(before, now, strict=True)]
    if all(s.before == s.after for s in states):
        return False
    turn.halt_if_changed(but={s.path for s in states})
    seen = [(s.path, line, moved) for s in states for line, moved in _lines_outside(turn, option, s)]
    for note, wanted in (("outside_approval", False), ("moved_by_hand", True)):
        if told := [f"{path}:{line}" for path, line, moved in seen if moved is wanted]:
            turn.journal.append("note", {note: told})
    _applied(turn, option, states, ())
    return True


def waits_unedited(folder: SessionFolder, session: Session) -> bool:
    """True where the approved option waits for a person who changed nothing of its files yet."""
    fix = session.diagnosis.option(session.decision.option) if (
        session.diagnosis and session.decision and session.decision.option) else None
    begun = [r.body for r in read_journal(folder.journal)
             if r.kind == "begin" and str(r.body.get("key", "")).startswith("fix-")]
    if fix is None or not fix.instructions or not begun or "edits" in begun[-1]:
        return False
    return all(_hash(folder.workspace, s.path) == s.before for s in states_of(begun[-1]["files"]))


def _lines_outside(turn: Turn, option: Fix, state: FileState) -> list[tuple[int, bool]]:
    """Lines that the person changed beyond the approved ones: theirs to change, and shown.

    With whether they only hold what stands at another place of the file now: then the line is that of the new file.
    """
    if state.before is None or state.after is None:
        return []
    old, new = (turn.store.get(d).split(b"\n") for d in (state.before, state.after))
    if len(old) * len(new) > 10**8:
        return []
    changed = [c for c in SequenceMatcher(None, old, new, autojunk=False).get_opcodes() if c[0] != "equal"]
    covered = [gate.covers(option, state.path, start + 1, stop) for _, start, stop, _, _ in changed]
    went = {row.strip() for _, start, stop, _, _ in changed for row in old[start:stop]}
    came = {new[i].strip(): i for _, _, _, first, last in reversed(changed) for i in reversed(range(first, last))}
    found = []
    for within, (_, start, stop, first, last) in zip(covered, changed, strict=True):
        if not within:
            rows = {row.strip() for row in (*old[start:stop], *new[first:last])} - {b""}
            moved = bool(rows) and rows <= went & came.keys()
            found.append((min(came[row] for row in rows) + 1 if moved else start + 1, moved))
    return found


def _applied(turn: Turn, option: Fix, states: Sequence[FileState], edits: Sequence[ProposedEdit]) -> None:
    diagnosis = turn.session.diagnosis
    assert diagnosis is not None, "a fix follows a diagnosis"
    number = len(turn.session.attempts) + 1
    turn.journal.finish(f"applied-{number}", files=[s.to_json() for s in states])
    turn.watch(only=[s.path for s in states])
    turn.record(events.Applied(attempt=Attempt(
        number=number, diagnosis_digest=diagnosis.digest(), option=option.option, approach=diagnosis.approach,
        summary=option.summary, places=tuple((e.path, e.line, e.end_line) for e in edits) or option.places,
        originals=tuple(e.original for e in edits))))


def revert(turn: Turn) -> None:
    """Take the failed fix out, exactly; what the user changed since stays, or the session halts and says where."""
    attempt = turn.session.attempts[-1]
    if attempt.reverted:
        return
    try:
        files = _put_back(turn, f"revert-{attempt.number}")
    except (PatchRefused, PathRefused) as error:
        states, settled = applied_fix(turn.session, turn.journal.records), _settled_by_hand(turn)
        named = tuple(s.path for s in states if s.path not in settled)
        turn.record(events.Halted(halt="revert-conflict", reason=str(error), files=named))
        raise HaltRecorded from error
    turn.watch(only=[s.path for s in files])
    turn.record(events.Reverted(note=f"the fix is out of {', '.join(s.path for s in files) or 'every file'}"))


def _put_back(turn: Turn, key: str) -> tuple[FileState, ...]:
    """Write what the files held before the last fix; begun under `key`, so that a kill leaves a known state.

    Raises PatchRefused, PathRefused where the lines were changed since.
    """
    settled = _settled_by_hand(turn)
    files = tuple(s for s in applied_fix(turn.session, turn.journal.records) if s.path not in settled)
    begun = turn.journal.begun(key)
    states = states_of(begun["files"]) if begun else ()
    if begun is None or not _still_holds(turn.workspace, states):
        states = patching.plan_revert(turn.workspace, files, turn.store)
        turn.journal.begin(key, files=[s.to_json() for s in states])
    patching.put(turn.workspace, states, turn.store)
    if kept := [s.path for s in files if _hash(turn.workspace, s.path) != s.before]:
        turn.journal.append("note", {KEPT_BESIDE: kept})
    return files


def undo(turn: Turn, by: str, comment: str) -> None:
    """Take an unsettled fix out, exactly, and no more; the diagnosis waits again. Raises PatchRefused, PathRefused.

    What a person changed beside the fix's lines stays, and is another content than the diagnosis was made of.
    """
    if turn.session.stands_in == "fix":
        files = begun_fix(turn.journal.records)
        patching.put(turn.workspace, patching.plan_revert(turn.workspace, files, turn.store), turn.store)
    else:
        adopt(turn)
        files = _put_back(turn, _undo_key(turn))
    turn.watch(only=[s.path for s in files])
    turn.record(events.Undone(by=by, comment=comment))


def undo_begun(turn: Turn) -> bool:
    """Whether a kill came between taking the fix out and the record of it: the code as it is cannot be verified."""
    return turn.journal.begun(_undo_key(turn)) is not None


def _undo_key(turn: Turn) -> str:
    return f"undo-{turn.session.attempts[-1].number}"


def changes_of(turn: Turn, attempt: int) -> tuple[Change, ...]:
    """What an applied fix changed, file by file, as text."""
    applied = turn.journal.finished(f"applied-{attempt}") or {"files": []}

    def text(digest: str | None) -> str:
        return "" if digest is None else turn.store.get(digest).decode("utf-8", "replace")

    try:
        return tuple(Change(s.path, text(s.before), text(s.after)) for s in states_of(applied["files"]))
    except PatchRefused:  # a backup is gone: the revert says so, where one is needed
        return ()


def _settled_by_hand(turn: Turn) -> set[str]:
    """Files that the user says to have put right since the last fix was applied."""
    settled: set[str] = set()
    halt = ""
    for record in (r for r in turn.journal.records if r.kind == "event"):
        halt = str(record.body.get("halt", halt))
        if record.body["kind"] == "applied":
            settled, halt = set(), ""
        if record.body["kind"] == "resumed" and halt == "revert-conflict":
            settled |= set(record.body["accepted"])
    return settled


def _still_holds(workspace: Path, states: Sequence[FileState]) -> bool:
    """True while every file is where a begun change found it or left it."""
    return all(_hash(workspace, s.path) in (s.before, s.after) for s in states)


def _hash(workspace: Path, path: str) -> str | None:
    return hash_of(content_of(workspace, path))
