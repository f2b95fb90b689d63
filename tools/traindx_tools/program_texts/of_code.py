"""A program of a text, told: what is known and how, in what order it will happen, what is unknown and why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from traindx_tools.program.conditions import Condition
from traindx_tools.program.courses import expected_timeline
from traindx_tools.program.moments import Act, Section
from traindx_tools.program.program import Program
from traindx_tools.program.timeline import Moment

MOST_LINES = 400
_SIGNS = {"and": " and ", "or": " or "}


def told(program: Program) -> str:
    """The text, a fact a line."""
    lines = [*_entities(program), *dict.fromkeys(_choices(program)), *_order(program)]
    for run in program.runs:
        lines.append(f"run from {run.at}" + (f" ({run.framework})" if run.framework else ""))
        lines += _tree(run, 1)
    lines += [f"unknown: {what}" for what in program.unknown] or ["unknown: nothing that was asked for"]
    cut = lines[:MOST_LINES]
    return "\n".join(cut + ([f"({len(lines) - MOST_LINES} more lines)"] if len(lines) > MOST_LINES else []))


def as_json(program: Program) -> dict[str, Any]:
    """The same as plain values."""
    return {
        "framework": program.framework,
        "entities": [*_entities(program), *dict.fromkeys(_choices(program))],
        "usual_order": [text for text, _ in expected_timeline(program).usual()],
        "runs": [{"at": str(r.at), "framework": r.framework, "moments": list(_tree(r, 0))} for r in program.runs],
        "unknown": program.unknown,
    }


def _entities(program: Program) -> Iterator[str]:
    for model in program.models:
        yield f"model {model.name}{_made(model.made)} [{model.known.value}]"
    for optimizer in program.optimizers:
        holds = "what it holds is unknown" if optimizer.holds is None else (
            "holds " + ", ".join(m.name + _made(m.made, " of") for m in optimizer.holds))
        held = f"applies {' > '.join(optimizer.transforms)}" if optimizer.transforms else holds
        yield f"optimizer {optimizer.kind}{_made(optimizer.made)}: {held} [{optimizer.known.value}]"
    for schedule in program.schedules:
        yield f"schedule {schedule.kind}{_made(schedule.made)} [{schedule.known.value}]"
    for scaler in program.scalers:
        on = {True: "on", False: "off", None: "on or off, a condition decides"}[scaler.enabled]
        yield f"scaler{_made(scaler.made)}: {on} [{scaler.known.value}]"
    for loss in program.losses:
        given = ", ".join(f"{d} {s}" for d, s in zip(loss.domains, loss.shapes, strict=False))
        yield f"loss {loss.name} at {loss.line}: given {given or 'nothing known'} [{loss.known.value}]"
    for loader in program.loaders:
        facts = ["over a part of the data" if loader.cut else "over the data",
                 *(["shuffles"] if loader.shuffles else []),
                 *([f"trains at {loader.trains}"] if loader.trains is not None else []),
                 *([f"evaluates at {loader.evaluates}"] if loader.evaluates is not None else []),
                 *(f"draws {d.text}" for d in loader.fetch.draws[:1])]
        yield f"loader at {loader.at}{_made(loader.made, ', of data made at')}: {', '.join(facts)} [derived]"
    for average in program.averages:
        keeps = "an unknown share" if average.share is None else f"{average.share:g}"
        yield f"average at {average.at}: keeps {keeps} of itself in each update [derived]"


def _choices(program: Program) -> Iterator[str]:
    """Over what is normalised, which positions count, what is minimised and which metric is watched."""
    for use in program.axis_uses:
        length = f" of {use.size}" if use.size is not None else ""
        yield f"{use.operation} at {use.at}: over axis {use.axis}, {use.role or 'unknown'}{length} [{use.known.value}]"
    for mask in program.mask_uses:
        said = f"true for {mask.true_for}" if mask.true_for else "what it is true for is unknown"
        yield f"mask at {mask.at}: {mask.how}, {said}, from {_open(mask.low)} to {_open(mask.high)} [derived]"
    for objective in program.objectives:
        parts = ", ".join(f"{''.join(signs)}{name}" for name, signs in sorted(objective.quantities.items()))
        known = ", ".join(p for p in (objective.form, parts) if p) or "nothing known"
        yield f"objective at {objective.at}: {known} [derived]"
    for watch in program.watches:
        yield f"{watch.kind} at {watch.at}: looks for a {watch.looks_for}imum of {watch.metric or '?'} [derived]"


def _open(bound: float | None) -> str:
    return "?" if bound is None else f"{bound:g}"


def _order(program: Program) -> Iterator[str]:
    for text, _ in expected_timeline(program).usual():
        yield f"expected order up to a step: {text} [derived]"


def _tree(section: Section, depth: int) -> Iterator[str]:
    for item in section.items:
        if isinstance(item, Act):
            yield f"{'  ' * depth}{_act(item)}"
        else:
            yield f"{'  ' * depth}{_section(item)}"
            yield from _tree(item, depth + 1)


def _act(act: Act) -> str:
    whom = [o.kind for o in act.optimizers] or ([m.name for m in act.models] if act.models is not None else [])
    facts = [", ".join(whom)] if whom else []
    facts += ["scaled"] if act.scaled else []
    facts += ["no gradients"] if act.gradients is False else []
    if act.kept is not None and act.kept.text:
        carries = {True: "with its graph", False: "without a graph", None: "with a graph if it is part of the loss"}
        facts += [act.kept.text] + ([carries[act.kept.carries]] if act.moment is Moment.KEPT else [])
    facts += [{True: "train", False: "eval", None: "either"}[act.training]] if act.moment.value == "mode" else []
    facts += [act.change.text or act.change.kind] if act.change is not None else []
    return f"{act.moment.value} at line {act.at.line}{': ' + '; '.join(facts) if facts else ''} [{act.known.value}]"


def _section(section: Section) -> str:
    if section.kind == "loop":
        return f"loop at line {section.at.line}" + (f", {section.count} turns" if section.count is not None else "")
    leaves = f", then {section.leaves}" if section.leaves else ""
    if section.kind == "arm":
        asked = condition(section.condition)
        written = f": {section.at.quote[:60]}" if "(open)" in asked else ""
        return f"if {asked} (line {section.at.line}{written}){leaves}"
    return f"{section.kind} of {section.at.function or '?'} at line {section.at.line}"


def condition(what: Condition) -> str:
    """A condition in words."""
    if what.kind == "not":
        return f"not ({condition(what.parts[0])})"
    if what.parts:
        return _SIGNS[what.kind].join(condition(p) for p in what.parts)
    length = what.key[-1] if isinstance(what.key, tuple) and what.key else None
    every = f"once in {length} turns" if isinstance(length, int) and length < 10**6 else "once a window"
    words = {"every": every, "after": f"from turn {what.rest} on", "once": f"in turn {what.rest} alone",
             "last": "in the last turn", "finite": "gradients are finite", "never": "never", "always": "always"}
    return words.get(what.kind, "(open)")


def _made(where: str | None, how: str = ", made at") -> str:
    return f"{how} {where}" if where else ""
