"""A padding mask says the opposite of what the layer reads.

In torch's attention layers `key_padding_mask` is True where a position is to be ignored. `ids != pad`, the mask of real
tokens that Hugging Face calls attention_mask, ignores the text and attends to the padding; so does
`arange(n) < lengths`, and ones for a token in front ignore that token. A sample without padding is masked completely,
which gives NaN.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.changes import Change, source_of
from traindx_tools.on_code.project import Project, location
from traindx_tools.on_code.source import below
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.values import Thing
from traindx_tools.rules import Rule

RULE = Rule(
    id="C149",
    name="padding-mask-inverted",
    title="The padding mask is inverted",
    severity=Severity.HIGH,
    sees='"Is not the padding value", or "is below the length", given as key_padding_mask to a layer of torch.nn.',
    matters="The model reads only padding: chance level, or NaN for rows without padding.",
    alike=("a causal mask", "an attention_mask of transformers, which is 1 for real tokens"),
    confirm=("print(mask.float().mean()): the share of positions that are ignored",),
)

_MASKS = ("src_key_padding_mask", "key_padding_mask", "tgt_key_padding_mask", "memory_key_padding_mask")


def check(project: Project) -> Iterator[Finding]:
    """Look at every attention layer that is given a padding mask."""
    for event in project.calls("__call__"):
        layer, node = event.receiver, event.node
        if not isinstance(layer, Thing) or not layer.type.startswith("torch.nn.") or not isinstance(node, ast.Call):
            continue
        for keyword in node.keywords:
            if keyword.arg in _MASKS:
                written = _resolved(keyword.value, event)
                if _says_real(written, event):
                    yield _finding(event, layer, keyword, written)


def _resolved(node: ast.expr, event: Event) -> ast.expr:
    """What a local name was bound to, where it is bound once."""
    if not isinstance(node, ast.Name) or event.function is None:
        return node
    bound = [
        s.value
        for s in below(event.function.node)
        if isinstance(s, ast.Assign) and any(isinstance(t, ast.Name) and t.id == node.id for t in s.targets)
    ]
    return bound[0] if len(bound) == 1 else node


def _says_real(node: ast.expr, event: Event) -> bool:
    """`x != pad`, `x.ne(pad)`, `~(x == pad)`, `arange(n) < lengths`; also after `.to(...)`, or joined to ones."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr == "ne" and len(node.args) == 1:
            return True
        joined = node.args[0] if node.func.attr in ("cat", "concat", "hstack") and node.args else None
        if isinstance(joined, (ast.List, ast.Tuple)):
            parts = [_resolved(p, event) for p in joined.elts]
            return any(_says_real(p, event) or _ones(p) for p in parts)
        return node.func.attr in ("to", "bool", "cuda") and _says_real(node.func.value, event)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
        inner = node.operand
        return isinstance(inner, ast.Compare) and isinstance(inner.ops[0], ast.Eq)
    if not isinstance(node, ast.Compare) or len(node.ops) != 1:
        return False
    before = isinstance(node.ops[0], (ast.Lt, ast.LtE)) and _counts(node.left, event)
    after = isinstance(node.ops[0], (ast.Gt, ast.GtE)) and _counts(node.comparators[0], event)
    return isinstance(node.ops[0], ast.NotEq) or before or after


def _ones(node: ast.expr) -> bool:
    """`torch.ones(b, 1, dtype=torch.bool)`: True for a token that stands before the text."""
    return isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("ones", "new_ones"))


def _counts(node: ast.expr, event: Event) -> bool:
    """Positions 0, 1, 2, ...: `torch.arange(n)[None]`."""
    return "arange(" in ast.unparse(_resolved(node, event))


_OPPOSITE: dict[type[ast.cmpop], str] = {ast.NotEq: "==", ast.Lt: ">=", ast.LtE: ">", ast.Gt: "<=", ast.GtE: "<"}
_BOOL = re.compile(r"\.(ne|bool)\(|[=<>]|dtype=torch\.bool|~")


def _turned(event: Event, given: ast.expr, written: ast.expr) -> tuple[Patch, ...]:
    """The opposite comparison where it stands in the call; else `~` before the mask, whose other readers keep it."""
    change = Change(event.file, "True where a position is to be ignored")
    if isinstance(given, ast.UnaryOp):
        return change.replace(given, source_of(event.file, given.operand)).patches()
    if isinstance(given, ast.Compare):
        left, right = source_of(event.file, given.left), source_of(event.file, given.comparators[0])
        return change.replace(given, f"{left} {_OPPOSITE[type(given.ops[0])]} {right}").patches()
    text = ast.unparse(written)
    if not isinstance(given, (ast.Name, ast.Attribute, ast.Call)) or "float" in text or not _BOOL.search(text):
        return ()
    return change.wrap(given, "~", "").patches()


def _finding(event: Event, layer: Thing, keyword: ast.keyword, written: ast.expr) -> Finding:
    name = keyword.arg
    return RULE.finding(
        f"{name} of {layer.short} at {event.file.path}:{event.line} is {event.file.segment(written)}, True for the "
        "real tokens; torch ignores the positions where it is True",
        location(event),
        event.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "mask", "argument": name},
        patch=_turned(event, keyword.value, written),
    )
