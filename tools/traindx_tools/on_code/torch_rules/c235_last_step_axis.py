"""The last time step of a recurrent layer is taken from the wrong axis.

LSTM, GRU and RNN of torch give (time, batch, features) unless `batch_first=True`. `out[:, -1]` of a layer without it is
the last *sample* at every step, and a batch handed over as (batch, time, features) is read along the samples: the state
runs from one sample to the next, and the shapes still fit. With `batch_first=True`, `out[-1]` is the last sample of the
batch. The hidden state `h_n[-1]` is the last layer's in both layouts.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.changes import Change
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, argument, last_name, parameters, syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C235",
    name="last-step-axis",
    title="The last time step of a recurrent layer is taken from the wrong axis",
    severity=Severity.HIGH,
    sees="out[:, -1] of an LSTM, GRU or RNN without batch_first=True, and out[-1] of one with it.",
    matters="The layer runs over the samples of a batch, or one sample stands for all of them.",
    alike=("h_n[-1], the hidden state, which is the last layer's in both layouts",
           "an input or output that is transposed in between", "a batch of one, or an input without a batch axis"),
    confirm=("print(x.shape, out.shape) at the layer, and check the output of one sample alone against its batch",),
)
_RECURRENT = frozenset({"LSTM", "GRU", "RNN"})
_KEEPS = frozenset({
    "dropout", "relu", "tanh", "contiguous", "float", "layer_norm", "leaky_relu", "gelu", "sigmoid", "clone", "to",
    "Dropout", "LayerNorm", "ReLU", "Tanh", "Linear", "Identity", "GELU", "LeakyReLU",
})  # fmt: skip
_BATCH = re.compile(r"^(b|bs|bsz|bsize|n|nb|batch|n_batch|num_batch|batch_?size|n_samples)$", re.IGNORECASE)
_SWAPS = frozenset({"transpose", "permute", "swapaxes", "movedim", "rearrange", "t", "T", "mT"})
_LOADER = re.compile(r"\bDataLoader\(|\b(\w*_)?(data)?loader\b")
_MOST_STEPS = 8


@dataclass(frozen=True)
class _Layer:
    """A recurrent layer as it was made, and the call that gave the output."""

    made: ast.Call
    call: ast.Call
    batch_first: bool


def check(project: Project) -> Iterator[Finding]:
    """Look at everything that is read at -1 of its first or second axis."""
    loaded = any(f.mentions(_LOADER) for f in project.files)
    collated = any("collate" in f.text for f in project.files)
    for file in project.files:
        if not any(word in file.text for word in ("LSTM", "GRU", "RNN", "rnn")) or ".batch_first =" in file.text:
            continue
        code = syntax(file)
        for node in code.of(ast.Subscript):
            axis = _last(node.slice)
            if axis is None or not isinstance(node.ctx, ast.Load):
                continue
            layer = _source(code, node.value, _MOST_STEPS)
            if layer is not None and layer.batch_first == (axis == 0) and not _single(code, layer):
                known = _layout(code, layer, loaded and not collated)
                yield _finding(code, node, layer, known)


def _last(index: ast.expr) -> int | None:
    """The axis whose last entry is read: 0 for [-1] and [-1, :, :], 1 for [:, -1] and [:, -1, :]."""
    axes = index.elts if isinstance(index, ast.Tuple) else [index]
    if not axes or not all(_is_all(a) or written(a) == "-1" for a in axes):
        return None
    last = [i for i, a in enumerate(axes) if not _is_all(a)]
    return last[0] if len(last) == 1 and last[0] < 2 else None


def _is_all(node: ast.expr) -> bool:
    return isinstance(node, ast.Slice) and node.lower is None and node.upper is None and node.step is None


def _source(code: Syntax, node: ast.expr, left: int) -> _Layer | None:
    """The recurrent layer whose whole output a value is, through what keeps its axes."""
    for _ in range(left):
        if isinstance(node, ast.Subscript):
            if not isinstance(node.slice, ast.Constant) or node.slice.value != 0 or isinstance(node.slice.value, bool):
                return None
            inner = node.value if isinstance(node.value, ast.Call) else code.assigned(node.value)
            return _called(code, inner) if isinstance(inner, ast.Call) else None
        if isinstance(node, (ast.Name, ast.Attribute)):
            made = code.assigned(node)
            if made is None:
                return None
            node = made
        elif isinstance(node, ast.Call):
            returned = _returned(code, node)
            if returned is not None:
                return _source(code, returned, left - 1)
            kept = _kept(code, node)
            if kept is None:
                return None
            node = kept
        else:
            return None
    return None


def _returned(code: Syntax, call: ast.Call) -> ast.expr | None:
    """What a method of the same class returns, where it has one return."""
    owner = code.owner(call)
    if owner is None or not isinstance(call.func, ast.Attribute) or written(call.func.value) != "self":
        return None
    method = next((f for f in owner.body if isinstance(f, ast.FunctionDef) and f.name == call.func.attr), None)
    backs = [n for n in below(method) if isinstance(n, ast.Return)] if method is not None else []
    return backs[0].value if len(backs) == 1 else None


def _kept(code: Syntax, call: ast.Call) -> ast.expr | None:
    """The value whose axes a call keeps: a function's or layer's argument, a method's tensor."""
    name = last_name(call.func)
    if isinstance(call.func, ast.Attribute) and not code.qualified(call.func) and name in _KEEPS \
            and written(call.func.value) != "self":  # fmt: skip
        return call.func.value
    maker = code.origin(call.func) if isinstance(call.func, (ast.Name, ast.Attribute)) else call.func
    kind = last_name(maker.func) if isinstance(maker, ast.Call) else name
    return call.args[0] if kind in _KEEPS and call.args else None


