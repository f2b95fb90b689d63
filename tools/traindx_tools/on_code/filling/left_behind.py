"""Calls as statements of their own that change nothing, of values that are used afterwards as they were.

What a call is made on is known from where the value came from: a frame that pandas read has no method that changes it
but those with `inplace`, a tensor none but those whose name ends in an underscore. Named tuples, and dataclasses that
are frozen, are replaced as a whole. What holds within `with` does nothing where it is only made.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from traindx_tools.knowledge.tables import table
from traindx_tools.on_code.lookup import Lookup
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import Syntax, last_name, names_in, written
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.values import ModuleValue, Tensor, library_of
from traindx_tools.program.uses import UnusedResult

TABLE = "results.toml"
_PLAIN = frozenset({"no_grad", "inference_mode", "enable_grad", "set_grad_enabled", "autocast", "open", "File",
                    "accumulate", "device", "Mesh", "ThreadPoolExecutor", "Pool", "SummaryWriter", "no_sync"})
"""Contexts in which a statement means what it means elsewhere."""


class _Of(NamedTuple):
    what: str
    kind: str
    methods: frozenset[str]
    placement: frozenset[str]
    roots: tuple[str, ...]


@cache
def _made() -> tuple[_Of, ...]:
    return tuple(_Of(row["what"], row["kind"], frozenset(row["methods"]), frozenset(row.get("placement", ())),
                     tuple(row.get("roots", ()))) for row in table(TABLE)["made"])


@cache
def _functions() -> dict[str, str]:
    return {name: kind for kind, names in table(TABLE)["functions"].items() for name in names}


@cache
def _words() -> tuple[frozenset[str], frozenset[str]]:
    options = table(TABLE)["options"]
    return frozenset(options["in_place"]), frozenset(options["others_replace"])


def left_behind(project: Project, look: Lookup) -> Iterator[UnusedResult]:
    """Every such call, each once."""
    codes, seen = {id(c.file): c for c in look.codes}, set()
    for event in project.events:
        call, code = event.node, codes.get(id(event.file))
        if event.kind != "call" or code is None or not isinstance(call, ast.Call) or id(call) in seen:
            continue
        statement = code.parent(call)
        if isinstance(statement, ast.Expr) and not _is_shown(code, statement) and (kind := _kind(look, code, event)):
            seen.add(id(call))
            if kind[0] == "entered":
                yield UnusedResult("left", f"{written(call.func)}()", event.spot, other=kind[0])
                continue
            first = call.args[0] if call.args else None
            old = call.func.value if isinstance(call.func, ast.Attribute) and kind[1] else first
            while isinstance(old, ast.Call) and isinstance(old.func, ast.Attribute):
                old = old.func.value
            if old is not None and _is_used_after(code, statement, old):
                yield UnusedResult("left", f"{written(call.func)}()", event.spot, written(old), other=kind[0])


def _is_shown(code: Syntax, statement: ast.Expr) -> bool:
    """Whether it is tried, timed or shown, and not meant to do anything: in a `try`, a cell, or within what may ask for
    just that (`pytest.raises`, `main_process_first`)."""
    for up in code.above(statement):
        if isinstance(up, ast.Try) or (isinstance(up, (ast.With, ast.AsyncWith)) and any(
                last_name(getattr(i.context_expr, "func", i.context_expr)) not in _PLAIN for i in up.items)):
            return True
    return code.file.path.endswith(".ipynb") and code.function(statement) is None


def _kind(look: Lookup, code: Syntax, event: Event) -> tuple[str, bool] | None:
    """What is left as it was, and whether it is what the method is called on; None where a call may do something."""
    call, (in_place, others) = event.node, _words()
    assert isinstance(call, ast.Call)
    given = {k.arg for k in call.keywords}
    if given & {None, *in_place}:
        return None
    if (kind := _functions().get(event.name)) is not None:
        return kind, False
    if not isinstance(call.func, ast.Attribute) or isinstance(event.receiver, ModuleValue):
        return None
    for one in _made():
        value = event.receiver
        made_by = library_of(value).startswith(one.roots) if one.roots else isinstance(value, Tensor)
        if event.method in one.methods | one.placement and made_by:
            return ("placement" if event.method in one.placement else one.kind), one.kind != "drawn"
    frozen = event.method == "_replace" or any(word in code.file.text for word in ("flax", "chex", "dataclass"))
    if event.method in ("replace", "_replace") and frozen and given and not call.args and not given & others:
        return ("record", True) if look.function(code, call.func) is None else None
    return None


def _is_used_after(code: Syntax, statement: ast.stmt, old: ast.expr) -> bool:
    """Whether what the call leaves as it was is read behind it, or in another turn of a loop."""
    names = names_in(old)
    if not names or isinstance(old, ast.Call) or code.qualified(old):
        return False
    if isinstance(old, ast.Attribute):
        return True
    scope, loops = code.scope(statement), code.loops(statement)
    inside = {id(n) for n in ast.walk(statement)}
    for name in names:
        for read in code.reads(scope, name):
            behind = read.lineno > statement.lineno or any(loop in code.loops(read) for loop in loops)
            if id(read) not in inside and behind:
                return True
    return False
