"""Inputs and labels are put in different orders.

One of two sequences that belong together is sorted, shuffled or permuted, the other is not, or not by the same
permutation: a collate function that sorts the texts by length and leaves the labels, `shuffle(X)` without y,
`X[permutation(n)]` beside `y[permutation(n)]`. Every label then belongs to another sample and nothing can be learned
beyond their frequencies.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Location
from traindx_tools.invariants.pages import pages
from traindx_tools.on_code.definitions import own_nodes
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import SourceFile, below

(RULE,) = pages("data", ("C152",))

_PAIRING = frozenset({"TensorDataset", "zip", "fit", "train_test_split", "list_zip", "from_tensor_slices", "savez"})

_CHANGES_ORDER = {w: re.compile(w + r"\s*\(") for w in ("shuffle", "sort", "sorted", "permutation", "randperm",
                                                       "argsort")}  # fmt: skip
"""What a file says in which `_order` finds something. A pattern that begins with a plain word is searched fast."""


@dataclass(frozen=True)
class Order:
    """A statement that changes the order of one name: how it says so, and what makes two of them the same."""

    name: str
    node: ast.stmt
    how: str
    key: str
    """Equal for two changes by the same permutation."""
    by: str = ""
    """The name of the permutation, where it has one."""


def check(project: Project) -> Iterator[Finding]:
    """Look at every function, and every module's top level."""
    for file in project.files:
        if not any(word in file.text and file.mentions(call) for word, call in _CHANGES_ORDER.items()):
            continue
        scopes: list[list[ast.stmt]] = [file.tree.body]
        scopes += [n.body for n in below(file.tree) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))]
        for body in scopes:
            yield from _in_scope(file, body)


def _in_scope(file: SourceFile, body: list[ast.stmt]) -> Iterator[Finding]:
    nodes = list(own_nodes(body))
    drawn = _drawn(nodes)
    orders = [o for n in nodes if isinstance(n, (ast.Expr, ast.Assign)) for o in _order(n, drawn)]
    if not orders:
        return
    pairs = _pairs(nodes) | _siblings(nodes)
    if any(isinstance(n, ast.Call) and _last(n.func) in ("seed", "set_state", "setstate") for n in nodes):
        return  # the same permutation twice by the same seed
    for order in orders:
        partners = {b if a == order.name else a for a, b in pairs if order.name in (a, b)} - {order.name}
        for partner in sorted(partners):
            same = [o for o in orders if o.name == partner]
            if not _together(body, order, partner):
                continue
            if any(o.key == order.key for o in same) or _made_after(nodes, partner, order):
                continue
            if order.by and any(isinstance(n, (ast.Subscript, ast.Call, ast.ListComp)) and {partner, order.by} <= {
                    m.id for m in below(n) if isinstance(m, ast.Name)} for n in nodes):  # fmt: skip
                continue  # the partner meets the same permutation in another form
            if same and same[0].node.lineno < order.node.lineno:
                continue  # told once, at the first of the two
            yield _finding(file, order, partner, same[0] if same else None)


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _drawn(nodes: list[ast.AST]) -> dict[str, str]:
    """Names of permutations, and how each orders: drawn, or sorted by something."""
    found: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.value, ast.Call):
            name, last = _target(node.targets[0]), _last(node.value.func)
            if name is not None and last in ("permutation", "randperm", "argsort"):
                found[name] = "sorted" if last == "argsort" else "permuted"
    counts = [_target(t) for n in nodes if isinstance(n, ast.Assign) for t in n.targets]
    return {name: how for name, how in found.items() if counts.count(name) == 1}


def _order(node: ast.AST, drawn: Mapping[str, str]) -> Iterator[Order]:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        call, last = node.value, _last(node.value.func)
        if last == "shuffle" and len(call.args) == 1 and isinstance(call.args[0], ast.Name):
            yield Order(call.args[0].id, node, "shuffled", f"shuffle {node.lineno}")
        if last == "sort" and isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name):
            yield Order(call.func.value.id, node, "sorted", f"sort {node.lineno}")
    if not isinstance(node, ast.Assign) or len(node.targets) != 1 or not isinstance(node.targets[0], ast.Name):
        return
    name, value = node.targets[0].id, node.value
    if isinstance(value, ast.Call) and _last(value.func) == "sorted" and value.args and _target(value.args[0]) == name:
        yield Order(name, node, "sorted", f"sorted {node.lineno}")
    if not isinstance(value, ast.Subscript) or _target(value.value) != name:
        return
    by = value.slice
    if isinstance(by, ast.Call) and _last(by.func) in ("permutation", "randperm"):
        yield Order(name, node, "permuted", f"permutation {node.lineno}")
    if isinstance(by, ast.Name) and by.id in drawn:
        yield Order(name, node, drawn[by.id], f"by {by.id}", by.id)


