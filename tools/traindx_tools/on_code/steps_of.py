"""Where the function that takes an optimizer step of optax stands: its loops, through those that call it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.on_code.lookup import Lookup
from traindx_tools.on_code.syntax import Syntax, last_name

SCHEDULE_LENGTHS = {
    "cosine_decay_schedule": (1, "decay_steps"),
    "warmup_cosine_decay_schedule": (3, "decay_steps"),
    "linear_schedule": (2, "transition_steps"),
    "polynomial_schedule": (3, "transition_steps"),
    "cosine_onecycle_schedule": (0, "transition_steps"),
    "linear_onecycle_schedule": (0, "transition_steps"),
}
"""For schedules of optax: position and name of the argument that is their length in updates."""

Loop = tuple[Syntax, ast.AST]
_DEEP = 4


def steps(look: Lookup) -> Iterator[tuple[Syntax, ast.Call]]:
    """Every call that applies an update of optax or flax."""
    for code in look.codes:
        if "optax" in code.file.text or "apply_gradients" in code.file.text:
            for call in code.calls("apply_updates", "apply_gradients"):
                yield code, call


def loops_around(look: Lookup, code: Syntax, node: ast.AST, left: int = _DEEP) -> list[Loop]:
    """The loops around a place, innermost first, through the callers of its function."""
    found: list[Loop] = [(code, x) for x in code.loops(node)]
    body = code.function(node)
    if body is None or left <= 0:
        return found
    calls = [(c, call) for c, call in calls_of(look, code, body) if c.function(call) is not body]
    outer = [loops_around(look, c, call, left - 1) for c, call in calls]
    return found + max(outer, key=len, default=[])


def calls_of(look: Lookup, code: Syntax,
             body: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[tuple[Syntax, ast.Call]]:  # fmt: skip
    """Calls of a function by its name, by that of its compiled form, and by what a factory's result is bound to."""
    names = {body.name} if len(look.functions.get(body.name, ())) <= 1 else set()
    maker = code.function(body)
    sources = {body.name} | ({maker.name} if maker is not None else set())
    for source in sorted(sources):
        for other, made in look.made_with.get(source, ()):
            same_file = other is code or bool(sources & other.aliases.keys())
            if same_file and other.function(made) is not body:
                names |= {last_name(t) for t in made.targets if last_name(t)}
    if maker is not None and not isinstance(code.parent(body), ast.ClassDef):
        near = [c for c in code.calls(body.name) if maker in code.above(c)]
        yield from ((code, c) for c in near)
    for name in sorted(names):
        yield from look.calls.get(name, ())

