"""A module's running state is a plain attribute and not in its state_dict.

`state_dict` holds parameters and buffers. A tensor that `__init__` assigns to a plain attribute and that the module
itself updates (a running mean, the usage of codes, a queue of keys) is left out: after load_state_dict every key
matches, and the state is back at what `__init__` made. The numbers in the same process are good, those of the loaded
model are garbage. `.to(device)` does not move it either. A constant that `__init__` always makes anew, a state that is
reset by the module, a hidden state of a recurrent network and what the checkpoint saves by itself are left alone.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.invariants.pages import pages
from traindx_tools.on_code.definitions import ClassInfo
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, argument, last_name, syntax, written

(RULE,) = pages("state", ("C226",))
_MAKERS = frozenset(
    {"zeros", "ones", "full", "empty", "tensor", "eye", "rand", "randn", "linspace", "arange", "randint", "zeros_like",
     "ones_like", "full_like", "as_tensor", "randn_like"})  # fmt: skip
_MOVES = frozenset(
    {"to", "cuda", "cpu", "float", "half", "double", "type", "type_as", "contiguous", "clone", "detach", "view",
     "requires_grad_", "reshape", "unsqueeze", "repeat", "expand"})  # fmt: skip
_IN_PLACE = re.compile(
    r"(add|mul|sub|div|copy|lerp|addcmul|index_add|scatter_add|scatter|index_copy|clamp|fill|where)_"
)
_STATISTIC = re.compile(
    r"mean|std|var(iance)?s?$|m2|moment|running|ema|avg|average|usage|count|cluster|code|embed|centroid|prototype"
    r"|queue|bank|scale|min|max|amax|threshold|total|sum|norm|stat|shadow|center|quantile|median|mu$|sigma|offset|shift",
    re.IGNORECASE,
)
_TRANSIENT = re.compile(
    r"^(h|c|hx|cx|x|z|out|output|loss|losses)$|hidden|cell|cache|past|memory|^mem|kv|membrane|spike|attn|attention_w|grad"
    r"|activation|feature|mask|noise|device|position|recurrent|^state$|loss|metric|correct|log_|history|carry|syn$",
    re.IGNORECASE,
)
_SAVES = re.compile(r"\bstate_dict\(|save_pretrained|save_state\(|ModelCheckpoint|save_checkpoint\(|from_pretrained\(")
_OWN_WAYS = frozenset(
    {"get_extra_state", "set_extra_state", "_save_to_state_dict", "_load_from_state_dict", "state_dict",
     "on_save_checkpoint", "add_state", "__getstate__"})  # fmt: skip


_REGISTER = frozenset({"register_buffer", "register_parameter", "setattr"})
_RESULTS = re.compile(
    r"forward|((de)?normali|encode|decode|transform|inverse|predict|sample|generate|quantize|lookup|scale)\w*"
)
"""Methods that a forward pass runs, and those whose result a user takes."""


@dataclass(frozen=True)
class _State:
    """A plain tensor attribute: where `__init__` makes it, and where it is changed later."""

    name: str
    made: ast.Assign | ast.AnnAssign
    changed: ast.AST


def check(project: Project) -> Iterator[Finding]:
    """Look at every module of the project."""
    codes = [syntax(f) for f in project.files]
    saved = any(c.file.mentions(_SAVES) for c in codes)
    seen: set[int] = set()
    for klass in project.classes:
        info = klass.info
        if id(info.node) in seen or not info.is_module or not _torch(info):
            continue
        seen.add(id(info.node))
        code = syntax(info.file)
        states = list(_states(code, info))
        states = [s for s in states if not _saved_apart(codes, info, s.name)]
        if states:
            lightning = any("Lightning" in b for b in info.foreign_bases)
            yield _finding(code, info, states, saved or lightning)


def _torch(info: ClassInfo) -> bool:
    return any(b.startswith(("torch.nn", "lightning", "transformers")) for b in info.foreign_bases)


def _states(code: Syntax, info: ClassInfo) -> Iterator[_State]:
    methods = [m for m in info.node.body if isinstance(m, (ast.FunctionDef, ast.AsyncFunctionDef))]
    names = {m.name for c in info.lineage() for m in c.node.body if isinstance(m, (ast.FunctionDef,))}
    init = next((m for m in methods if m.name == "__init__"), None)
    if init is None or names & _OWN_WAYS:
        return
    others = [m for m in methods if m is not init]
    called = _reached(others)
    for made, name in _plain_tensors(code, init):
        if _TRANSIENT.search(name) or _registered(info, name):
            continue
        changes = [c for m in others for c in _changes(m, name) if not _cached(code, c, name)]
        if not changes or any(_is_reset(code, m, name) or _saves(m, name) for m in others):
            continue
        if any(_reads(m, name, changes) for m in called):
            yield _State(name, made, changes[0])


def _plain_tensors(code: Syntax, init: ast.AST) -> Iterator[tuple[ast.Assign | ast.AnnAssign, str]]:
    """`self.mean = torch.zeros(n)` in `__init__`."""
    for node in below(init):
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target: ast.expr = node.targets[0]
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            target = node.target
        else:
            continue
        if _own(target) is not None and isinstance(target, ast.Attribute) and _is_new_tensor(code, node.value):
            yield node, target.attr


def _is_new_tensor(code: Syntax, node: ast.expr | None) -> bool:
    """Whether a fresh plain tensor stands there, moved or viewed or not."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _MOVES:
        node = node.func.value
    if isinstance(node, ast.UnaryOp):
        node = node.operand
    if isinstance(node, ast.BinOp):
        return any(_is_new_tensor(code, n) for n in (node.left, node.right))
    if not isinstance(node, ast.Call):
        return False
    grad = argument(node, 99, "requires_grad")
    trained = isinstance(grad, ast.Constant) and grad.value is True
    return last_name(node.func) in _MAKERS and code.qualified(node.func).startswith("torch.") and not trained


