"""A layer that expects (time, batch, features) is given the batch first.

Attention, transformer and recurrent layers of torch take (time, batch, features) unless `batch_first=True`. Given
(batch, time, features) they raise no error: attention then mixes the samples of a batch at each position, and never
the positions of a sample; a recurrence runs from one sample to the next. What a model says of a sample depends on the
others in its batch, and nothing that needs more than one position is learned.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.changes import Change
from traindx_tools.on_code.project import Project, location
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, last_name, parameters, syntax, written
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.values import Instance, Tensor, Thing, truth
from traindx_tools.rules import Rule

RULE = Rule(
    id="C331",
    name="batch-taken-for-time",
    title="The batch is taken for time",
    severity=Severity.HIGH,
    sees="An attention, transformer or recurrent layer without batch_first=True whose input has the batch on axis 0.",
    matters="The layer mixes the samples of a batch and never the positions of one sample.",
    alike=("an input that is transposed before the layer", "data that come as (time, batch, features)",
           "one sequence without a batch axis"),
    confirm=("change one sample of a batch: the outputs of the others must not change",),
)
_LAYERS = {"MultiheadAttention": 8, "TransformerEncoderLayer": 6, "TransformerDecoderLayer": 6, "LSTM": 4, "GRU": 4,
           "RNN": 4, "TransformerEncoder": 0, "TransformerDecoder": 0}  # fmt: skip
"""Layers and the position of batch_first among the arguments that make them."""
_STACKS = ("TransformerEncoder", "TransformerDecoder")
_RECURRENT = ("LSTM", "GRU", "RNN")
_SWAPS = re.compile(r"\.(transpose|permute|swapaxes|movedim|t|T|mT|transpose_)\b|rearrange|einsum|pack_|PackedSeq")
_SECOND = re.compile(r"^(self\.)?(\w+)\.(size\(1\)|shape\[1\]|size\(\)\[1\]|size\(-2\)|shape\[-2\])$")
_MOST_CALLERS = 4


def check(project: Project) -> Iterator[Finding]:
    """Look at every call of such a layer."""
    if not any(word in f.text for f in project.files for word in (*_RECURRENT, "Transformer", "MultiheadAttention")):
        return
    if any(".batch_first =" in f.text for f in project.files):
        return
    seen: set[int] = set()
    for event in project.calls("__call__"):
        layer = event.receiver
        if not isinstance(layer, Thing) or layer.short not in _LAYERS or not layer.type.startswith("torch.nn."):
            continue
        made = layer.args[0] if layer.short in _STACKS and layer.args else layer
        if id(made) in seen or not isinstance(made, Thing) or not _time_first(made) or not event.args:
            continue
        why = _batch_first(project, event, layer)
        if why is not None:
            seen.add(id(made))
            yield _finding(event, layer, made, *why)


def _time_first(made: Thing) -> bool:
    """Whether the layer was made without batch_first=True, as far as its arguments tell."""
    if made.short not in _LAYERS or made.short in _STACKS or "**" in made.kwargs or not made.args:
        return False
    given = made.argument(_LAYERS[made.short], "batch_first")
    return given is None or truth(given) is False


def _batch_first(project: Project, event: Event, layer: Thing) -> tuple[str, str, bool] | None:
    """(kind, what shows that the batch is axis 0, whether the code proves it); None where nothing does."""
    code, given = syntax(event.file), event.args[0]
    function = code.function(event.node)
    if function is None or (isinstance(given, Tensor) and given.shape is not None and given.shape.rank == 2):
        return None
    around = [(code, function), *_callers(project, code, function)]
    if any(_SWAPS.search(_text(c, f)) for c, f in around):
        return None
    for other, body in around:
        line = _positions_second(other, body)
        if line is not None:
            return "positions", f"positions are counted along axis 1 at {line}", True
    if layer.short not in _RECURRENT:
        line = _pooled(code, event)
        if line is not None:
            return "pooled", f"its output is read as (batch, time, features) at {line}", False
    if _collated(project):
        return None
    if isinstance(given, Tensor) and "batch" in given.tags and _stacked(given):
        return "loader", "it comes from a DataLoader, which stacks samples along axis 0", True
    if isinstance(given, Tensor) and "batch_first" in given.tags:
        return "layers", "what its input was computed by has the batch on axis 0", False
    return None


def _stacked(given: Tensor) -> bool:
    """Whether its shape is that of samples with two axes of their own, behind one whose size is the batch's."""
    shape = given.shape
    if shape is None or not shape.exact or shape.rank != 3:
        return False
    return shape.dims[0] is None and None not in shape.dims[1:]


def _callers(project: Project, code: Syntax, function: ast.AST) -> list[tuple[Syntax, ast.AST]]:
    """The functions that call the module whose forward this is."""
    owner = code.owner(function)
    found: dict[int, tuple[Syntax, ast.AST]] = {}
    if owner is None or getattr(function, "name", "") not in ("forward", "__call__"):
        return []
    for event in project.calls("__call__"):
        if isinstance(event.receiver, Instance) and event.receiver.klass.info.node is owner:
            other = syntax(event.file)
            body = other.function(event.node)
            if body is not None:
                found[id(body)] = (other, body)
    return list(found.values())[:_MOST_CALLERS]


