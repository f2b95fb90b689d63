"""A source's syntax with what rules ask of it: who calls what, where a name comes from, which number stands there.

Rules that judge a written form (and not a flow of values) use it. One walk over a file serves them all.
"""

from __future__ import annotations

import ast
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import TypeVar

from traindx_tools.finding import Location
from traindx_tools.on_code.configured import literal
from traindx_tools.on_code.names import canonical
from traindx_tools.on_code.source import SourceFile, below, children

Node = TypeVar("Node", bound=ast.AST)
FunctionNode = (ast.FunctionDef, ast.AsyncFunctionDef)
Loops = (ast.For, ast.AsyncFor, ast.While)
_MOST_STEPS = 6
"""Assignments that are followed from a name to where its value comes from."""


def last_name(node: ast.AST | None) -> str:
    """The last part of a dotted name: "step" of `optimizer.step`."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def method_of(node: ast.AST, names: Collection[str]) -> ast.expr | None:
    """What one of these methods is called on: `x` of `x.view(1, -1)`; None of anything else."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in names:
        return node.func.value
    return None


def written(node: ast.AST | None) -> str:
    """The text of an expression, "" where there is none."""
    parts: list[str] = []
    head = node
    while isinstance(head, ast.Attribute):  # nearly always a dotted name, which needs no unparser
        parts.append(head.attr)
        head = head.value
    if isinstance(head, ast.Name):
        return ".".join([head.id, *reversed(parts)]) if parts else head.id
    return "" if node is None else ast.unparse(node)


def names_in(node: ast.AST) -> set[str]:
    """Every plain name that is read or bound below a node."""
    return {n.id for n in below(node) if isinstance(n, ast.Name)}


def argument(call: ast.Call, position: int, *names: str) -> ast.expr | None:
    """A call's argument by keyword or position; None where it is not given."""
    for keyword in call.keywords:
        if keyword.arg in names:
            return keyword.value
    plain = call.args[: next((i for i, a in enumerate(call.args) if isinstance(a, ast.Starred)), len(call.args))]
    return plain[position] if 0 <= position < len(plain) else None


