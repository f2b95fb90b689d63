"""A source's syntax tree: every node of a kind, every call of a name, and what stands around a node."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import TypeVar

from traindx_tools.on_code.answers import Keeps, kept
from traindx_tools.on_code.nodes import last_name, listed, written
from traindx_tools.on_code.source import SourceFile, below, children

Node = TypeVar("Node", bound=ast.AST)
FunctionNode = (ast.FunctionDef, ast.AsyncFunctionDef)
Loops = (ast.For, ast.AsyncFor, ast.While)
_ADDS = ("append", "extend", "appendleft", "insert", "add")
"""Methods by which a list, a deque or a set grows."""


def carried_by(node: ast.Assign) -> list[str]:
    """The names that a call is given and whose new value it returns: `y, state = cell(x, state)`."""
    given = [*node.value.args, *(k.value for k in node.value.keywords)] if isinstance(node.value, ast.Call) else []
    names = {a.id for a in given if isinstance(a, ast.Name)}
    bound = [e for t in node.targets for e in (t.elts if isinstance(t, ast.Tuple) else [t])] if names else []
    return [t.id for t in bound if isinstance(t, ast.Name) and t.id in names]


@dataclass(frozen=True, eq=False)
class Tree(Keeps):
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
        return listed((last_name(call.func), call) for call in self.of(ast.Call))

    def functions(self, name: str) -> list[ast.FunctionDef]:
        """Every function and method of this name."""
        return self._functions.get(name, [])

    @cached_property
    def _functions(self) -> dict[str, list[ast.FunctionDef]]:
        return listed((body.name, body) for body in self.of(ast.FunctionDef))

    @cached_property
    def stores(self) -> dict[str, list[ast.Name]]:
        """Every place that binds a name, by the name."""
        return listed((n.id, n) for n in self.of(ast.Name) if isinstance(n.ctx, ast.Store))

    @cached_property
    def gathering(self) -> frozenset[str]:
        """The names that hold more from turn to turn: `x += y`, `x = x + y`, `x.append(y)`, `x = f(x)`."""
        grown = [*(n.target for n in self.of(ast.AugAssign)),
                 *(n.targets[0] for n in self.of(ast.Assign) if isinstance(n.value, (ast.BinOp, ast.IfExp))),
                 *(n.value for n in self.of(ast.Attribute) if n.attr in _ADDS)]
        return frozenset(n.id for n in grown if isinstance(n, ast.Name)) | frozenset(
            name for n in self.of(ast.Assign) for name in carried_by(n))

    def calls(self, *names: str) -> list[ast.Call]:
        """Every call whose name ends in one of these."""
        return [c for n in names for c in self._calls.get(n, ())]

    def inside(self, scope: ast.AST, kind: type[Node]) -> list[Node]:
        """Every node of this kind below a function or the file, in the order of `ast.walk`; walked once."""
        return self._inside(scope).get(kind, [])  # type: ignore[return-value]

    @kept
    def _inside(self, scope: ast.AST) -> dict[type, list[ast.AST]]:
        return listed((node.__class__, node) for node in below(scope))

    def reads(self, scope: ast.AST, name: str) -> list[ast.Name]:
        """Every place below a function or the file that reads a name, in the order of `ast.walk`."""
        return self._reads(scope).get(name, [])

    @kept
    def _reads(self, scope: ast.AST) -> dict[str, list[ast.Name]]:
        return listed((n.id, n) for n in self.inside(scope, ast.Name) if isinstance(n.ctx, ast.Load))

    def calls_in(self, scope: ast.AST, *names: str) -> list[ast.Call]:
        """Every call below a function or the file whose name ends in one of these."""
        found = self._calls_in(scope)
        return [c for n in names for c in found.get(n, ())]

    @kept
    def _calls_in(self, scope: ast.AST) -> dict[str, list[ast.Call]]:
        return listed((last_name(call.func), call) for call in self.inside(scope, ast.Call))

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
        return listed((written(target.value), statement) for statement in self.of(ast.Assign)
                      if isinstance(target := statement.targets[0], ast.Subscript))

    def loops(self, node: ast.AST) -> list[ast.AST]:
        """The loops around a node within its function, innermost first."""
        found: list[ast.AST] = []
        for up in self.above(node):
            if isinstance(up, (*FunctionNode, ast.Lambda, ast.ClassDef)):
                break
            if isinstance(up, Loops):
                found.append(up)
        return found
