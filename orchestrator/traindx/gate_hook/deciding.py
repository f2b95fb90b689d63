"""What a decision of the person, or the end of a verification, does to the state. Each function is one transition."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

from traindx.gate_hook.state import Approval, Option, Original, Place, Shown, State, Strike
from traindx.gate_hook.store import mark_of
from traindx.scratch import LEDGER
from traindx.strike_levels import STRIKES_OUT, level
from traindx.unseen import escaped

Outcome = tuple[State, str]
"""The new state, and what the person and the agent are told."""

KEPT_AT_MOST = 8 * 2**20
"""Bytes of one file that an approval keeps to compare with and to restore."""

NAMED_AT_MOST = 200
"""Characters of a new text beside its place; the diagnosis shows all of it."""


def now() -> str:
    """The present moment, UTC."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def new_state(workspace: str, old: State | None) -> State:
    """A session that begins; the strikes of earlier ones stay, for they belong to the workspace."""
    begun = now()
    state = State(workspace, f"{begun}-{os.getpid()}", begun)
    return state if old is None else state._replace(strikes=old.strikes)


def overlap(one: tuple[Place, ...], other: tuple[Place, ...]) -> bool:
    """True where two changes touch a common line of a common file, as the ledger of strikes counts it."""
    return any(p == q and a <= max(d, c) and c <= max(b, a) for p, a, b in one for q, c, d in other)


def strikes_against(state: State, option: Option) -> tuple[Strike, ...]:
    """The strikes of this workspace that the option would be a variation of."""
    return tuple(s for s in state.strikes if overlap(s.places, option.places))


def approve(state: State, shown: Shown | None, name: str, by: str) -> Outcome:
    """The person approved an option of what was shown."""
    if shown is None:
        return state, ("not approved: no complete diagnosis was shown in this conversation. Show one in Gate 4 form: "
                       "six sections, a cause with path:line, options that name path:line")
    if not name and len(shown.options) > 1:
        return state, 'not approved yet: say which option, "approve A" or "approve B"'
    option = shown.option(name or shown.options[0].option)
    if option is None:
        return state, f"not approved: the diagnosis offers no option {name}"
    last = state.approval
    if last is not None and last.left and not last.passed:
        return state, ('not approved: the fix that was approved before was not verified. Run its verification, or the '
                       'person says "the fix works" or "the fix failed"')
    against = strikes_against(state, option)
    if len(against) >= STRIKES_OUT:
        return state._replace(phase="halted"), _out(against)
    baseline = dict(_texts(state.workspace, option))
    edits = tuple(_originals(option, baseline))
    approval = Approval(shown.digest, shown.cause, option._replace(edits=edits), by, baseline, {})
    return state._replace(phase="fix", approval=approval, shown=shown), (
        f"option {option.option} of diagnosis {shown.digest} is approved ({by}): {named(option)} may be changed, "
        f"nothing else. Apply it, then verify{_commands(option)}")


def named(option: Option) -> str:
    """The places of an option, each with the text that it may get where one was shown."""
    return ", ".join(_named(option, place) for place in option.places)


def _named(option: Option, place: Place) -> str:
    path, first, last = place
    where = f"{path} (new)" if last < first else f"{path}:{first}" if first == last else f"{path}:{first}-{last}"
    shown = [line for b in option.bound if (b.path, b.first, b.last) == place for line in b.lines]
    if shown:
        return f"{where} (to {cut(' | '.join(shown), NAMED_AT_MOST)})"
    deleted = any((b.path, b.first, b.last) == place for b in option.bound)
    return f"{where} (deleted)" if deleted else f"{where} (no new text was shown: each edit is put to the person)"


def cut(text: str, most: int) -> str:
    """The beginning of a text, with how much of it is left out; what nobody sees stands as its escape."""
    said = escaped(text, keep="")
    return said if len(said) <= most else f"{said[:most]} ... and {len(said) - most} more characters, which the " \
        "diagnosis shows"


def _commands(option: Option) -> str:
    return " with exactly: " + "; ".join(escaped(one) for one in option.verify) if option.verify else (
        " and ask the person: the option names no command")


def _texts(workspace: str, option: Option) -> Iterator[tuple[str, str | None]]:
    for path in option.files:
        real = Path(workspace, path)
        if real.is_file() and real.stat().st_size <= KEPT_AT_MOST:
            yield path, real.read_bytes().decode("utf-8", "surrogateescape")
        elif not real.exists():
            yield path, None