def _pairs(nodes: list[ast.AST]) -> set[tuple[str, str]]:
    """Names that one call pairs element by element, and the halves of an unpacked call or zip."""
    found: set[tuple[str, str]] = set()
    for node in nodes:
        if isinstance(node, ast.Call) and _last(node.func) in _PAIRING:
            names = [n for a in node.args if (n := _root_name(a))]
            found.update((a, b) for i, a in enumerate(names) for b in names[i + 1 :])
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple) and _is_unzip(node.value):
            names = [t.id for t in node.targets[0].elts if isinstance(t, ast.Name)]
            found.update((a, b) for i, a in enumerate(names) for b in names[i + 1 :])
    return found


def _is_unzip(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Call) and _last(node.func) == "zip" and any(isinstance(a, ast.Starred) for a in node.args)
    )


def _root_name(node: ast.expr) -> str | None:
    """The array inside `torch.from_numpy(x)`, `torch.tensor(x).float()`."""
    for _ in range(6):
        if isinstance(node, ast.Name):
            return node.id
        if isinstance(node, ast.Call):
            method = isinstance(node.func, ast.Attribute) and not isinstance(node.func.value, ast.Name)
            if method and isinstance(node.func, ast.Attribute):
                node = node.func.value
            elif node.args:
                node = node.args[0]
            else:
                return None
        else:
            return None
    return None


def _siblings(nodes: list[ast.AST]) -> set[tuple[str, str]]:
    """Names made by one comprehension each over the same name, in which they take different parts of an item."""
    made: dict[str, list[tuple[str, str]]] = {}
    for node in nodes:
        if not isinstance(node, ast.Assign) or len(node.targets) != 1 or not isinstance(node.targets[0], ast.Name):
            continue
        inner = next((n for n in below(node.value) if isinstance(n, (ast.ListComp, ast.GeneratorExp))), None)
        if inner is None or len(inner.generators) != 1 or inner.generators[0].ifs:
            continue
        source = inner.generators[0].iter
        if isinstance(source, ast.Name):
            made.setdefault(source.id, []).append((node.targets[0].id, ast.unparse(inner.elt)))
    return {
        (a, b)
        for group in made.values()
        for i, (a, x) in enumerate(group)
        for b, y in group[i + 1 :]
        if x != y and a != b
    }


def _together(body: list[ast.stmt], order: Order, partner: str) -> bool:
    """Whether the statement stands beside (not in another branch than) a binding of the partner or of the name."""
    if order.node in body:
        return True
    for block in (n for s in body for n in below(s)):
        for field in ("body", "orelse", "finalbody"):
            statements = getattr(block, field, None)
            if isinstance(statements, list) and order.node in statements:
                bound = {_target(t) for s in statements if isinstance(s, ast.Assign) for t in s.targets}
                return not isinstance(block, ast.If) or partner not in bound
    return True


def _made_after(nodes: list[ast.AST], name: str, order: Order) -> bool:
    """Whether the partner is bound only after the change of order, and from what was ordered."""
    bound = [n for n in nodes if isinstance(n, ast.Assign) and any(
        name == _target(e) for t in n.targets for e in (t.elts if isinstance(t, ast.Tuple) else [t]))]  # fmt: skip
    return bool(bound) and all(n.lineno > order.node.lineno for n in bound)


def _target(node: ast.expr) -> str | None:
    return node.id if isinstance(node, ast.Name) else None


def _finding(file: SourceFile, order: Order, partner: str, other: Order | None) -> Finding:
    line = order.node.lineno
    apart = f"by a permutation of its own, {partner} by another"
    said = apart if other is not None else f"and {partner} keeps its order"
    return RULE.finding(
        f"{order.name} is {order.how} at {file.path}:{line} {said}: inputs and labels no longer belong together",
        Location(file=file.path, line=line, quote=file.line(line).strip()[:200]),
        file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": order.how, "moved": order.name, "left": partner},
    )
