"""Outputs of a network that are put into a new leaf before the loss: `torch.tensor(model(x), requires_grad=True)`.

The new tensor asks for a gradient, so backward runs without an error and fills the gradient of that leaf alone.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.on_code.bootstrapping import suspended
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, argument, last_name, written

_NEW = frozenset({"torch.tensor", "torch.as_tensor", "torch.from_numpy", "torch.FloatTensor", "torch.Tensor",
                  "torch.autograd.Variable", "torch.HalfTensor", "torch.DoubleTensor"})  # fmt: skip
_CUTS = frozenset({"detach", "detach_", "item", "numpy", "tolist", "data"})
_SAME = frozenset({
    "detach", "detach_", "item", "numpy", "tolist", "cpu", "cuda", "to", "float", "double", "half", "clone", "squeeze",
    "view", "reshape", "flatten", "unsqueeze", "contiguous", "requires_grad_", "type", "permute", "transpose", "astype",
    "copy", "softmax", "sigmoid", "log_softmax", "mean", "sum", "round", "argmax", "array", "asarray", "float32",
})  # fmt: skip
_LOSS = re.compile(r"loss|criterion|cross_entropy|nll|objective|_div$|^mse|^l1$|^bce", re.IGNORECASE)
_NO_NETWORK = re.compile(r"token|process|load|encode_plus|^get|^make|^sample$|^reset$|^step$|^next$|collate|transform"
                         r"|^read|^range$|^len$|^zip$|^list$|^generate$", re.IGNORECASE)  # fmt: skip
_DEEP = 12


@dataclass(frozen=True)
class Rewrapped:
    """The expression that makes the new leaf, the call of the network in it, and what the loss is."""

    leaf: ast.expr
    network: ast.Call
    loss: ast.Call | None


def rewrapped(code: Syntax) -> Iterator[Rewrapped]:
    """Every new leaf made from a network's output that goes straight into a loss which is sent backward."""
    for leaf in _leaves(code):
        network = _network(code, leaf)
        if network is None or suspended(code, leaf) or _gradient_read(code, leaf):
            continue
        loss = _loss(code, leaf)
        if loss is not None:
            yield Rewrapped(leaf, network, loss)
        elif _sent(code, leaf, direct=True) and _holds_loss(code, leaf):
            yield Rewrapped(leaf, network, None)


def _leaves(code: Syntax) -> Iterator[ast.expr]:
    """New tensors that are said to require a gradient, at once or in a later statement."""
    for call in code.of(ast.Call):
        asked = argument(call, 99, "requires_grad")
        if isinstance(asked, ast.Constant) and asked.value is True and _is_new(code, call):
            yield call
        elif last_name(call.func) == "requires_grad_" and isinstance(call.func, ast.Attribute) and not _off(call):
            yield from _said_later(code, call.func.value, call)
    for assign in code.of(ast.Assign):
        target = assign.targets[0]
        on = isinstance(assign.value, ast.Constant) and assign.value.value is True
        if on and isinstance(target, ast.Attribute) and target.attr == "requires_grad":
            yield from _said_later(code, target.value, None)


def _said_later(code: Syntax, tensor: ast.expr, call: ast.Call | None) -> Iterator[ast.expr]:
    made = code.assigned(tensor) if isinstance(tensor, ast.Name) else tensor
    if made is None or not _cut(code, made):
        return
    if isinstance(tensor, ast.Name):
        yield made
    elif call is not None:
        yield call


def _is_new(code: Syntax, call: ast.Call) -> bool:
    return code.qualified(call.func) in _NEW


def _off(call: ast.Call) -> bool:
    given = argument(call, 0, "requires_grad")
    return given is not None and not (isinstance(given, ast.Constant) and given.value is True)


def _cut(code: Syntax, node: ast.expr) -> bool:
    """Whether a value is a new tensor or carries no graph: `x.detach().clone()`, `torch.tensor(x).to(device)`."""
    for _ in range(_DEEP):
        if isinstance(node, ast.Attribute):
            if node.attr == "data":
                return True
            node = node.value
        elif isinstance(node, ast.Call):
            if _is_new(code, node) or last_name(node.func) in _CUTS:
                return True
            if not isinstance(node.func, ast.Attribute) or last_name(node.func) not in _SAME:
                return False
            node = node.func.value
        else:
            return False
    return False


def _network(code: Syntax, node: ast.expr | None, left: int = _DEEP) -> ast.Call | None:
    """The call of a network whose output a value holds, through copies, conversions and lists."""
    if node is None or left <= 0:
        return None
    if isinstance(node, ast.Name):
        return _network(code, code.assigned(node), left - 1)
    if isinstance(node, (ast.Attribute, ast.Subscript)):
        return _network(code, node.value, left - 1)
    if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        return _network(code, node.elt, left - 1)
    if isinstance(node, (ast.List, ast.Tuple)):
        return _network(code, node.elts[0], left - 1) if len(node.elts) == 1 else None
    if not isinstance(node, ast.Call):
        return None
    name = last_name(node.func)
    library = code.qualified(node.func)
    if isinstance(node.func, ast.Attribute) and not library and name in _SAME:
        return _network(code, node.func.value, left - 1)
    if library or _LOSS.search(name):
        takes = _is_new(code, node) or name in _SAME or _LOSS.search(name)
        return _network(code, node.args[0], left - 1) if takes and node.args else None
    if name[:1].isupper() or _NO_NETWORK.search(name) or not (node.args or node.keywords):
        return None
    return node if isinstance(node.func, (ast.Name, ast.Attribute)) and _is_module(code, node.func) else None