def _text(code: Syntax, function: ast.AST) -> str:
    whole = code.owner(function) or function
    lines = code.file.text.splitlines()
    return "\n".join(lines[whole.lineno - 1 : whole.end_lineno])  # type: ignore[attr-defined]


def _positions_second(code: Syntax, function: ast.AST) -> str | None:
    """Where positions run along axis 1 of what the function is given: `pos[:, : x.size(1)]`, `arange(x.size(1))`."""
    names = parameters(function) if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) else {}
    for node in below(function):
        count: ast.expr | None = None
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple) and len(node.slice.elts) in (2, 3):
            first, second = node.slice.elts[0], node.slice.elts[1]
            whole = isinstance(first, ast.Slice) and first.lower is None and first.upper is None
            added = any(isinstance(u, ast.BinOp) and isinstance(u.op, ast.Add) for u in code.above(node))
            if whole and added and isinstance(second, ast.Slice) and second.lower is None:
                count = second.upper
        elif isinstance(node, ast.Call) and last_name(node.func) == "arange" and _embedded(code, node):
            count = node.args[-1] if node.args else None
        match = _SECOND.match(written(code.origin(count))) if count is not None else None
        if match and match[2] in names:
            return code.at(node)
    return None


def _embedded(code: Syntax, ranged: ast.Call) -> bool:
    """Whether a range is looked up in a table whose rows are added: `tok(ids) + pos(torch.arange(t))`."""
    if len(ranged.args) not in (1, 2) or (len(ranged.args) == 2 and code.number(ranged.args[0]) != 0):
        return False
    up = code.parent(ranged)
    names = [t.id for t in up.targets if isinstance(t, ast.Name)] if isinstance(up, ast.Assign) else []
    scope = code.scope(ranged)
    uses: list[ast.AST] = [n for n in below(scope) if isinstance(n, ast.Name) and n.id in names
                           and isinstance(n.ctx, ast.Load)] if names else [ranged]  # fmt: skip
    for use in uses:
        call = code.parent(use)
        table = code.origin(call.func) if isinstance(call, ast.Call) and use in call.args else None
        if isinstance(table, ast.Call) and last_name(table.func) == "Embedding":
            return True
    return False


def _pooled(code: Syntax, event: Event) -> str | None:
    """Where the layer's output is read at one position of axis 1, or averaged over it."""
    scope = code.scope(event.node)
    for node in below(scope):
        value: ast.expr | None = None
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple) and len(node.slice.elts) > 1:
            first, second = node.slice.elts[0], node.slice.elts[1]
            whole = isinstance(first, ast.Slice) and first.lower is None and first.upper is None
            if whole and written(second) in ("0", "-1"):
                value = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("mean", "amax"):
            dim = node.args[0] if node.args else next((k.value for k in node.keywords if k.arg == "dim"), None)
            if code.number(dim) == 1:
                value = node.func.value
        made = code.origin(value) if value is not None else None
        if made is event.node or (isinstance(made, ast.Subscript) and made.value is event.node):
            return code.at(node)
    return None


def _collated(project: Project) -> bool:
    return any("collate" in f.text or "pad_sequence" in f.text for f in project.files)


def _finding(event: Event, layer: Thing, made: Thing, kind: str, shown: str, sure: bool) -> Finding:
    what = "attends across the samples" if layer.short not in _RECURRENT else "runs from sample to sample"
    return RULE.finding(
        f"{layer.short} (made at {made.site} without batch_first=True) is called at {event.file.path}:{event.line} "
        f"with the batch on axis 0: {shown}; it {what} of a batch instead of the positions of one",
        location(event),
        event.file.path,
        bearing=Bearing.CAUSE if sure else Bearing.SIGN,
        measured={"kind": kind, "layer": layer.short, "made_at": str(made.site)},
        patch=_patch(event, made),
    )


def _patch(event: Event, made: Thing) -> tuple[Patch, ...]:
    if not isinstance(made.node, ast.Call) or made.site.path != event.file.path:
        return ()
    if _read_by_time(syntax(event.file), event.node):
        return ()  # with the batch first, these lines would have to change as well
    if len(made.args) > _LAYERS[made.short] or "batch_first" in made.kwargs or last_name(made.node.func) != made.short:
        return ()
    change = Change(event.file, "give the layer the batch first")
    return change.pass_argument(made.node, "batch_first", "True").patches()


def _read_by_time(code: Syntax, call: ast.AST) -> bool:
    """Whether the output is read at one place of axis 0: `out[-1]` of `out, _ = self.lstm(x)`."""
    up = code.parent(call)
    target = up.targets[0] if isinstance(up, ast.Assign) else None
    parts = target.elts if isinstance(target, ast.Tuple) else [target]
    name = parts[0].id if parts and isinstance(parts[0], ast.Name) else ""
    for node in below(code.scope(call)):
        if isinstance(node, ast.Subscript) and code.number(node.slice) is not None:
            of = node.value.value if isinstance(node.value, ast.Subscript) else node.value
            if of is call or (isinstance(of, ast.Name) and of.id == name):
                return True
    return False
