"""Random keys of JAX (C501): every draw gets a key of its own."""

from __future__ import annotations

import ast

from traindx_tools.finding import Patch
from traindx_tools.on_code.changes import Change
from traindx_tools.on_code.source import SourceFile, below
from traindx_tools.on_code.syntax import FunctionNode, Loops, Syntax, names_in, parameters, syntax, written

_COMPREHENSIONS = (ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp, ast.Lambda, *FunctionNode)


def distinct(file: SourceFile, first: ast.AST, second: ast.AST, key: str) -> tuple[Patch, ...]:
    """Keys for two draws that share one: a split in front of the first."""
    code = syntax(file)
    scope = code.scope(second)
    if code.scope(first) is not scope or not key:
        return ()
    return _split_before(code, first, second, key)


def anew_in_loop(file: SourceFile, use: ast.AST, loop: ast.AST) -> tuple[Patch, ...]:
    """A key split off in every iteration, for the one call that draws from it."""
    code = syntax(file)
    if not isinstance(loop, (ast.For, ast.While)) or not isinstance(use, ast.Call):
        return ()
    inside = {id(n) for s in loop.body for n in below(s)}
    plain = [a for a in (*use.args, *(k.value for k in use.keywords)) if isinstance(a, ast.Name)]
    given = [a for a in plain if "key" in a.id.lower() or a.id in ("rng", "k")]
    if len(given) != 1 or id(use) not in inside or not _is_local(code, given[0]):
        return ()
    name = given[0].id
    uses = [n for s in loop.body for n in below(s) if isinstance(n, ast.Name) and n.id == name]
    statement = code.statement(use)
    module = _random_module(code)
    if len(uses) != 1 or not module or statement not in loop.body or _nested(code, given[0], loop):
        return ()
    index = _index(loop)
    if index is not None:
        folded = f"{module}.fold_in({name}, {index})"
        return Change(file, "another key in every iteration").replace(given[0], folded).patches()
    fresh = _free(code, use, "step_" + name if not name.startswith("step") else "use_" + name)
    change = Change(file, "split the key in every iteration")
    change.before(loop.body[0] if statement is loop.body[0] else statement, f"{name}, {fresh} = {module}.split({name})")
    return change.replace(given[0], fresh).patches()


def _index(loop: ast.AST) -> str | None:
    """The name of a loop's counter."""
    over = loop.iter if isinstance(loop, ast.For) and isinstance(loop.iter, ast.Call) else None
    target = loop.target if isinstance(loop, ast.For) else None
    counted = over is not None and written(over.func).rpartition(".")[2] in ("range", "trange")
    if over is not None and written(over.func) == "enumerate" and isinstance(target, ast.Tuple):
        target, counted = target.elts[0], True
    return target.id if counted and isinstance(target, ast.Name) and target.id != "_" else None


def _split_before(code: Syntax, first: ast.AST, second: ast.AST, key: str) -> tuple[Patch, ...]:
    """A child for the first draw, the new parent for the second."""
    one, two = code.statement(first), code.statement(second)
    if one is None or two is None or one is two or code.parent(one) is not code.parent(two) or code.loops(one):
        return ()
    uses = [n for n in below(first) if isinstance(n, ast.Name) and n.id == key]
    all_reads = [n for n in below(code.scope(first)) if isinstance(n, ast.Name) and n.id == key
                 and isinstance(n.ctx, ast.Load)]  # fmt: skip
    module = _random_module(code)
    splits = isinstance(first, ast.Call) and code.qualified(first.func).endswith(".split")
    if len(uses) != 1 or len(all_reads) != 2 or not module or splits or not _is_local(code, uses[0]):
        return ()
    fresh = _free(code, first, f"{key}_once")
    change = Change(code.file, "split the key between the two draws")
    return change.before(one, f"{key}, {fresh} = {module}.split({key})").replace(uses[0], fresh).patches()


def _random_module(code: Syntax) -> str:
    """jax.random as this file writes it."""
    for call in code.of(ast.Call):
        if isinstance(call.func, ast.Attribute) and code.qualified(call.func).startswith("jax.random."):
            return written(call.func.value)
    return "jax.random" if code.aliases.get("jax") == "jax" else ""


def _is_local(code: Syntax, name: ast.Name) -> bool:
    """Whether the name may be bound here: it is a parameter or is assigned in the same scope."""
    scope = code.scope(name)
    if isinstance(scope, FunctionNode) and name.id in parameters(scope):
        return True
    return any(isinstance(n, ast.Name) and n.id == name.id and isinstance(n.ctx, ast.Store) and code.scope(n) is scope
               for n in below(scope))  # fmt: skip


def _nested(code: Syntax, node: ast.AST, loop: ast.AST) -> bool:
    for up in code.above(node):
        if up is loop:
            return False
        if isinstance(up, (*_COMPREHENSIONS, *Loops)):
            return True
    return True


def _free(code: Syntax, node: ast.AST, name: str) -> str:
    taken = names_in(code.scope(node))
    while name in taken:
        name += "_"
    return name
