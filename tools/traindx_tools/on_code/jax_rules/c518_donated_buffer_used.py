"""A donated buffer is used after the call.

`donate_argnums` hands an argument's memory to the result. The argument is gone after the call (on the CPU too, since
JAX donates there): reading it raises "Array has been deleted". The caller has to go on with the result alone. A second
name is no copy: `target = params`, a best or previous state that is kept, a list of snapshots, `stop_gradient` and
`asarray` hold the same arrays, and are gone with them. One state that holds an array twice cannot be donated at all.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch
from traindx_tools.invariants.pages import pages
from traindx_tools.on_code.compiled_names import Compiled, compiled_names, meant
from traindx_tools.on_code.donation import Reuse, reuses
from traindx_tools.on_code.patching import replace_text
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, argument, last_name, parameters, syntax, written

(RULE,) = pages("jax", ("C518",))


_DONATES = re.compile(r"donate_argn|donate\s*=")


def check(project: Project) -> Iterator[Finding]:
    """Look at every function that is jitted with donation."""
    files = [f for f in project.files if "jax" in f.text or "equinox" in f.text]
    if not any(f.mentions(_DONATES) for f in files):
        return
    donating = compiled_names(map(syntax, files), lambda code, made: isinstance(made, ast.Call) and bool(
        _given(code, made)))  # fmt: skip
    for code in map(syntax, files) if donating else ():
        yield from _reused(code, donating)


def _places(one: Compiled) -> tuple[int, ...]:
    """The positions that a call donates, without self."""
    places = (_given(one.code, one.made) if isinstance(one.made, ast.Call) else None) or ()
    return tuple(p - 1 for p in places if p > 0) if one.method else places


def _given(code: Syntax, call: ast.Call) -> tuple[int, ...] | None:
    """The positions that a jit donates; None where it is none or donates nothing."""
    value, names = argument(call, 99, "donate_argnums"), argument(call, 99, "donate_argnames")
    if "nnx" in written(call)[:80]:  # its objects are updated in place
        return None
    whole = argument(call, 99, "donate")
    if isinstance(whole, ast.Constant) and "filter_" in written(call)[:80]:
        return {"all": tuple(range(12)), "warn": tuple(range(12)),
                "all-except-first": tuple(range(1, 12))}.get(str(whole.value))  # fmt: skip
    if value is None and names is None:
        return None
    texts = {c.value for c in below(names) if isinstance(c, ast.Constant)} if names is not None else set()
    own = _signature(code, call)
    return (*_numbers(value), *(i for i, name in enumerate(own) if name in texts)) or None


def _signature(code: Syntax, call: ast.Call) -> list[str]:
    """The parameters of the function that a jit stands at."""
    up = code.parent(call)
    if isinstance(up, ast.FunctionDef):
        return list(parameters(up))
    inner = up.args[0] if isinstance(up, ast.Call) and up.func is call and up.args else argument(call, 0, "fun")
    names = code.functions(last_name(inner))
    own = list(parameters(names[0])) if len(names) == 1 else []
    return own[1:] if own[:1] == ["self"] and isinstance(inner, ast.Attribute) else own


def _reused(code: Syntax, donating: dict[str, list[Compiled]]) -> Iterator[Finding]:
    """What is read again, by its own or another name: within a function, and among the attributes of an object."""
    def takes(call: ast.Call) -> list[ast.expr]:
        known = meant(code, call, donating)
        if known is None or any(isinstance(a, ast.Starred) for a in call.args):
            return []
        return [call.args[p] for p in _places(known) if p < len(call.args)]

    calls = [c for c in code.calls(*donating) if takes(c)]
    scopes = {id(s): s for s in (code.scope(c) for c in calls)}
    owners = {id(o): o for o in (code.owner(c) for c in calls) if o is not None}
    bodies = [[s.body] for s in scopes.values()]
    for owner in owners.values():
        methods = [m for m in owner.body if isinstance(m, ast.FunctionDef)]
        methods.sort(key=lambda m: m.name != "__init__")
        bodies.append([m.body for m in methods])
    seen: set[int] = set()
    for body in bodies:
        for one in reuses(code, body, takes):
            if one.call.lineno not in seen:
                seen.add(one.call.lineno)
                own = one.name == one.given and not one.twice
                yield _reuse_finding(code, one) if own else _alias_finding(code, one)


def _reuse_finding(code: Syntax, one: Reuse) -> Finding:
    again = getattr(one.read, "lineno", 1)
    return RULE.finding(
        f"{one.given} is donated to {last_name(one.call.func)} at {code.at(one.call)} and read again at line {again}: "
        "its buffer is gone by then",
        code.place(one.call),
        code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "donated", "name": one.given, "read_line": again},
    )


def _alias_finding(code: Syntax, one: Reuse) -> Finding:
    function = last_name(one.call.func)
    if one.twice and one.read is one.call:
        said = f"{one.given} is donated to {function} at {code.at(one.call)}, and its parts {one.name} are the same " \
               "arrays: one buffer is donated twice"
    elif one.twice:
        said = f"{one.given} is donated to {function} at {code.at(one.call)}, and {one.name} holds the same arrays: " \
               "it is handed to the call whose result takes its memory"
    else:
        said = f"{one.name}, read at line {getattr(one.read, 'lineno', 1)}, holds the same arrays as {one.given}, " \
               f"which {function} at {code.at(one.call)} takes (donated): an assignment makes no copy"
    if one.made is not None:
        said += f" (named at line {getattr(one.made, 'lineno', 1)})"
    return RULE.finding(said, code.place(one.made or one.read), code.file.path, bearing=Bearing.CAUSE,
                        measured={"kind": "twice" if one.twice else "alias", "name": one.name},
                        patch=_copied(code, one))


def _copied(code: Syntax, one: Reuse) -> tuple[Patch, ...]:
    """`target = params` as a copy."""
    statement = code.statement(one.made) if one.made is not None else None
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, (ast.Name, ast.Attribute)):
        return ()
    names = {origin: name for name, origin in code.aliases.items()}
    jax, numpy = names.get("jax"), names.get("jax.numpy")
    if jax is None or numpy is None or isinstance(statement.targets[0], ast.Tuple):
        return ()
    copied = f"{jax}.tree.map({numpy}.copy, {written(statement.value)})"
    patch = replace_text(code.file, statement.value, copied, "copy the arrays instead of naming them twice")
    return () if patch is None else (patch,)


def _numbers(value: ast.expr | None) -> tuple[int, ...]:
    return tuple(c.value for c in below(value) if isinstance(c, ast.Constant) and isinstance(c.value, int)) if (
        value is not None) else ()  # fmt: skip
