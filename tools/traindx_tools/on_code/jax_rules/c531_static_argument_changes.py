"""A static argument has another value in every step.

jit keeps one compiled program for each value of a static argument. A temperature, a rate, a step number or a length
that is static (`static_argnums`, `static_argnames`) and changes from call to call is a compilation in every call:
seconds for a step of milliseconds, and a cache that grows. equinox's filter_jit takes every Python number for static,
also where nothing says so. What changes has to be traced: an array (`jnp.asarray(t)`), with jnp.where or lax.cond in
the place of Python's if.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding
from traindx_tools.invariants.pages import pages
from traindx_tools.on_code.compiled_names import Compiled, compiled_names, meant
from traindx_tools.on_code.lookup import Lookup, lookup, returned
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, last_name, names_in, parameters, written

(RULE,) = pages("jax", ("C531",))
_JITS = frozenset({"jax.jit", "jax.pmap", "jax.pjit", "equinox.filter_jit", "equinox.filter_pmap"})
_KEYWORDS = ("static_argnums", "static_argnames", "static_broadcasted_argnums")
_FEW = 12
"""Values up to this many are a matter of taste."""
_PLAIN = frozenset({"float", "int", "round", "max", "min", "abs", "pow", "sum"})
_ARRAYS = re.compile(r"\b(jnp|np|jax|numpy|optax|torch|onp)\b")


def check(project: Project) -> Iterator[Finding]:
    """Look at every call of a function with static arguments."""
    files = [f for f in project.files if "static_" in f.text or "filter_" in f.text]
    if not any("jax" in f.text or "equinox" in f.text for f in files):
        return
    look = lookup(project)
    names = compiled_names(look.codes, _has_static)
    seen: set[int] = set()
    for code in look.codes:
        for call in code.calls(*names):
            one = meant(code, call, names)
            if one is None or id(one.made) in seen:
                continue
            judged = (_varies(look, code, call, given, one, said) for given, said in _static(one, call))
            found = next((f for f in judged if f is not None), None)
            if found is not None:
                seen.add(id(one.made))
                yield found


def _has_static(code: Syntax, made: ast.expr) -> bool:
    func = made.func if isinstance(made, ast.Call) else made
    name = code.qualified(func)
    if isinstance(made, ast.Call) and last_name(func) == "partial" and made.args:
        name = code.qualified(made.args[0])
    if name.startswith("equinox.filter_"):
        return name in _JITS
    return name in _JITS and isinstance(made, ast.Call) and any(k.arg in _KEYWORDS for k in made.keywords)


def _static(one: Compiled, call: ast.Call) -> Iterator[tuple[ast.expr, str]]:
    """The arguments of a call that are static, with the parameter's name."""
    own = list(parameters(one.function)) if one.function is not None else _parameters(one)
    shift = 1 if one.method else 0
    options = {k.arg: k.value for k in one.made.keywords} if isinstance(one.made, ast.Call) else {}
    given = [k for k in _KEYWORDS if k in options]
    if not given:  # equinox: all Python numbers
        yield from ((a, own[i + shift] if i + shift < len(own) else str(i)) for i, a in enumerate(call.args)
                    if not isinstance(a, ast.Starred))  # fmt: skip
        yield from ((k.value, k.arg) for k in call.keywords if k.arg is not None)
        return
    constants = [c.value for k in given for c in below(options[k]) if isinstance(c, ast.Constant)]
    texts = {c for c in constants if isinstance(c, str)}
    places = {c for c in constants if isinstance(c, int)} | {own.index(t) for t in texts if t in own}
    texts |= {own[p] for p in places if p < len(own)}
    for place in sorted(places):
        if 0 <= place - shift < len(call.args) and not isinstance(call.args[place - shift], ast.Starred):
            yield call.args[place - shift], own[place] if place < len(own) else str(place)
    yield from ((k.value, k.arg) for k in call.keywords if k.arg in texts and k.arg is not None)


def _parameters(one: Compiled) -> list[str]:
    """The parameters of the function in `jax.jit(f, ...)`."""
    inner = one.made.args[0] if isinstance(one.made, ast.Call) and one.made.args else None
    found = [f for f in one.code.of(ast.FunctionDef) if f.name == last_name(inner)]
    own = list(parameters(found[0])) if len(found) == 1 else []
    return own[1:] if isinstance(inner, ast.Attribute) and own[:1] == ["self"] else own


# --- what changes

def _varies(look: Lookup, code: Syntax, call: ast.Call, given: ast.expr, one: Compiled, name: str) -> Finding | None:
    loops = [x for x in code.loops(call) if _long(look, code, x)]
    filtered = not (isinstance(one.made, ast.Call) and any(k.arg in _KEYWORDS for k in one.made.keywords))
    why = _Changing(look, code, loops, call).of(given, filtered)
    if why is None:
        return None
    how = "filter_jit takes Python numbers for static" if filtered else f"static argument {name}"
    return RULE.finding(
        f"{written(call.func)}, called at {code.at(call)}, is compiled for each value of {written(given)[:60]} ({how}),"
        f" and {why}: a new compilation in {'every call' if loops else 'each of them'}",
        one.code.place(one.made),
        one.code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "filter" if filtered else "static", "argument": name},
    )


