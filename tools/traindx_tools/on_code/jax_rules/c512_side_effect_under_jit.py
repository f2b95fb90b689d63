"""A side effect inside a traced function.

Python code in a traced function runs once, while tracing. A draw from numpy's or Python's generator, the clock, a write
to `self`, to a global or into a list outside happens at that time only: the same "random" number for ever, a counter
that stays at 1, a tracer that leaks out and fails when it is used.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.jitted import Jitted, inside, jitted, runs_outside
from traindx_tools.on_code.lookup import Lookup, lookup
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, last_name, parameters, syntax, written
from traindx_tools.on_code.tracing import Traced, depends, own_nodes_of, traced, values_traced
from traindx_tools.rules import Rule

RULE = Rule(
    id="C512",
    name="side-effect-under-jit",
    title="A side effect inside a traced function",
    severity=Severity.HIGH,
    sees="np.random, random, time, writes to self or globals, appends to outer lists, print, in traced functions.",
    matters="It happens once, at tracing: constant noise, stale counters, leaked tracers.",
    alike=("jax.debug.print and jax.debug.callback, which run every time",),
    confirm=("jax.checking_leaks()", "call twice and compare"),
)
_RANDOM = ("numpy.random.", "random.")
_GENERATORS = ("numpy.random.", "random.Random")
_DRAWS = re.compile(r"random|time|next\(")
_CLOCK = ("time.time", "time.perf_counter", "datetime.datetime.now")


def check(project: Project) -> Iterator[Finding]:
    """Look at every traced function, and at what compiled functions call."""
    told: set[int] = set()
    for file in project.files:
        if "jax" not in file.text:
            continue
        code = syntax(file)
        for one in traced(code):
            names = values_traced(one)
            own = {n.id for n in below(one.node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
            seen: set[str] = set()
            for node in own_nodes_of(one):
                found = _effect(code, one, node, names, own | names)
                if found is not None and found[0] not in seen:
                    seen.add(found[0])
                    told.add(id(node))
                    yield _finding(code, one, node, *found)
    if any(("jax" in f.text or "equinox" in f.text) and f.mentions(_DRAWS) for f in project.files):
        yield from _called(lookup(project), told)


def _called(look: Lookup, told: set[int]) -> Iterator[Finding]:
    """Numbers of numpy or the clock, and the next item of an iterator, in functions that a compiled one calls."""
    for one in jitted(look):
        for here in inside(look, one):
            drawn = next(((n, *found) for n in below(here.node) if isinstance(n, ast.Call) and id(n) not in told
                          and not runs_outside(here.code, n)
                          and (found := _once(here.code, n)) is not None), None)  # fmt: skip
            if drawn is not None and not any(id(n) in told for n in below(here.node)):
                told.add(id(drawn[0]))
                yield _finding(here.code, one, *drawn)


def _once(code: Syntax, call: ast.Call) -> tuple[str, str] | None:
    name = code.qualified(call.func)
    if name in _CLOCK:
        return "clock", f"{written(call)} is read once, while tracing"
    if name.startswith(_RANDOM) and not name.startswith("random.PRNG"):
        seeded = last_name(call.func) in ("default_rng", "RandomState", "Random", "Generator")
        fixed = seeded and bool(call.args)
        return None if fixed else ("random", f"{written(call)} is drawn once, while tracing: every call uses the same "
                                   "numbers")  # fmt: skip
    if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, (ast.Name, ast.Attribute)):
        made = code.origin(call.func.value)
        outside = code.function(made) is not code.function(call)
        if isinstance(made, ast.Call) and outside and code.qualified(made.func).startswith(_GENERATORS):
            return "random", f"{written(call)} is drawn once, while tracing: every call uses the same numbers"
    if last_name(call.func) == "next" and isinstance(call.func, ast.Name) and len(call.args) == 1:
        made = code.origin(call.args[0])
        function = code.function(call)
        given = function is not None and isinstance(made, ast.Name) and made.id in parameters(function)
        if not given and isinstance(made, ast.Call) and code.function(made) is not function:
            return "iterator", f"{written(call)} takes one item, while tracing: every call uses the same one"
    return None


def _effect(code: Syntax, one: Traced, node: ast.AST, names: set[str], own: set[str]) -> tuple[str, str] | None:
    if isinstance(node, ast.Call):
        name = code.qualified(node.func)
        if name.startswith(_RANDOM) and not name.startswith("random.PRNG"):
            return "random", f"{written(node)} is drawn once, while tracing: every call uses the same numbers"
        if name in _CLOCK:
            return "clock", f"{written(node)} is read once, while tracing"
        if last_name(node.func) == "print" and isinstance(node.func, ast.Name):
            shown = any(depends(a, names) for a in node.args)
            return ("print", f"{written(node)} prints a tracer, once") if shown else None
        owner = node.func.value if isinstance(node.func, ast.Attribute) else None
        if last_name(node.func) == "append" and node.args and depends(node.args[0], names):
            if isinstance(owner, ast.Name) and owner.id not in own:
                return "append", f"{written(node)} puts a tracer into a list outside: it leaks"
            if isinstance(owner, ast.Attribute) and written(owner.value) == "self":
                return "append", f"{written(node)} puts a tracer into an attribute: it leaks"
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AugAssign) else []
    for target in targets:
        if isinstance(target, ast.Attribute) and written(target.value) == "self" and "nnx" not in one.how:
            return "attribute", f"{written(target)} is written once, while tracing"
    if isinstance(node, ast.Global):
        return "global", f"the global {', '.join(node.names)} is written once, while tracing"
    return None


def _finding(code: Syntax, one: Traced | Jitted, node: ast.AST, kind: str, why: str) -> Finding:
    return RULE.finding(
        f"In {getattr(one.node, 'name', 'a lambda')} ({one.how}), at {code.at(node)}: {why}",
        code.place(node),
        code.file.path,
        bearing=Bearing.CAUSE,
        severity=Severity.LOW if kind == "print" else Severity.MEDIUM if kind == "clock" else Severity.HIGH,
        measured={"kind": kind, "function": getattr(one.node, "name", "")},
    )