def _is_module(code: Syntax, called: ast.expr) -> bool:
    """Whether what is called is an object: a name bound to what a class or a factory made, a parameter, a layer."""
    if isinstance(called, ast.Attribute):
        return last_name(called) == "forward" or (written(called.value) == "self" and bool(code.bindings(called)))
    made = code.bindings(called)
    if made:
        return all(isinstance(v, ast.Call) for _, v in made)
    around = code.function(called)
    return around is not None and isinstance(called, ast.Name) and called.id in {
        a.arg for a in (*around.args.posonlyargs, *around.args.args, *around.args.kwonlyargs)}  # fmt: skip


def _names(code: Syntax, leaf: ast.expr) -> list[ast.Name]:
    """The later reads of the name that holds a leaf, within its function."""
    statement = code.statement(leaf)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return []
    target = statement.targets[0]
    if not isinstance(target, ast.Name):
        return []
    scope = code.scope(leaf)
    return [n for n in code.of(ast.Name) if n.id == target.id and isinstance(n.ctx, ast.Load)
            and code.scope(n) is scope and n.lineno > statement.lineno]  # fmt: skip


def _gradient_read(code: Syntax, leaf: ast.expr) -> bool:
    """Whether somebody wants the leaf's own gradient, as in hand-made checkpoints and inputs that are attacked."""
    for name in _names(code, leaf):
        up = code.parent(name)
        if isinstance(up, ast.Attribute) and up.attr in ("grad", "retain_grad", "register_hook"):
            return True
    scope = code.scope(leaf)
    return any(code.scope(c) is scope and code.qualified(c.func) == "torch.autograd.grad" for c in code.calls("grad"))


def _loss(code: Syntax, leaf: ast.expr) -> ast.Call | None:
    """The loss that a leaf goes into, which is sent backward or returned."""
    for place in [leaf, *_names(code, leaf)]:
        node: ast.AST = place
        for _ in range(_DEEP):
            up = code.parent(node)
            if isinstance(up, ast.Call) and node in up.args and _is_loss(code, up):
                if _sent(code, up, direct=False):
                    return up
                break
            if up is None or not _carries(code, up, node):
                break
            node = up
    return None


def _carries(code: Syntax, up: ast.AST | None, node: ast.AST) -> bool:
    if isinstance(up, ast.Attribute):
        return up.attr in _SAME
    if isinstance(up, ast.Call):
        return last_name(up.func) in _SAME and (up.func is node or bool(code.qualified(up.func)))
    return isinstance(up, (ast.BinOp, ast.UnaryOp))


def _is_loss(code: Syntax, call: ast.Call) -> bool:
    name = last_name(call.func) if not isinstance(call.func, ast.Call) else last_name(call.func.func)
    made = code.assigned(call.func)
    return bool(_LOSS.search(name) or (isinstance(made, ast.Call) and _LOSS.search(last_name(made.func))))


def _sent(code: Syntax, node: ast.expr, direct: bool) -> bool:
    """Whether backward is called on a value, or on what it is added into, or the value is returned."""
    statement = code.statement(node)
    if statement is None:
        return False
    if isinstance(statement, ast.Return):
        return not direct
    if any(isinstance(n, ast.Attribute) and n.attr == "backward" for n in below(statement)):
        return True
    targets = statement.targets if isinstance(statement, ast.Assign) else \
        [statement.target] if isinstance(statement, ast.AugAssign) else []  # fmt: skip
    names = {written(t) for t in targets if isinstance(t, (ast.Name, ast.Attribute))}
    scope = code.scope(node)
    for call in code.calls("backward", "manual_backward"):
        if code.scope(call) is scope and names & {written(n) for n in below(call) if isinstance(n, ast.expr)}:
            return True
    returns = (r for r in code.of(ast.Return) if not direct and code.scope(r) is scope and r.value is not None)
    return any(names & {written(n) for n in below(r) if isinstance(n, ast.expr)} for r in returns)


def _holds_loss(code: Syntax, leaf: ast.expr) -> bool:
    """Whether the leaf is a loss of the network: a call of a loss is inside."""
    seen: ast.expr | None = leaf
    for _ in range(_DEEP):
        if seen is None:
            return False
        for call in (n for n in below(seen) if isinstance(n, ast.Call)):
            if not _is_new(code, call) and _is_loss(code, call):
                return True
        names = [n for n in below(seen) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
        made = [m for n in names if (m := code.assigned(n)) is not None and m is not seen]
        seen = made[0] if len(made) == 1 else None
    return False