def _called(code: Syntax, call: ast.Call) -> _Layer | None:
    made = code.origin(call.func) if isinstance(call.func, (ast.Name, ast.Attribute)) else None
    if made is None or made is call.func:
        ways = [v for _, v in code.bindings(call.func)]
        layers = [(v, _recurrent(code, v)) for v in ways]
        found = {first for _, first in layers}
        if len(ways) < 2 or len(found) != 1 or not isinstance(ways[0], ast.Call):
            return None
        first = found.pop()
        return None if first is None else _Layer(ways[0], call, first)
    first = _recurrent(code, made)
    return _Layer(made, call, first) if isinstance(made, ast.Call) and first is not None else None


def _recurrent(code: Syntax, made: ast.expr) -> bool | None:
    """batch_first of a recurrent layer of torch, None for anything else and where it is not known."""
    if not isinstance(made, ast.Call) or not _makes_recurrent(code, made):
        return None
    if any(k.arg is None for k in made.keywords) or any(isinstance(a, ast.Starred) for a in made.args):
        return None
    given = argument(made, 4, "batch_first")
    if given is None:
        return False
    value = code.origin(given)
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, bool) else None


def _makes_recurrent(code: Syntax, made: ast.Call) -> bool:
    """nn.LSTM(...), getattr(nn, "GRU")(...) and {"lstm": nn.LSTM, "gru": nn.GRU}[kind](...)."""
    kind = code.origin(made.func)
    if isinstance(kind, ast.Call) and last_name(kind.func) == "getattr" and len(kind.args) >= 2:
        named = kind.args[1]
        if code.qualified(kind.args[0]) != "torch.nn":
            return False
        if isinstance(named, ast.Constant):
            return named.value in _RECURRENT
        return bool(re.search(r"rnn|lstm|gru|recurrent", written(named), re.IGNORECASE))
    kinds: list[ast.expr] = [kind]
    if isinstance(kind, ast.Subscript):
        table = code.origin(kind.value)
        kinds = list(table.values) if isinstance(table, ast.Dict) else []
    elif isinstance(kind, ast.IfExp):
        kinds = [kind.body, kind.orelse]
    return bool(kinds) and all(
        code.qualified(k).startswith("torch.nn.") and last_name(k) in _RECURRENT for k in kinds
    )


def _single(code: Syntax, layer: _Layer) -> bool:
    """Whether the input is one sequence: given a batch axis of one right here, or packed with its own layout."""
    given = _input(layer)
    for _ in range(_MOST_STEPS):
        if given is None or "pack" in written(given) or re.search(r"unsqueeze\([^)]*\)|\[None|None,", written(given)):
            return True
        before = _before(code, given)
        if before is None:
            return bool(re.search(r"packed", written(given)))
        given = before
    return False


def _before(code: Syntax, node: ast.expr) -> ast.expr | None:
    """What a name holds before its own statement: the parameter, for the right side of `x, _ = self.rnn(x)`."""
    found = code.assigned(node)
    return None if found is None or any(n is node for n in below(found)) else found


def _input(layer: _Layer) -> ast.expr | None:
    return argument(layer.call, 0, "input")