def _originals(option: Option, baseline: dict[str, str | None]) -> Iterator[Original]:
    for path, first, last in option.places:
        lines = (baseline.get(path) or "").replace("\r\n", "\n").split("\n")
        yield Original(path, "\n".join(lines[first - 1:last]))


def edited(state: State, path: str) -> State:
    """An approved edit was made: the file's content is remembered by its mark."""
    approval = state.approval
    if state.phase != "fix" or approval is None:
        return state
    root = os.path.realpath(state.workspace)
    relative = os.path.relpath(os.path.realpath(path), root).replace(os.sep, "/")
    if relative not in approval.option.files:
        return state
    mark = mark_of(Path(root, relative).read_bytes())
    return state._replace(approval=approval._replace(left={**approval.left, relative: mark}, passed=False))


def passed(state: State) -> Outcome:
    """The verification of the approved fix ended well."""
    if state.approval is None:
        return state, "there is no approved fix that could be verified"
    return state._replace(approval=state.approval._replace(passed=True)), (
        "the verification ended with exit code 0. That proves nothing by itself: compare the metric that should move, "
        "before and after, show both, and let the person close the debug session")


def strike(state: State, learned: str) -> Outcome:
    """The fix failed its verification: it is taken back, counted, and nothing is approved any more."""
    approval = state.approval
    if approval is None or not approval.left:
        return state, "there is no applied fix that could have failed"
    kept = _restore(state.workspace, approval)
    one = Strike(f"{state.session}/{len(state.strikes) + 1}", approval.cause, approval.option.places, learned[:400])
    after = state._replace(phase="gather", approval=None, shown=None, strikes=(*state.strikes, one))
    _into_ledger(state.workspace, one, approval)
    against = strikes_against(after, approval.option)
    note = f" Not restored, because somebody else changed it since: {', '.join(kept)}." if kept else ""
    if len(against) >= STRIKES_OUT:
        return after._replace(phase="halted"), f"the fix failed and was taken back.{note} {_out(against)}"
    count = level(len(against))
    return after, f"the fix failed its verification and was taken back.{note} {count.title.capitalize()}. {count.rule}"


def _out(against: tuple[Strike, ...]) -> str:
    tried = "; ".join(f"[{n}] {s.cause}: {s.learned}" for n, s in enumerate(against, 1))
    return (f"{len(against)} fixes of this approach failed: {tried}. No further variation is tried. Say what they "
            f"rule out "
            'and ask. The person decides: "try a different approach", or "reopen the approach because ..."')


def _restore(workspace: str, approval: Approval) -> list[str]:
    """Put the files back as they were; returns those that somebody else has changed meanwhile, which stay."""
    kept = []
    for path, mark in approval.left.items():
        real, before = Path(workspace, path), approval.baseline.get(path)
        if not real.is_file() or mark_of(real.read_bytes()) != mark:
            kept.append(path)
        elif before is None:
            real.unlink()
        else:
            real.write_bytes(before.encode("utf-8", "surrogateescape"))
    return kept


def _into_ledger(workspace: str, one: Strike, approval: Approval) -> None:
    """The strike in the workspace's ledger, where `traindx debug` counts as well."""
    entry = {"kind": "strike", "key": one.key, "summary": one.cause[:200], "places": one.places,
             "approach": {"failure_mode": one.cause[:120] or "unnamed", "component": ", ".join(approval.option.files)},
             "originals": [e.original for e in approval.option.edits], "learned": [one.learned], "at": now()}
    from traindx_tools import unlinked  # a strike is seldom, and what the package imports takes its time

    try:
        unlinked.append(Path(workspace) / LEDGER, json.dumps(entry, sort_keys=True) + "\n")
    except OSError:
        return  # the gate's own state counts; the ledger is the other face's view of it


def different(state: State) -> Outcome:
    """After three strikes: another approach. What failed stays refused."""
    if state.phase != "halted":
        return state, "no approach has three strikes"
    return state._replace(phase="gather", shown=None, approval=None), (
        "the person chose a fundamentally different approach: lines that three fixes have failed on stay refused. "
        "Begin again with hypotheses, and show a new diagnosis")


def reopen(state: State, reason: str) -> Outcome:
    """The person reopens an approach, and says why."""
    if not reason:
        return state, 'not reopened: say what is different now ("reopen the approach because ...")'
    return state._replace(phase="gather", strikes=(), shown=None, approval=None), (
        f"the person reopened the approach: {reason[:200]}. Show a new diagnosis")
