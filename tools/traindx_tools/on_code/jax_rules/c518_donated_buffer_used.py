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
from dataclasses import dataclass

from traindx_tools.finding import Finding, Patch, Severity, Strength
from traindx_tools.on_code.donation import Reuse, reuses
from traindx_tools.on_code.patching import replace_text
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import FunctionNode, Syntax, argument, last_name, parameters, syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C518",
    name="donated-buffer-used",
    title="A donated buffer is used after the call",
    severity=Severity.HIGH,
    sees="An argument that jit donates, or another name of the same arrays, that is read again after the call.",
    matters="RuntimeError: Array has been deleted, or INVALID_ARGUMENT: ... donated (old releases spare the CPU).",
    alike=("an argument that the call's result replaces", "a copy: jax.tree.map(jnp.copy, params)"),
    confirm=("run one step on the accelerator", "print(jax.tree.leaves(target)[0].is_deleted()) after the call"),
)


_DONATES = re.compile(r"donate_argn|donate\s*=")


def check(project: Project) -> Iterator[Finding]:
    """Look at every function that is jitted with donation."""
    files = [f for f in project.files if "jax" in f.text or "equinox" in f.text]
    if not any(_DONATES.search(f.text) for f in files):
        return
    donating: dict[str, list[_Donating]] = {}
    for code in map(syntax, files):
        for name, one in _donating(code):
            donating.setdefault(name, []).append(one)
    for code in map(syntax, files) if donating else ():
        yield from _reused(code, donating)


@dataclass(frozen=True)
class _Donating:
    """A name that calls a donating function: where it is bound, and the positions that are given away."""

    code: Syntax
    scope: ast.AST
    places: tuple[int, ...]


def _donating(code: Syntax) -> Iterator[tuple[str, _Donating]]:
    """Functions, attributes and results of factories that donate."""
    for call in code.of(ast.Call):
        places = _given(code, call)
        if places is None:
            continue
        up = code.parent(call)
        if isinstance(up, ast.Call) and up.func is call:  # partial(jit, donate_argnums=0)(step)
            up = code.parent(up)
        if isinstance(up, ast.Assign):
            yield from _targets(code, up, places)
        elif isinstance(up, ast.FunctionDef) and call in up.decorator_list:
            owner = code.parent(up)
            bound = isinstance(owner, ast.ClassDef)
            yield up.name, _Donating(code, owner if bound and owner is not None else code.scope(up),
                                     tuple(p - 1 for p in places if p > 0) if bound else places)  # fmt: skip
            maker = code.function(up) if not bound else None
            if maker is not None and any(isinstance(n, ast.Return) and last_name(n.value) == up.name
                                         for n in below(maker)):  # fmt: skip
                yield from _made_by(code, maker.name, places)
        elif isinstance(up, ast.Return):
            factory = code.function(up)
            yield from _made_by(code, factory.name, places) if factory is not None else ()


def _targets(code: Syntax, made: ast.Assign, places: tuple[int, ...]) -> Iterator[tuple[str, _Donating]]:
    for target in made.targets:
        scope = code.owner(made) if isinstance(target, ast.Attribute) else code.scope(made)
        if last_name(target):
            yield last_name(target), _Donating(code, scope or code.file.tree, places)


def _made_by(code: Syntax, maker: str, places: tuple[int, ...]) -> Iterator[tuple[str, _Donating]]:
    """Names that get what a factory returns: `update = make_update()`."""
    for made in code.calls(maker):
        up = code.parent(made)
        if isinstance(up, ast.Assign) and up.value is made:
            yield from _targets(code, up, places)


def _known(code: Syntax, call: ast.Call, among: list[_Donating]) -> _Donating | None:
    """The donating function that a call means: of the innermost scope that binds its name, or imported."""
    name = last_name(call.func)
    if isinstance(call.func, ast.Attribute):
        owner = code.owner(call) if written(call.func.value) == "self" else None
        return next((d for d in among if d.scope is owner), None) if owner is not None else None
    for scope in (*(a for a in code.above(call) if isinstance(a, FunctionNode)), code.file.tree):
        own = [d for d in among if d.scope is scope]
        if own:
            return own[0] if len(own) == 1 else None
        if isinstance(scope, FunctionNode) and (name in parameters(scope) or any(
                isinstance(n, FunctionNode) and n.name == name for n in scope.body)):  # fmt: skip
            return None
    imported = [d for d in among if d.code is not code and isinstance(d.scope, ast.Module)]
    return imported[0] if len(imported) == 1 and name in code.aliases else None


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
    texts = {c.value for c in ast.walk(names) if isinstance(c, ast.Constant)} if names is not None else set()
    own = _signature(code, call)
    return (*_numbers(value), *(i for i, name in enumerate(own) if name in texts)) or None


def _signature(code: Syntax, call: ast.Call) -> list[str]:
    """The parameters of the function that a jit stands at."""
    up = code.parent(call)
    if isinstance(up, ast.FunctionDef):
        return list(parameters(up))
    inner = up.args[0] if isinstance(up, ast.Call) and up.func is call and up.args else argument(call, 0, "fun")
    names = [f for f in code.of(ast.FunctionDef) if f.name == last_name(inner)]
    own = list(parameters(names[0])) if len(names) == 1 else []
    return own[1:] if own[:1] == ["self"] and isinstance(inner, ast.Attribute) else own


def _reused(code: Syntax, donating: dict[str, list[_Donating]]) -> Iterator[Finding]:
    """What is read again, by its own or another name: within a function, and among the attributes of an object."""
    def takes(call: ast.Call) -> list[ast.expr]:
        among = donating.get(last_name(call.func))
        known = _known(code, call, among) if among is not None else None
        if known is None or any(isinstance(a, ast.Starred) for a in call.args):
            return []
        return [call.args[p] for p in known.places if p < len(call.args)]

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
        strength=Strength.DIRECT,
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
    return RULE.finding(said, code.place(one.made or one.read), code.file.path, strength=Strength.DIRECT,
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
    return tuple(c.value for c in ast.walk(value) if isinstance(c, ast.Constant) and isinstance(c.value, int)) if (
        value is not None) else ()  # fmt: skip
