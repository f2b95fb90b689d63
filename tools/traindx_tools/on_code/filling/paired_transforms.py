"""Samples of two values, an image and what belongs to its places, that one random transform moves one after the
other."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.knowledge import fetching
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, syntax, written
from traindx_tools.on_code.trace import Block, Event, Place
from traindx_tools.on_code.values import Bag, Instance, Thing, Value
from traindx_tools.program.loading import Apart

_SEEDS = frozenset({"seed", "manual_seed", "set_state", "set_rng_state", "setstate", "fork_rng"})


def pairs_apart(project: Project) -> Iterator[Apart]:
    """Each sample of two values whose parts draw anew each."""
    fetched = [*project.fetched.values(),
               *(r for r in project.roots if r.function is not None and r.function.name == "__getitem__")]
    told: set[str] = set()
    for root in fetched:
        body = next((b for b in root.body if isinstance(b, Block) and b.kind == "call"), root)
        sample = body.result
        if not isinstance(sample, Bag) or sample.open or len(sample.items) != 2 or _SEEDS & root.methods:
            continue
        found = _twice(root.places)
        if found is not None and str(found.at) not in told:
            told.add(str(found.at))
            yield found


def _twice(places: tuple[Place, ...]) -> Apart | None:
    """Two calls of one callable that draws and moves, each given one value, and not the same one."""
    calls: dict[int, list[Event]] = {}
    for place in places:
        event = place.event
        if event.method == "__call__" and len(event.args) == 1 and isinstance(event.receiver, (Thing, Instance)):
            calls.setdefault(id(event.receiver), []).append(event)
    for same in calls.values():
        what = _moves(same[0].receiver, places) if len(same) == 2 else ""
        if what and same[0].function is same[1].function and _given(same[0]) != _given(same[1]):
            texts = [e.text for e in same]
            return Apart(texts[0], texts[1], same[1].spot, what)
    return None


def _given(event: Event) -> str:
    """What a call is given, as it is written."""
    args = event.node.args if isinstance(event.node, ast.Call) else []
    return ast.unparse(args[0]) if args else ""


def _moves(callee: Value | None, places: tuple[Place, ...], left: int = 4) -> str:
    """What of a callable draws to move things in space: a transform of a library, or a method that draws and flips."""
    if isinstance(callee, Thing):
        if fetching.moves_at_random(callee.type):
            return callee.short
        inner = [v for a in callee.args for v in (a.items if isinstance(a, Bag) else [a])]
        return next((w for v in inner if (w := _moves(v, places, left - 1))), "") if left else ""
    method = callee.klass.info.method("__call__") if isinstance(callee, Instance) else None
    if method is None:
        return ""
    body = method.info.node
    inside = [p.event for p in places if any(b.function is not None and b.function.node is body for b in p.path)]
    drawn = next((e for e in inside if e.name in fetching.DRAWING), None)
    moved = any(e.method in fetching.MOVING for e in inside)
    if drawn is not None and moved:
        return drawn.text
    attributes = callee.attrs.values() if isinstance(callee, Instance) else ()
    held = [v for a in attributes if isinstance(a, Bag) for v in a.items]
    return next((v.klass.info.name for v in held if isinstance(v, Instance) and _is_written_so(v)), "")


def _is_written_so(part: Instance) -> bool:
    """Whether the method of a part that a loop calls draws and moves, by what it calls."""
    method = part.klass.info.method("__call__")
    names = {n.attr for n in below(method.info.node) if isinstance(n, ast.Attribute)} if method is not None else set()
    return not names.isdisjoint(d.rpartition(".")[2] for d in fetching.DRAWING) and bool(names & fetching.MOVING)


def moved_alone(project: Project) -> Iterator[Apart]:
    """Each place where one of two values that a function returns is moved under a condition of its own, and the other,
    which other places move with it, stays where it was."""
    for code in (syntax(f) for f in project.files if any(m in f.text for m in fetching.MOVING)):
        for function in code.of(ast.FunctionDef):
            returned = [n.value.elts for n in below(function) if isinstance(n, ast.Return)
                        and isinstance(n.value, ast.Tuple) and len(n.value.elts) == 2]
            if len(returned) == 1:
                yield from _alone(code, function, *returned[0])


def _alone(code: Syntax, function: ast.FunctionDef, first: ast.expr, second: ast.expr) -> Iterator[Apart]:
    moves = [m for n in below(function) if isinstance(n, ast.Assign) for m in _of_statement(n)]
    sides = [{t for t, _, _ in moves if t in map(written, _parts(side))} for side in (first, second)]
    if [len(s) for s in sides] != [1, 1] or sides[0] == sides[1]:
        return
    names = {*sides[0], *sides[1]}
    for name, kind, statement in moves:
        other = next(iter(names - {name}))
        arm = code.parent(statement)
        if name not in names or not isinstance(arm, ast.If) or _binds(arm, other) or any(
                t == other and k == kind and (up := code.parent(s)) is not arm and isinstance(up, ast.If)
                and written(up.test) == written(arm.test) and "(" not in written(arm.test) for t, k, s in moves):
            continue
        yield Apart(other, code.file.segment(statement), code.spot(statement), kind, alone=True)
        return


def _parts(node: ast.expr) -> list[ast.expr]:
    return [n for n in below(node) if isinstance(n, (ast.Name, ast.Subscript))]


def _of_statement(node: ast.Assign) -> Iterator[tuple[str, str, ast.Assign]]:
    """What a statement moves: `a, b = a.flip(-1), b.flip(-1)` moves both."""
    target, value = node.targets[0], node.value
    several = isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts)
    pairs = zip(target.elts, value.elts, strict=True) if several else [(target, value)]  # type: ignore[attr-defined]
    for to, made in pairs:
        kind = next((n.func.attr for n in below(made) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)
                     and n.func.attr in fetching.MOVING), "")
        if kind and written(to) in map(written, _parts(made)) and not isinstance(made, ast.BinOp):
            yield written(to), kind, node


def _binds(arm: ast.If, name: str) -> bool:
    """Whether a condition's body changes a value, in its own way or by entries."""
    changed = [t for s in arm.body for n in below(s) if isinstance(n, (ast.Assign, ast.AugAssign))
               for t in (n.targets if isinstance(n, ast.Assign) else [n.target])]
    return any(written(p) == name for t in changed for p in _parts(t))
