"""The names of a model's parameters, and which of them a hand-written choice by name takes.

`[p for n, p in net.named_parameters() if "enc" in n]` takes what it takes: the names are made from the attributes of
the model, the conditions are worked out for each of them, and what cannot be worked out counts as taken.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from traindx_tools.on_code.syntax import Syntax, last_name, written
from traindx_tools.on_code.values import Bag, Const, Instance, Table, Thing, Value

DEEPEST, MOST_PARTS, MOST_LEAVES = 8, 400, 40

LEARNS = ("Linear", "LazyLinear", "Bilinear", "Conv", "LazyConv", "Embedding", "LSTM", "GRU", "RNN", "Transformer",
          "MultiheadAttention", "Parameter")  # fmt: skip
"""Classes of torch.nn with weights, by how their names begin."""
_INNER = ("weight", "bias", "weight_ih_l0", "bias_ih_l0", "in_proj_weight", "out_proj.weight",
          "self_attn.in_proj_weight", "linear1.weight", "linear2.weight", "norm1.weight",
          "layers.0.linear1.weight")  # fmt: skip
"""What parameters inside a layer of torch.nn are called; a choice by name may go by any of them."""


def learns(part: Value) -> bool:
    """Whether a module is a layer of torch.nn with weights."""
    return isinstance(part, Thing) and part.type.startswith("torch.nn.") and part.short.startswith(LEARNS)


def named_parts(whole: Instance | Thing) -> list[tuple[str, Value]]:
    """(path, module or parameter) of everything inside a model that is known, the outer ones first."""
    found: list[tuple[str, Value]] = []
    seen: set[int] = {id(whole)}
    queue: list[tuple[str, Value]] = list(whole.attrs.items() if isinstance(whole, Instance) else _children(whole))
    for path, value in queue:
        if id(value) in seen or path.count(".") > DEEPEST or len(found) >= MOST_PARTS:
            continue
        if isinstance(value, Instance) and value.klass.info.is_module:
            inner: list[tuple[str, Value]] = list(value.attrs.items())
        elif isinstance(value, Thing) and value.type.startswith("torch.nn."):
            inner = list(_children(value))
        else:
            continue
        seen.add(id(value))
        found.append((path, value))
        queue += [(f"{path}.{name}", child) for name, child in inner]
    return found


def _children(layer: Thing) -> Iterator[tuple[str, Value]]:
    given: Sequence[Value] = layer.args
    if len(given) == 1 and isinstance(given[0], Table):
        yield from ((str(k), v) for k, v in given[0].items.items())
        return
    if len(given) == 1 and isinstance(given[0], Bag):
        given = given[0].items
    yield from ((str(i), v) for i, v in enumerate(given) if isinstance(v, (Thing, Instance)))
    yield from layer.state.get("attrs", {}).items()


def parameter_names(path: str, part: Value) -> list[str]:
    """The names that the parameters of a layer may have; empty for what is no layer."""
    if not isinstance(part, Thing):
        return []
    return [path] if part.short == "Parameter" else [f"{path}.{inner}" for inner in _INNER]


@dataclass(frozen=True)
class Choice:
    """Parameters chosen by name: `model` as it is written, the names of the loop's variables, what must hold."""

    model: str
    name: str
    conditions: tuple[ast.expr, ...]
    body: tuple[ast.stmt, ...] = ()
    lists: frozenset[str] = frozenset()
    """For a loop that sorts into lists: the lists that the optimizer is given."""

    def takes(self, name: str, code: Syntax) -> bool:
        """Whether a parameter of this name is, or may be, among them."""
        if self.body:
            taken = _sorted_into(self.body, self.name, name, code)
            return taken is None or bool(taken[0] & self.lists)
        return all(_holds(c, self.name, name, code) is not False for c in self.conditions)


def leaves(code: Syntax, given: ast.expr) -> list[ast.expr] | None:
    """What an optimizer is given, with groups, lists and sums taken apart; None where that is unknown."""
    found: list[ast.expr] = []
    queue: list[ast.expr] = [given]
    for node in queue:
        if len(queue) > MOST_LEAVES:
            return None
        if isinstance(node, (ast.List, ast.Tuple)) and node.elts:
            queue += node.elts
        elif isinstance(node, ast.Starred):
            queue.append(node.value)
        elif isinstance(node, ast.Dict):
            inner = [v for k, v in zip(node.keys, node.values, strict=True)
                     if isinstance(k, ast.Constant) and k.value == "params"]
            if len(inner) != 1:
                return None
            queue.append(inner[0])
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            queue += [node.left, node.right]
        elif isinstance(node, ast.Call) and last_name(node.func) in ("list", "chain", "tuple") and node.args:
            queue += node.args
        elif isinstance(node, ast.Call) and last_name(node.func) == "dict" and _params(node):
            queue += _params(node)
        elif isinstance(node, ast.Name) and (value := code.assigned(node)) is not None and not _empty(value):
            queue.append(value)
        else:
            found.append(node)
    return found


def _params(call: ast.Call) -> list[ast.expr]:
    return [k.value for k in call.keywords if k.arg == "params"]


def _empty(node: ast.expr) -> bool:
    return isinstance(node, ast.List) and not node.elts