def _layout(code: Syntax, layer: _Layer, loaded: bool) -> str | None:
    """What shows where the batch stands in the layer's input: "batch", "time", None where nothing does.

    "tokens": a table's rows for what the model was given, one way or the other: the last sample is read in both.
    """
    given = _input(layer)
    function = code.function(layer.call)
    if given is None or function is None:
        return None
    unpacked = _unpacked(function)
    tokens = False
    for _ in range(_MOST_STEPS):
        if isinstance(given, (ast.Name, ast.Attribute)):
            before = _before(code, given)
            if before is None:
                break
            given = before
        elif isinstance(given, ast.Call):
            if last_name(given.func) in _SWAPS:
                inner = given.func.value if isinstance(given.func, ast.Attribute) else None
                name = inner.id if isinstance(inner, ast.Name) else ""
                first = [code.number(a) for a in given.args]
                exchanged = last_name(given.func) != "permute" and set(first) == {0.0, 1.0}
                return "time" if exchanged and unpacked.get(name) == "batch" else None
            maker = code.origin(given.func)
            tokens |= isinstance(maker, ast.Call) and last_name(maker.func) == "Embedding"
            own = isinstance(maker, ast.Call) and last_name(maker.func) in {*_KEEPS, "Embedding"}
            given = given.args[0] if own and given.args else _kept(code, given)
            if given is None:
                return None
        else:
            return None
    if isinstance(given, ast.Name) and given.id in unpacked:
        return unpacked[given.id]
    straight = isinstance(given, ast.Name) and given.id in parameters(function) and function.name == "forward"
    swapped = any(re.search(rf"\.({'|'.join(_SWAPS)})\b", f) for f in [written(function)])
    if straight and not swapped and (loaded or _neighbours_batch_first(code, layer)):
        return "batch"
    return "tokens" if straight and tokens and not swapped and not layer.batch_first else None


def _unpacked(function: ast.AST) -> dict[str, str]:
    """Tensors whose shape is unpacked with the batch first or second: `b, t, f = x.shape`, `n = x.size(0)`."""
    found: dict[str, str] = {}
    for node in below(function):
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            continue
        match = re.match(r"^(\w+)\.(?:shape|size\(\))(?:\[:(?:2|3|-1)\])?$", written(node.value))
        target = node.targets[0]
        if match and isinstance(target, ast.Tuple):
            at = next((i for i, t in enumerate(target.elts) if _BATCH.match(last_name(t))), None)
            if at in (0, 1):
                found[match[1]] = "batch" if at == 0 else "time"
        one = re.match(r"^(\w+)\.(?:shape\[|size\()([01])[\])]$", written(node.value))
        if one and isinstance(target, ast.Name) and _BATCH.match(target.id) and len(target.id) > 1:
            found[one[1]] = "batch" if one[2] == "0" else "time"
    return found


def _neighbours_batch_first(code: Syntax, layer: _Layer) -> bool:
    """Whether another layer of the same class is told that the batch comes first."""
    owner = code.owner(layer.call)
    return owner is not None and any(
        k.arg == "batch_first" and isinstance(k.value, ast.Constant) and k.value.value is True
        for c in below(owner) if isinstance(c, ast.Call) and c is not layer.made for k in c.keywords
    )  # fmt: skip


def _finding(code: Syntax, node: ast.Subscript, layer: _Layer, known: str | None) -> Finding:
    kind = last_name(layer.made.func) or "recurrent layer"
    text = code.file.segment(node)
    if layer.batch_first:
        what = "has batch_first=True: this is the last sample of the batch at every step, not the last step"
        change = Change(code.file, "take the last step of every sample").replace(node.slice, ":, -1")
    elif known == "time":
        what = "gives (time, batch, features): this is the last sample at every step, not the last step"
        change = Change(code.file, "take the last step of every sample").replace(node.slice, "-1")
    else:
        what = ("has no batch_first=True and runs over axis 0: "
                + ("its input has the batch there, so the state goes from sample to sample" if known == "batch"
                   else "either it runs over the samples, or this is the last sample at every step"))  # fmt: skip
        change = Change(code.file, "give the layer the batch first").pass_argument(layer.made, "batch_first", "True")
    patch: tuple[Patch, ...] = change.patches() if known in ("batch", "time") and len(layer.made.args) <= 4 else ()
    return RULE.finding(
        f"{text} at {code.at(node)} reads the output of the {kind} of line {layer.made.lineno}, which {what}",
        code.place(node),
        code.file.path,
        bearing=Bearing.CAUSE if known is not None else Bearing.SIGN,
        measured={"kind": "last-sample" if layer.batch_first or known == "time" else "over-samples",
                  "layer": kind, "layout": known or "unknown"},
        patch=patch,
    )  # fmt: skip