def _registered(info: ClassInfo, name: str) -> bool:
    """Whether the class registers the name after all."""
    for node in below(info.node):
        registers = isinstance(node, ast.Call) and last_name(node.func) in _REGISTER
        if registers and isinstance(node, ast.Call):
            said = node.args[0] if node.args else None
            if not isinstance(said, ast.Constant) or said.value == name:
                return True
    return False


def _own(node: ast.AST | None) -> str | None:
    """The name in `self.name`, through `.data` and entries."""
    while isinstance(node, ast.Subscript) or (isinstance(node, ast.Attribute) and node.attr == "data"):
        node = node.value
    plain = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
    return node.attr if plain and isinstance(node, ast.Attribute) else None


def _changes(method: ast.AST, name: str) -> Iterator[ast.AST]:
    """Updates of the attribute: made of itself, in place, by entries, or set anew from something else."""
    for node in below(method):
        if isinstance(node, ast.AugAssign) and _own(node.target) == name:
            yield node
        elif isinstance(node, ast.Assign):
            targets = [t for group in node.targets for t in (group.elts if isinstance(group, ast.Tuple) else [group])]
            if any(_own(t) == name for t in targets) and not _only_moved(node.value, name):
                yield node
        elif _method_on(node, name) is not None and _IN_PLACE.fullmatch(_method_on(node, name) or ""):
            yield node


def _cached(code: Syntax, change: ast.AST, name: str) -> bool:
    """`if self.x.shape[1] != n: self.x = self.make(n)`: made anew wherever it does not fit, from its own method."""
    value = change.value if isinstance(change, ast.Assign) else None
    own = isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and _own(value.func) is not None
    tests = (up.test for up in code.above(change) if isinstance(up, ast.If))
    return own and any(_own(n) == name for test in tests for n in below(test))


def _only_moved(value: ast.expr, name: str) -> bool:
    """`self.mean.to(x.device)` changes no number."""
    node: ast.AST = value
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _MOVES:
        node = node.func.value
    return _own(node) == name and not isinstance(node, ast.Subscript)


