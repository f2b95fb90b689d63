"""What a network returns is stored in a replay memory with its autograd graph.

While an agent acts, its network runs to choose, not to learn. Without torch.no_grad() the outputs carry the graph of
their pass; a recurrent state that goes into the next pass carries the graphs of all passes before. A replay memory that
holds such a tensor holds every activation behind it, and resident memory grows with each step although the entries
themselves are small. To detach when a batch is drawn is too late: the entries in the memory still have their graphs.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.repairs import graph
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import FunctionNode, Syntax, last_name, names_in, syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C295",
    name="graph-in-replay-memory",
    title="A replay memory keeps autograd graphs",
    severity=Severity.CRITICAL,
    sees="Outputs of a network, made with gradients on, that a replay memory or queue keeps as they are.",
    matters="Memory grows by the activations of a forward pass a step, until the process is killed.",
    alike=("a rollout that is learned from with its graph and emptied after each update",
           "an action, which argmax gives no graph"),
    confirm=("print(memory[0].state.grad_fn)",),
)
_KEEPS = frozenset({"append", "push", "add", "store", "remember", "put", "record", "appendleft", "insert",
                    "add_transition", "add_experience"})  # fmt: skip
_MEMORY = re.compile(r"memory|replay|buffer|experience|queue|\bbank\b|transitions", re.IGNORECASE)
_EMPTIED = re.compile(r"\.clear\(|\.reset\(|\bdel ")
_RECURRENT = frozenset({"GRU", "GRUCell", "LSTM", "LSTMCell", "RNN", "RNNCell"})
_OFF = re.compile(r"no_grad|inference_mode|set_grad_enabled\(False")


@dataclass(frozen=True)
class _Output:
    """A name that holds an output of a network, and the call that made it."""

    code: Syntax
    call: ast.Call


def check(project: Project) -> Iterator[Finding]:
    """Look at everything that a memory keeps inside a loop."""
    files = [f for f in project.files if any(f".{k}(" in f.text for k in _KEEPS)]
    if not files or not any("deque" in f.text or f.mentions(_MEMORY) for f in files):
        return
    codes = [syntax(f) for f in project.files]
    networks = _networks(codes)
    if not networks:
        return
    for code in (syntax(f) for f in files):
        for call in code.calls(*_KEEPS):
            owner = call.func.value if isinstance(call.func, ast.Attribute) else None
            if owner is None or not _MEMORY.search(last_name(owner)) or not code.loops(call) or _off(code, call):
                continue
            if any(f.mentions(_EMPTIED) and re.search(rf"{last_name(owner)}\.(clear|reset)\(", f.text)
                   for f in project.files):  # fmt: skip
                continue
            found = _kept(codes, code, call, networks)
            if found is not None:
                yield _finding(codes, code, call, *found)
                break


def _networks(codes: list[Syntax]) -> set[str]:
    """Names and attributes that hold a module: `q` for `self.q = RecurrentQ(...)`."""
    own = {c.name for code in codes for c in code.of(ast.ClassDef) if any(
        last_name(b).endswith(("Module", "Model")) for b in c.bases)}  # fmt: skip
    made = own | _RECURRENT
    names: set[str] = set()
    for code in codes:
        for node in code.of(ast.Assign):
            pairs = [(t, node.value) for t in node.targets]
            if isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = list(zip(node.targets[0].elts, node.value.elts, strict=False))
            for target, value in pairs:
                inner = value
                while isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and inner.func.attr in (
                        "to", "cuda", "train", "double", "float"):  # fmt: skip
                    inner = inner.func.value
                if isinstance(inner, ast.Call) and last_name(inner.func) in made and last_name(target):
                    names.add(last_name(target))
    return names


def _off(code: Syntax, node: ast.AST) -> bool:
    """Whether gradients are off here: a with block or a decorator around."""
    for up in code.above(node):
        if isinstance(up, (ast.With, ast.AsyncWith)) and any(_OFF.search(written(i.context_expr)) for i in up.items):
            return True
        if isinstance(up, FunctionNode):
            return any(_OFF.search(written(d)) for d in up.decorator_list)
    return False


def _kept(codes: list[Syntax], code: Syntax, call: ast.Call, networks: set[str]) -> tuple[str, _Output] | None:
    for name in _bare_names([*call.args, *(k.value for k in call.keywords)]):
        output = _output(codes, code, call, name, networks, 2)
        if output is not None:
            return name, output
    return None


def _bare_names(values: list[ast.expr]) -> Iterator[str]:
    """Names that are passed as they are, alone or in a tuple, a dict or the call of a record's class."""
    for value in values:
        if isinstance(value, ast.Name):
            yield value.id
        elif isinstance(value, (ast.Tuple, ast.List)):
            yield from _bare_names(value.elts)
        elif isinstance(value, ast.Dict):
            yield from _bare_names(value.values)
        elif isinstance(value, ast.Call) and last_name(value.func)[:1].isupper():
            yield from _bare_names([*value.args, *(k.value for k in value.keywords)])


def _output(codes: list[Syntax], code: Syntax, at: ast.AST, name: str, networks: set[str], left: int) -> _Output | None:
    """The pass of a network with gradients on that a name's value is an output of."""
    scope = code.scope(at)
    for node in code.of(ast.Assign):
        if code.scope(node) is not scope or node.lineno > getattr(at, "lineno", 0) or _off(code, node):
            continue
        target, index = node.targets[0], None
        if isinstance(target, ast.Tuple):
            places = [i for i, t in enumerate(target.elts) if name in names_in(t)]
            if not places:
                continue
            index = places[0]
        elif not (isinstance(target, ast.Name) and target.id == name):
            continue
        if isinstance(node.value, ast.Call) and not _freed_later(code, scope, name):
            return _of_call(codes, code, node.value, index, networks, left)
    return None


def _freed_later(code: Syntax, scope: ast.AST, name: str) -> bool:
    text = written(scope) if isinstance(scope, FunctionNode) else code.file.text
    return re.search(rf"\b{re.escape(name)}\b[^\n=]*=[^\n]*\b{re.escape(name)}\b[^\n]*detach|"
                     rf"\b{re.escape(name)}\.detach_\(", text) is not None  # fmt: skip


def _of_call(codes: list[Syntax], code: Syntax, call: ast.Call, index: int | None, networks: set[str],
             left: int) -> _Output | None:  # fmt: skip
    name = last_name(call.func)
    if name in networks:
        return _Output(code, call)
    own = [(c, f) for c in codes for f in c.functions(name)]
    if len(own) != 1 or left <= 0 or index is None:
        return None
    of_file, function = own[0]
    if any(_OFF.search(written(d)) for d in function.decorator_list):
        return None
    for node in below(function):
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple) and index < len(node.value.elts):
            part = node.value.elts[index]
            if isinstance(part, ast.Name) and not _off(of_file, node):
                return _output(codes, of_file, node, part.id, networks, left - 1)
    return None


def _finding(codes: list[Syntax], code: Syntax, keeping: ast.Call, name: str, output: _Output) -> Finding:
    made = output.code
    return RULE.finding(
        f"{written(output.call)[:60]} at {made.at(output.call)} runs with gradients on, and {written(keeping)[:80]} at "
        f"{code.at(keeping)} stores its output {name} without detach(): every entry of the memory keeps the autograd "
        "graph of its pass, and through a carried hidden state those of all passes before",
        made.place(output.call),
        made.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "replay", "kept": name},
        patch=graph.acts_without_gradients(codes, made, output.call),
    )