def _long(look: Lookup, code: Syntax, loop: ast.AST) -> bool:
    """Whether a loop runs more than a few times, as far as one can tell."""
    if isinstance(loop, ast.While):
        return True
    over = getattr(loop, "iter", None)
    if isinstance(over, (ast.Tuple, ast.List, ast.Constant)):
        return False
    if isinstance(over, ast.Call) and last_name(over.func) == "range" and len(over.args) == 1:
        count = look.number(code, over.args[0])
        return count is None or count >= _FEW
    return over is not None


class _Changing:
    """Which Python numbers change from one call to the next."""

    def __init__(self, look: Lookup, code: Syntax, loops: list[ast.AST], call: ast.Call) -> None:
        self._look, self._code, self._loops, self._call = look, code, loops, call

    def of(self, node: ast.expr, number: bool, left: int = 8) -> str | None:
        """Why a value is another one in the next call. `number`: only if it certainly is a Python number."""
        if left <= 0:
            return None
        if isinstance(node, ast.Name):
            return self._name(node, number, left)
        if isinstance(node, ast.BinOp):
            if isinstance(node.op, (ast.Mod, ast.FloorDiv)) or _ARRAYS.search(written(node)):
                return None
            return self.of(node.left, number, left - 1) or self.of(node.right, number, left - 1)
        if isinstance(node, ast.UnaryOp):
            return None if isinstance(node.op, ast.Not) else self.of(node.operand, number, left - 1)
        if isinstance(node, ast.Call):
            return self._called(node, number, left)
        return None

    def _name(self, node: ast.Name, number: bool, left: int) -> str | None:
        for loop in self._loops:
            if isinstance(loop, (ast.For, ast.AsyncFor)) and self._counts(loop, node.id):
                return f"{node.id} counts the loop at line {loop.lineno}"
            for stored in (n for s in getattr(loop, "body", ()) for n in below(s)):
                if isinstance(stored, ast.AugAssign) and written(stored.target) == node.id and (
                        self._code.scope(stored) is self._code.scope(node)):  # fmt: skip
                    if _ARRAYS.search(written(stored.value)):
                        return None
                    return f"{written(stored)[:50]} changes it at line {stored.lineno}"
                if isinstance(stored, ast.Assign) and any(written(t) == node.id for t in stored.targets):
                    inner = self.of(stored.value, number, left - 1)
                    if inner is not None:
                        return inner
                    if node.id in names_in(stored.value) and self._goes_on(stored.value):
                        return f"{written(stored)[:50]} changes it at line {stored.lineno}"
        return None

    def _goes_on(self, value: ast.expr) -> bool:
        """`t * 0.99`, `max(low, t * 0.99)`: a Python number made from its former value."""
        if _ARRAYS.search(written(value)):
            return False
        plain = isinstance(value, ast.Call) and last_name(value.func) in _PLAIN
        return plain or (isinstance(value, ast.BinOp) and not isinstance(value.op, (ast.Mod, ast.FloorDiv)))

    def _counts(self, loop: ast.For | ast.AsyncFor, name: str) -> bool:
        """Whether a name is the counter of a loop: of range, or the first one of enumerate."""
        over = loop.iter
        while isinstance(over, ast.Call) and last_name(over.func) in ("tqdm", "track", "trange", "list") and over.args:
            if last_name(over.func) == "trange":
                break
            over = over.args[0]
        called = last_name(over.func) if isinstance(over, ast.Call) else ""
        if called in ("range", "trange", "count"):
            return isinstance(loop.target, ast.Name) and loop.target.id == name
        if called == "enumerate" and isinstance(loop.target, ast.Tuple):
            first = loop.target.elts[0]
            return isinstance(first, ast.Name) and first.id == name
        return False

    def _called(self, node: ast.Call, number: bool, left: int) -> str | None:
        name, full = last_name(node.func), self._code.qualified(node.func)
        values = [*node.args, *(k.value for k in node.keywords)]
        if name == "item" and not node.args:
            return f"{written(node)[:50]} is another number each time" if self._loops else None
        if full.startswith(("jax.", "numpy.", "optax.")):
            return None
        inner = next((w for v in values if (w := self.of(v, number, left - 1)) is not None), None)
        if inner is None:
            return None
        if name in _PLAIN or full.startswith("math."):
            return inner
        found = self._look.function(self._code, node.func)
        if found is not None:
            results = list(returned(found[1]))
            arrays = any(_ARRAYS.search(written(r)) for r in results) or not results
            few = any(isinstance(r, (ast.Compare, ast.BoolOp, ast.Constant)) for r in results)
            return None if arrays or few else inner
        return None