def _is_reset(code: Syntax, method: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> bool:
    """Whether a method sets it back to a fresh tensor or a constant: a state of a sequence or an epoch."""
    for node in below(method):
        if _method_on(node, name) in ("zero_", "fill_"):
            return True
        whole = isinstance(node, ast.Assign) and any(
            _own(t) == name and isinstance(t, ast.Attribute) for t in node.targets
        )
        value = node.value if whole and isinstance(node, ast.Assign) else None
        if isinstance(value, ast.Constant) or _is_new_tensor(code, value):
            return True
    return False


def _saves(method: ast.AST, name: str) -> bool:
    """Whether a method of the class itself puts the value under a key, or takes it from one."""
    for node in below(method):
        if isinstance(node, ast.Dict) and any(_own(v) == name for v in node.values):
            return True
        if isinstance(node, ast.Assign):
            sides = ((node.targets[0], node.value), (node.value, node.targets[0]))
            if any(_is_entry(key) and _own(value) == name for key, value in sides):
                return True
    return False


def _is_entry(node: ast.expr) -> bool:
    """`state["mean"]`."""
    key = node.slice if isinstance(node, ast.Subscript) else None
    return isinstance(key, ast.Constant) and isinstance(key.value, str)


def _method_on(node: ast.AST, name: str) -> str | None:
    """The method that is called on the attribute."""
    called = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _own(node.func.value) == name
    return node.func.attr if called and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None


def _reached(methods: list[ast.FunctionDef | ast.AsyncFunctionDef]) -> list[ast.AST]:
    """The methods whose result is used, and those that they call."""
    known = {m.name: m for m in methods}
    queue = [m for m in methods if _RESULTS.fullmatch(m.name)]
    for method in queue:
        for node in below(method):
            callee = _own(node.func) if isinstance(node, ast.Call) else None
            if callee in known and known[callee] not in queue:
                queue.append(known[callee])
    return list(queue)


def _reads(method: ast.AST, name: str, changes: list[ast.AST]) -> bool:
    """Whether the value is used for anything but its own update."""
    updating = {id(n) for c in changes for n in below(c)}
    for node in below(method):
        loaded = isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and node.attr == name
        if loaded and _own(node) == name and id(node) not in updating:
            return True
    return False


def _saved_apart(codes: list[Syntax], info: ClassInfo, name: str) -> bool:
    """Whether somebody outside of the class puts the value into a checkpoint or sets it from one."""
    for code in codes:
        for node in code.of(ast.Attribute):
            if node.attr != name or (code.file is info.file and code.owner(node) is info.node):
                continue
            if isinstance(node.ctx, ast.Store) and written(node.value) != "self":
                return True
            up = code.parent(node)
            called = isinstance(up, ast.Call) and up.func is node  # loss.mean() in a dict is another mean
            saving = not called and any(
                isinstance(a, ast.Dict) or (isinstance(a, ast.Call) and re.search(r"save|dump|dict", last_name(a.func)))
                for a in code.above(node)
            )
            if saving and isinstance(node.ctx, ast.Load):
                return True
    return False


def _finding(code: Syntax, info: ClassInfo, states: list[_State], saved: bool) -> Finding:
    first = states[0]
    names = ", ".join(f"self.{s.name}" for s in states)
    several = len(states) > 1
    named = all(_STATISTIC.search(s.name) for s in states)
    effect = (
        f"state_dict leaves {'them' if several else 'it'} out, and a loaded {info.name} starts from what __init__ makes"
        if saved
        else "state_dict would leave it out, and .to(device) does not move it"
    )
    kind = "are plain attributes and no buffers" if several else "is a plain attribute and no buffer"
    return RULE.finding(
        f"{names} of {info.name}, made at {code.at(first.made)} and updated at line "
        f"{getattr(first.changed, 'lineno', 0)}, {kind}: {effect}",
        code.place(first.made),
        code.file.path,
        bearing=Bearing.CAUSE if named and saved else Bearing.SIGN,
        severity=None if named and saved else Severity.MEDIUM if saved else Severity.LOW,
        measured={"kind": "state", "attributes": ", ".join(s.name for s in states), "saved": saved},
    )
