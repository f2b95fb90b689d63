"""An evaluation builds no graphs.

A model in eval mode that is called over and over while autograd records builds graphs for nothing, which costs memory
and time; where its outputs or losses are collected, the graphs stay alive and memory runs out. A pass whose gradients
are wanted (an attack, saliency, a frozen part that something behind it is trained through) is left alone, as are a
model of which nothing requires gradients and a loop that is left in its first turn.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Severity
from traindx_tools.invariants.breach import Breach, Remedy, pages
from traindx_tools.program.courses import passes_of
from traindx_tools.program.known import Known
from traindx_tools.program.moments import Act, Section, loops
from traindx_tools.program.program import Program
from traindx_tools.program.timeline import Moment

RULES = pages("graph", ("C105",))
_WANTED = frozenset({Moment.BACKWARD, Moment.GRADIENT, Moment.STEP, Moment.WRITTEN})


def check(program: Program) -> Iterator[Breach]:
    """Look at every pass in eval mode that is repeated."""
    told: set[tuple[str, str]] = set()
    for run in program.runs:
        if not {Moment.FORWARD, Moment.MODE} <= run.has:
            continue
        for act, path in run.acts(Moment.FORWARD):
            scope = next(s for s in reversed(path) if s.kind in ("call", "root"))
            around = loops(path[path.index(scope):])
            if not act.gradients or not around or _WANTED & around[-1].has or _is_wanted(scope, act):
                continue
            if around[-1].count == 1 or (act.models and all(m.frozen for m in act.models)):
                continue
            found = [c for scenario in passes_of(program, run, act) for c in scenario]
            key = str(scope.at), act.owner or str(act.at)
            if found and all(c.modes == {False} for c in found) and key not in told:
                told.add(key)
                yield _breach(act, scope, all(c.by is not None and c.by.at.function == act.at.function for c in found))


def _is_wanted(scope: Section, act: Act) -> bool:
    """Whether gradients are taken in the function behind the pass, of it or of what is not known."""
    if Moment.GRADIENT in scope.has or Moment.HANDED in scope.has:
        return True
    both = [a for a, _ in scope.acts(Moment.BACKWARD, Moment.FORWARD)]
    sent = [a for a in both[both.index(act):] if a.moment is Moment.BACKWARD]
    return any(not a.reached or not act.traces or a.traces & act.traces for a in sent)


def _breach(act: Act, scope: Section, asked_here: bool) -> Breach:
    """`asked_here`: the function itself asks for eval mode; else it may be a look at a few rows."""
    model = act.models[0] if act.models else None
    known = Known.DERIVED if model is not None and model.made is not None else Known.GUESSED
    kept = next((a for a, path in scope.acts(Moment.KEPT) if a.kept is not None and a.kept.own & act.traces
                 and next(s for s in reversed(path) if s.kind in ("call", "root")) is scope), None)
    also = f" and {kept.kept.text} at line {kept.at.line} keeps the graphs" if kept and kept.kept else ""
    certain = known is Known.DERIVED
    return Breach(
        "C105",
        f"{act.text}(...) at {act.at} runs in eval mode while autograd records{also}: no no_grad() or inference_mode() "
        "is around it",
        (kept or act).at, known,
        {"kind": "kept" if kept else "built", "model": act.text, "function": act.at.function},
        Severity.HIGH if kept and certain else Severity.MEDIUM if kept or (certain and asked_here) else Severity.LOW,
        Remedy("without gradients", act) if certain else None)