@dataclass(frozen=True, eq=False)
class Syntax:
    """One source, walked once."""

    file: SourceFile

    @cached_property
    def _walked(self) -> tuple[dict[type, list[ast.AST]], dict[int, ast.AST]]:
        kinds: dict[type, list[ast.AST]] = {}
        parents: dict[int, ast.AST] = {}
        queue: list[ast.AST] = [self.file.tree]
        for node in queue:
            same = kinds.get(node.__class__)
            if same is None:
                same = kinds[node.__class__] = []
            same.append(node)
            held = children(node)
            for child in held:
                parents[id(child)] = node
            queue += held
        for nodes in kinds.values():
            if hasattr(nodes[0], "lineno"):
                nodes.sort(key=attrgetter("lineno"))
        return kinds, parents

    def of(self, kind: type[Node]) -> list[Node]:
        """Every node of this kind, from the top of the file down."""
        return self._walked[0].get(kind, [])  # type: ignore[return-value]

    @cached_property
    def _calls(self) -> dict[str, list[ast.Call]]:
        found: dict[str, list[ast.Call]] = {}
        for call in self.of(ast.Call):
            found.setdefault(last_name(call.func), []).append(call)
        return found

    def functions(self, name: str) -> list[ast.FunctionDef]:
        """Every function and method of this name."""
        return self._functions.get(name, [])

    @cached_property
    def _functions(self) -> dict[str, list[ast.FunctionDef]]:
        found: dict[str, list[ast.FunctionDef]] = {}
        for body in self.of(ast.FunctionDef):
            found.setdefault(body.name, []).append(body)
        return found

    @property
    def called(self) -> Iterable[str]:
        """The last parts of the names of all calls."""
        return self._calls

    def calls(self, *names: str) -> list[ast.Call]:
        """Every call whose name ends in one of these."""
        return [c for n in names for c in self._calls.get(n, ())]

    def inside(self, scope: ast.AST, kind: type[Node]) -> list[Node]:
        """Every node of this kind below a function or the file, in the order of `ast.walk`; walked once."""
        known = self._inside.get(id(scope))
        if known is None:
            known = self._inside[id(scope)] = scope, {}
            for node in below(scope):
                known[1].setdefault(node.__class__, []).append(node)
        return known[1].get(kind, [])  # type: ignore[return-value]

    @cached_property
    def _inside(self) -> dict[int, tuple[ast.AST, dict[type, list[ast.AST]]]]:
        return {}

    def reads(self, scope: ast.AST, name: str) -> list[ast.Name]:
        """Every place below a function or the file that reads a name, in the order of `ast.walk`."""
        found = self._reads.get(id(scope))
        if found is None:
            found = self._reads[id(scope)] = {}
            for node in self.inside(scope, ast.Name):
                if isinstance(node.ctx, ast.Load):
                    found.setdefault(node.id, []).append(node)
        return found.get(name, [])

    def calls_in(self, scope: ast.AST, *names: str) -> list[ast.Call]:
        """Every call below a function or the file whose name ends in one of these."""
        found = self._calls_in.get(id(scope))
        if found is None:
            found = self._calls_in[id(scope)] = {}
            for call in self.inside(scope, ast.Call):
                found.setdefault(last_name(call.func), []).append(call)
        return [c for n in names for c in found.get(n, ())]

    @cached_property
    def _calls_in(self) -> dict[int, dict[str, list[ast.Call]]]:
        return {}

    @cached_property
    def _reads(self) -> dict[int, dict[str, list[ast.Name]]]:
        return {}

    def parent(self, node: ast.AST) -> ast.AST | None:
        """The node that holds this one."""
        return self._walked[1].get(id(node))

    def above(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around this one, innermost first."""
        up = self.parent(node)
        while up is not None:
            yield up
            up = self.parent(up)

    def function(self, node: ast.AST) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
        """The innermost function around a node."""
        parent, known, passed = self._walked[1].get, self._around_if, []
        up, found = parent(id(node)), None
        while up is not None:
            if isinstance(up, FunctionNode):
                found = up
                break
            if up.__class__ is ast.If:  # `elif` after `elif` nest: each is passed once
                if id(up) in known:
                    found = known[id(up)]
                    break
                passed.append(id(up))
            up = parent(id(up))
        for arm in passed:
            known[arm] = found
        return found

    @cached_property
    def _around_if(self) -> dict[int, ast.FunctionDef | ast.AsyncFunctionDef | None]:
        return {}

    def owner(self, node: ast.AST) -> ast.ClassDef | None:
        """The innermost class around a node."""
        return next((a for a in self.above(node) if isinstance(a, ast.ClassDef)), None)

    def scope(self, node: ast.AST) -> ast.FunctionDef | ast.AsyncFunctionDef | ast.Module:
        """The innermost function around a node, or the file's top level."""
        return self.function(node) or self.file.tree

    def statement(self, node: ast.AST) -> ast.stmt | None:
        """The statement that a node stands in."""
        return next((a for a in (node, *self.above(node)) if isinstance(a, ast.stmt)), None)

    def block(self, statement: ast.AST) -> list[ast.stmt]:
        """The list of statements in which a statement stands; empty where it stands in none."""
        return self._blocks.get(id(statement), [])

    @cached_property
    def _blocks(self) -> dict[int, list[ast.stmt]]:
        found: dict[int, list[ast.stmt]] = {}
        for kind, nodes in self._walked[0].items():
            names = [n for n in ("finalbody", "orelse", "body") if n in getattr(kind, "_fields", ())]
            for held in (getattr(node, name) for node in nodes for name in names):
                if isinstance(held, list):
                    found.update((id(s), held) for s in held)
        return found

    @cached_property
    def item_stores(self) -> dict[str, list[ast.Assign]]:
        """Assignments to an item, by the text of what holds it: `table` for `table[key] = value`."""
        found: dict[str, list[ast.Assign]] = {}
        for statement in self.of(ast.Assign):
            target = statement.targets[0]
            if isinstance(target, ast.Subscript):
                found.setdefault(written(target.value), []).append(statement)
        return found

    def loops(self, node: ast.AST) -> list[ast.AST]:
        """The loops around a node within its function, innermost first."""
        found: list[ast.AST] = []
        for up in self.above(node):
            if isinstance(up, (*FunctionNode, ast.Lambda, ast.ClassDef)):
                break
            if isinstance(up, Loops):
                found.append(up)
        return found

    @cached_property
    def aliases(self) -> dict[str, str]:
        """What imported names stand for: {"nn": "torch.nn", "F": "torch.nn.functional"}."""
        found: dict[str, str] = {}
        for node in self.of(ast.Import):
            for alias in node.names:
                found[alias.asname or alias.name.partition(".")[0]] = (
                    alias.name if alias.asname else alias.name.partition(".")[0]
                )
        for origin in self.of(ast.ImportFrom):
            for alias in origin.names:
                found[alias.asname or alias.name] = f"{origin.module or ''}.{alias.name}".lstrip(".")
        return found

    def qualified(self, node: ast.AST) -> str:
        """The full name of what is called: "jax.numpy.where" of `jnp.where`; "" where its head is not imported."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        head = self.aliases.get(node.id) if isinstance(node, ast.Name) else None
        return canonical(".".join([head, *reversed(parts)])) if head is not None else ""

    @cached_property
    def _bound(self) -> dict[tuple[int, str], list[tuple[ast.stmt, ast.expr]]]:
        found: dict[tuple[int, str], list[tuple[ast.stmt, ast.expr]]] = {}
        for statement, target, assigned in self._assignments():
            for part, given in _pairs(target, assigned):
                key = self._key(part)
                if key is not None:
                    found.setdefault(key, []).append((statement, given))
        for (_, name), bound in found.items():
            if not name.startswith("self."):
                bound.sort(key=lambda b: b[0].lineno)
        for call in self.calls("register_buffer"):
            named, owner = argument(call, 0, "name"), self.owner(call)
            value = argument(call, 1, "tensor")
            around = self.statement(call)
            if isinstance(named, ast.Constant) and owner is not None and value is not None and around is not None:
                found.setdefault((id(owner), "self." + str(named.value)), []).append((around, value))
        return found

    def _assignments(self) -> Iterator[tuple[ast.stmt, ast.expr, ast.expr]]:
        for node in self.of(ast.Assign):
            yield from ((node, target, node.value) for target in node.targets)
        for annotated in self.of(ast.AnnAssign):
            if annotated.value is not None:
                yield annotated, annotated.target, annotated.value

    def _key(self, target: ast.AST) -> tuple[int, str] | None:
        if isinstance(target, ast.Name):
            return id(self.scope(target)), target.id
        if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self":
            owner = self.owner(target)
            return (id(owner), f"self.{target.attr}") if owner is not None else None
        return None

    def bindings(self, name: ast.AST) -> list[tuple[ast.stmt, ast.expr]]:
        """The assignments of a name or an attribute of self, in the nearest scope that has any."""
        if isinstance(name, ast.Name) and name.id not in self._bound_names:
            return []
        key = self._key(name)
        if key is None:
            return []
        if isinstance(name, ast.Attribute):
            return self._bound.get(key, [])
        known = self._nearest.get(key)
        if known is None:
            known = self._nearest[key] = self._bound_around(self.scope(name), key[1])
        return known

    def _bound_around(self, scope: ast.AST, name: str) -> list[tuple[ast.stmt, ast.expr]]:
        """The assignments of a name in a function, or in the nearest one around it that has any."""
        for at in (scope, *(a for a in self.above(scope) if isinstance(a, FunctionNode)), self.file.tree):
            if (id(at), name) in self._bound:
                return self._bound[id(at), name]
            if isinstance(at, FunctionNode) and name in parameters(at):
                return []
        return []

    @cached_property
    def _bound_names(self) -> frozenset[str]:
        return frozenset(name for _, name in self._bound)

    @cached_property
    def _nearest(self) -> dict[tuple[int, str], list[tuple[ast.stmt, ast.expr]]]:
        return {}

    def origin(self, node: ast.expr) -> ast.expr:
        """Where a value comes from: names and attributes of self followed through the assignments that reach them."""
        for _ in range(_MOST_STEPS):
            before = self.assigned(node)
            if before is None or before is node:
                return node
            node = before
        return node

    def unwrapped(self, node: ast.expr, inner: Callable[[ast.expr], ast.expr | None]) -> ast.expr:
        """The origin of a value without what stands around it: `inner` gives what a wrapper holds, None of anything
        else. `mean = mean.view(1, -1)` leads back to itself and ends there.
        """
        seen: set[int] = set()
        node = self.origin(node)
        while id(node) not in seen and (held := inner(node)) is not None:
            seen.add(id(node))
            node = self.origin(held)
        return node

    def assigned(self, node: ast.AST) -> ast.expr | None:
        """The value that a name holds at this point, where one assignment certainly reaches it."""
        if not isinstance(node, (ast.Name, ast.Attribute)):
            return None
        bound = self.bindings(node)
        if len(bound) <= 1:
            return bound[0][1] if bound and not self.apart(bound[0][0], node) else None
        here = self.statement(node)
        if here is None or isinstance(node, ast.Attribute):
            return None
        lines = self._lines(bound)
        before = bisect_left(lines, here.lineno)
        holder = self.parent(bound[before - 1][0]) if before else None
        if holder is None or not any(a is holder for a in self.above(node)):
            return None
        reaching, value = bound[before - 1]
        passed = {id(x) for x in self.loops(reaching)}
        loops = {id(x): x for x in self.loops(node) if id(x) not in passed}
        if loops:  # an assignment further down comes before this place in the next turn
            end = bisect_right(lines, max(getattr(x, "end_lineno", 0) or 0 for x in loops.values()))
            if any(id(x) in loops for s, _ in bound[before:end] for x in self.loops(s)):
                return None
        return value

    def _lines(self, bound: list[tuple[ast.stmt, ast.expr]]) -> list[int]:
        """The lines of the assignments of one name, which come in their order."""
        known = self._lines_of.get(id(bound))
        if known is None:
            known = self._lines_of[id(bound)] = [s.lineno for s, _ in bound]
        return known

    @cached_property
    def _lines_of(self) -> dict[int, list[int]]:
        return {}

    def apart(self, one: ast.AST, other: ast.AST) -> bool:
        """Whether two nodes stand in the two branches of one condition."""
        ways: tuple[dict[int, ast.AST], ...] = ({}, {})
        """For each of the two: the nodes above it, by which child of theirs it is reached."""
        ends: list[ast.AST | None] = [one, other]
        while any(ends):
            for side, node in enumerate(ends):
                up = self.parent(node) if node is not None else None
                if node is not None and up is not None:
                    ways[side][id(up)] = node
                    if id(up) in ways[1 - side]:
                        return _differ(up, *(way[id(up)] for way in ways))
                ends[side] = up
        return False

    def number(self, node: ast.AST | None) -> float | None:
        """The number of an expression: constants, arithmetic, single assignments, defaults, options of argparse."""
        return self._number(node, _MOST_STEPS)

    def _number(self, node: ast.AST | None, left: int) -> float | None:
        if not isinstance(node, ast.expr) or left <= 0:
            return None
        known = literal(node)
        if isinstance(known, (int, float)) and not isinstance(known, bool):
            return float(known)
        if isinstance(node, ast.BinOp):
            a, b = self._number(node.left, left - 1), self._number(node.right, left - 1)
            return None if a is None or b is None else computed(node.op, a, b)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            inner = self._number(node.operand, left - 1)
            return None if inner is None else -inner
        values = [v for _, v in self.bindings(node)] if isinstance(node, (ast.Name, ast.Attribute)) else []
        if values:
            return self._number(self.assigned(node), left - 1)
        if isinstance(node, ast.Name) and not values:
            return self._number(self.default(node), left - 1)
        if isinstance(node, ast.Attribute) and not values:
            return self._number(self.options.get(node.attr), left - 1)
        return None

    def default(self, name: ast.Name) -> ast.expr | None:
        """The default of the parameter that a name is, in the nearest function that has it."""
        for up in self.above(name):
            if isinstance(up, FunctionNode) and name.id in parameters(up):
                return parameters(up)[name.id]
        return None

    @cached_property
    def options(self) -> dict[str, ast.expr]:
        """Defaults by attribute: options of argparse, fields of classes."""
        found: dict[str, ast.expr] = {}
        for call in self.calls("add_argument"):
            texts = [a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
            default = argument(call, 99, "default")
            if texts and default is not None:
                found[max(texts, key=len).lstrip("-").replace("-", "_")] = default
        for node in self.of(ast.AnnAssign):
            if isinstance(self.parent(node), ast.ClassDef) and isinstance(node.target, ast.Name) and node.value:
                found.setdefault(node.target.id, node.value)
        return found

    def place(self, node: ast.AST) -> Location:
        """The place of a node, with its line quoted and the function named."""
        line = getattr(node, "lineno", 1)
        function, owner = self.function(node), self.owner(node)
        name = ".".join(n.name for n in (owner, function) if n is not None)
        quote = self.file.line(line).strip()[:200]
        return Location(file=self.file.path, line=line, end_line=getattr(node, "end_lineno", None), module=name or None,
                        quote=quote)  # fmt: skip

    def at(self, node: ast.AST) -> str:
        """`file.py:12`."""
        return f"{self.file.path}:{getattr(node, 'lineno', 1)}"


def _differ(condition: ast.AST, one: ast.AST, other: ast.AST) -> bool:
    """Whether two children of a condition are in its two branches."""
    if not isinstance(condition, (ast.If, ast.IfExp)) or condition.test in (one, other):
        return False
    body = condition.body if isinstance(condition.body, list) else [condition.body]
    return any(one is s for s in body) != any(other is s for s in body)


def syntax(file: SourceFile) -> Syntax:
    """The syntax of a source, walked at the first request."""
    known: Syntax | None = file.__dict__.get("_syntax")
    if known is None:
        known = file.__dict__["_syntax"] = Syntax(file)
    return known


def parameters(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> dict[str, ast.expr | None]:
    """A function's parameters with their defaults."""
    spec = node.args
    plain = [*spec.posonlyargs, *spec.args]
    found: dict[str, ast.expr | None] = {a.arg: None for a in plain}
    found.update({a.arg: d for a, d in zip(plain[len(plain) - len(spec.defaults) :], spec.defaults, strict=True)})
    found.update({a.arg: d for a, d in zip(spec.kwonlyargs, spec.kw_defaults, strict=True)})
    return found


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    if isinstance(target, (ast.Tuple, ast.List)):
        if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts):
            for part, item in zip(target.elts, value.elts, strict=True):
                yield from _pairs(part, item)
        else:
            for i, part in enumerate(target.elts):
                yield part, ast.copy_location(ast.Subscript(value, ast.Constant(i), ast.Load()), value)
    else:
        yield target, value


def computed(op: ast.operator, a: float, b: float) -> float | None:
    """The result of one of the four operations on two numbers; None of another one, or for a division by 0."""
    if isinstance(op, ast.Add):
        return a + b
    if isinstance(op, ast.Sub):
        return a - b
    if isinstance(op, ast.Mult):
        return a * b
    if isinstance(op, ast.Div) and b:
        return a / b
    return None
