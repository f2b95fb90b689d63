"""The window of a gradient accumulation is filled within one pass.

`if (i + 1) % accumulate == 0: optimizer.step()` with the index of the loop over batches begins anew in every epoch.
Where an epoch has fewer micro-batches than the window, the condition never holds: backward runs, gradients exist, and
no step is ever taken. Told where the length of the data and the window are known, and nothing else steps the optimizer.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.invariants.breach import Breach, pages
from traindx_tools.program.conditions import Condition, Situation
from traindx_tools.program.known import Known
from traindx_tools.program.moments import Act, Section, conditions_within, training_loop
from traindx_tools.program.program import Program
from traindx_tools.program.timeline import Moment

RULES = pages("step_order", ("C280",))
MOST_TURNS = 50_000


def check(program: Program) -> Iterator[Breach]:
    """Look at every step under a condition on the index of its loop."""
    for run in program.runs:
        steps = run.acts(Moment.STEP)
        for act, path in steps:
            loop = training_loop(path)
            if loop is None or not loop.turns or loop.turns > MOST_TURNS:
                continue
            window = next((c for c in conditions_within(path, loop) if _is_never_met(c, loop.turns)), None)
            if window is None or _nearest(path) is not loop:
                continue
            own = set(map(id, act.optimizers))
            if not any(str(a.at) != str(act.at) and own & set(map(id, a.optimizers)) for a, _ in steps):
                yield _breach(act, loop, window)


def _nearest(path: tuple[Section, ...]) -> Section | None:
    """The loop whose index a condition asks for."""
    return next((s for s in reversed(path) if s.kind == "loop"), None)


def _is_never_met(condition: Condition, turns: int) -> bool:
    """Whether a window of known length holds at no turn of the loop."""
    atoms = list(condition.atoms())
    if len(atoms) != 1 or atoms[0].kind != "every" or not atoms[0].of_loop:
        return False
    length = _length(atoms[0])
    return length is not None and length > turns and not any(
        condition.holds(Situation(t, t == turns - 1, {}, {atoms[0].key: length})) for t in range(turns))


def _length(window: Condition) -> int | None:
    key = window.key
    return key[1] if isinstance(key, tuple) and isinstance(key[1], int) else None


def _breach(act: Act, loop: Section, window: Condition) -> Breach:
    size = _length(next(window.atoms()))
    return Breach(
        "C280",
        f"{act.owner or act.name or 'the optimizer'}.step() at {act.at}: {window.text or 'its condition'} never holds: "
        f"the index begins at 0 in every pass and a pass has {loop.turns} micro-batches, fewer than the window of "
        f"{size}, so the optimizer is never stepped",
        act.at, Known.DERIVED, {"kind": "never", "window": size, "batches": loop.turns})