def _sorted_into(body: Sequence[ast.stmt], variable: str, name: str, code: Syntax) -> tuple[set[str], bool] | None:
    """The lists that a loop may append a parameter to, and whether it may go on from there; None: unknown."""
    taken: set[str] = set()
    for statement in body:
        if isinstance(statement, (ast.Continue, ast.Break)):
            return taken, False
        if isinstance(statement, ast.If):
            holds = _holds(statement.test, variable, name, code)
            ways = [statement.body] * (holds is not False) + [statement.orelse] * (holds is not True)
            results = [_sorted_into(way, variable, name, code) for way in ways]
            if None in results:
                return None
            taken |= set().union(*(r[0] for r in results if r is not None))
            if not any(r[1] for r in results if r is not None):
                return taken, False
        elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            call = statement.value
            if last_name(call.func) == "append" and isinstance(call.func, ast.Attribute):
                if not isinstance(call.func.value, ast.Name):
                    return None
                taken.add(call.func.value.id)
            elif last_name(call.func) not in ("print", "info", "debug", "warning"):
                return None
        elif not isinstance(statement, (ast.Pass, ast.Assign, ast.AugAssign, ast.Expr)):
            return None
    return taken, True


def _holds(test: ast.expr, variable: str, name: str, code: Syntax) -> bool | None:
    """Whether a condition holds of this name; None where it cannot be worked out."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = _holds(test.operand, variable, name, code)
        return None if inner is None else not inner
    if isinstance(test, ast.BoolOp):
        known = [_holds(v, variable, name, code) for v in test.values]
        decisive = isinstance(test.op, ast.Or)
        if decisive in known:
            return decisive
        return None if None in known else not decisive
    if isinstance(test, ast.Attribute) and test.attr == "requires_grad":
        return True
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return _compared(test, variable, name, code)
    if isinstance(test, ast.Call):
        return _called(test, variable, name, code)
    return None


def _compared(test: ast.Compare, variable: str, name: str, code: Syntax) -> bool | None:
    op, right = test.ops[0], test.comparators[0]
    if isinstance(op, (ast.In, ast.NotIn)):
        found: bool | None = None
        if written(right) == variable and isinstance(part := _constant(test.left, code), str):
            found = part in name
        elif (text := _text(test.left, variable, name)) is not None:
            wanted = _constant(right, code)
            found = text in wanted if isinstance(wanted, (list, tuple, set)) else None
        return None if found is None else found == isinstance(op, ast.In)
    if isinstance(op, (ast.Eq, ast.NotEq)):
        text, other = _text(test.left, variable, name), _constant(right, code)
        if text is not None and isinstance(other, str):
            return (text == other) == isinstance(op, ast.Eq)
    return None


def _text(node: ast.expr, variable: str, name: str) -> str | None:
    """`n`, or `n.split(".")[0]`."""
    if written(node) == variable:
        return name
    if isinstance(node, ast.Subscript) and written(node.value) in (f"{variable}.split('.')",):
        index = node.slice
        pieces = name.split(".")
        if isinstance(index, ast.Constant) and isinstance(index.value, int) and index.value < len(pieces):
            return pieces[index.value]
    return None


def _called(test: ast.Call, variable: str, name: str, code: Syntax) -> bool | None:
    method = last_name(test.func)
    if isinstance(test.func, ast.Attribute) and written(test.func.value) == variable and test.args:
        wanted = _constant(test.args[0], code)
        if isinstance(wanted, (str, tuple)) and method in ("startswith", "endswith"):
            return bool(getattr(name, method)(wanted))
        return None
    if method in ("search", "match", "fullmatch") and len(test.args) == 2 and written(test.args[1]) == variable:
        return _matched(_constant(test.args[0], code), method, name)
    if method in ("any", "all") and len(test.args) == 1 and isinstance(test.args[0], (ast.GeneratorExp, ast.ListComp)):
        return _any(test.args[0], method, variable, name, code)
    return None


def _matched(pattern: object, method: str, name: str) -> bool | None:
    """Plain patterns alone: a regular expression of somebody's can take for ever."""
    if not isinstance(pattern, str) or not re.fullmatch(r"[\w.|^$\\]{1,200}", pattern):
        return None
    try:
        return getattr(re, method)(pattern, name) is not None
    except re.error:
        return None


def _any(inner: ast.GeneratorExp | ast.ListComp, method: str, variable: str, name: str, code: Syntax) -> bool | None:
    """`any(k in n for k in ["enc", "dec"])`."""
    one = inner.generators[0]
    wanted = _constant(one.iter, code)
    if len(inner.generators) != 1 or one.ifs or not isinstance(one.target, ast.Name):
        return None
    if not isinstance(wanted, (list, tuple, set)) or not all(isinstance(w, str) for w in wanted):
        return None
    test, key = inner.elt, one.target.id
    if isinstance(test, ast.Compare) and written(test) == f"{key} in {variable}":
        known = [w in name for w in wanted]
    elif isinstance(test, ast.Call) and re.fullmatch(rf"{variable}\.(starts|ends)with\({key}\)", written(test)):
        known = [getattr(name, last_name(test.func))(w) for w in wanted]
    else:
        return None
    return any(known) if method == "any" else all(known)


def _constant(node: ast.expr, code: Syntax) -> object:
    if isinstance(node, ast.Name):
        value = code.assigned(node)
        if value is None:
            return None
        node = value
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def affine(part: Value) -> bool:
    """Whether a norm of torch.nn has a scale of its own to learn."""
    if not isinstance(part, Thing) or not part.short.startswith(("LayerNorm", "GroupNorm", "BatchNorm", "RMSNorm")):
        return False
    told = part.kwargs.get("elementwise_affine", part.kwargs.get("affine"))
    return not (isinstance(told, Const) and told.value is False)
