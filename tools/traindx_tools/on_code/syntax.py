"""A source's syntax with what rules ask of it: who calls what, where a name comes from, which number stands there.

Rules that judge a written form (and not a flow of values) use it. One walk over a file serves them all.
"""

from __future__ import annotations

import ast
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from traindx_tools.finding import Location
from traindx_tools.on_code.answers import kept
from traindx_tools.on_code.names import canonical
from traindx_tools.on_code.nodes import (
    argument,
    computed,
    in_two_branches,
    last_name,
    literal,
    names_in,
    pairs_of,
    parameters,
    written,
)
from traindx_tools.on_code.source import SourceFile
from traindx_tools.on_code.tree import FunctionNode, Loops, Node, Tree
from traindx_tools.program.moments import Spot

__all__ = ["FunctionNode", "Loops", "Node", "Syntax", "argument", "computed", "last_name", "names_in", "parameters",
    "syntax", "written"]

_MOST_STEPS = 6
"""Assignments that are followed from a name to where its value comes from."""


@dataclass(frozen=True, eq=False)
class Syntax(Tree):
    """The tree with what its names stand for."""

    @cached_property
    def aliases(self) -> dict[str, str]:
        """What imported names stand for: {"nn": "torch.nn", "F": "torch.nn.functional"}."""
        found: dict[str, str] = {}
        for node in self.of(ast.Import):
            for alias in node.names:
                found[alias.asname or alias.name.partition(".")[0]] = (alias.name if alias.asname
                    else alias.name.partition(".")[0])
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
            for part, given in pairs_of(target, assigned):
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
        return self._bound_around(self.scope(name), key[1])

    @kept
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

    def origin(self, node: ast.expr) -> ast.expr:
        """Where a value comes from: names and attributes of self followed through the assignments that reach them."""
        for _ in range(_MOST_STEPS):
            before = self.assigned(node)
            if before is None or before is node:
                return node
            node = before
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
        before = bisect_left(bound, here.lineno, key=_line)
        holder = self.parent(bound[before - 1][0]) if before else None
        if holder is None or not any(a is holder for a in self.above(node)):
            return None
        reaching, value = bound[before - 1]
        passed = {id(x) for x in self.loops(reaching)}
        loops = {id(x): x for x in self.loops(node) if id(x) not in passed}
        if loops:  # an assignment further down comes before this place in the next turn
            end = bisect_right(bound, max(getattr(x, "end_lineno", 0) or 0 for x in loops.values()), key=_line)
            if any(id(x) in loops for s, _ in bound[before:end] for x in self.loops(s)):
                return None
        return value

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
                        return in_two_branches(up, *(way[id(up)] for way in ways))
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
        return Location(file=self.file.path, line=line, end_line=getattr(node, "end_lineno", None), module=name or None,
                        quote=self.file.quote(line))  # fmt: skip

    def spot(self, node: ast.AST) -> Spot:
        """The same in the terms of a program."""
        at = self.place(node)
        return Spot(self.file.path, at.line or 1, at.end_line, at.quote or "", at.module)

    def at(self, node: ast.AST) -> str:
        """`file.py:12`."""
        return f"{self.file.path}:{getattr(node, 'lineno', 1)}"


def _line(bound: tuple[ast.stmt, ast.expr]) -> int:
    return bound[0].lineno


@kept
def syntax(file: SourceFile) -> Syntax:
    """The syntax of a source, walked at the first request."""
    return Syntax(file)
