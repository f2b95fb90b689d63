"""One module stands several times where separate layers are meant.

`[nn.Linear(d, d)] * n` is a list with one layer n times, and so is `[layer for _ in range(n)]` of a layer made before:
every depth has the same weights, `parameters()` counts them once, and the gradient is the sum over all depths. The
model is as small as one layer, learns slowly and stops early. Networks that share weights on purpose (universal or
recurrent depth, ALBERT) say so in their names and are left alone.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.changes import Change, source_of
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Loops, Syntax, last_name, names_in, parameters, syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C239",
    name="one-module-repeated",
    title="One module stands several times where separate layers are meant",
    severity=Severity.HIGH,
    sees="nn.ModuleList or nn.Sequential over [layer] * n, or over a list that takes the same layer again and again.",
    matters="All depths share one set of weights: the model has the capacity of a single layer.",
    alike=("weights that are shared on purpose", "an activation or a dropout that stands several times",
           "layers that are copied (copy.deepcopy) or made in the comprehension"),
    confirm=("print(len(layers), len(set(map(id, layers))))", "print(sum(p.numel() for p in model.parameters()))"),
)
_HOLDERS = frozenset({"ModuleList", "Sequential", "ModuleDict"})
_LEARNS = re.compile(
    r"^(Lazy)?(Linear|Bilinear|Conv\dd|ConvTranspose\dd|Embedding|EmbeddingBag|BatchNorm\dd|LayerNorm|GroupNorm|RMSNorm|"
    r"LSTM|GRU|RNN|LSTMCell|GRUCell|MultiheadAttention|TransformerEncoderLayer|TransformerDecoderLayer|PReLU)$"
)
_LIKELY = re.compile(r"(Layer|Block|Attention|Conv|Head|Cell|Encoder|Decoder|Expert|MLP|FFN|Unit|Stage)\w*$")
_MEANT = re.compile(
    r"shar(e|ed|ing)|\btied?\b|tie_|tied_|_tied|universal|recurren|recursi|albert|weight_?tying|unroll|equilibrium|"
    r"(?<!_)\bsame\b|reuse|iterat|n_iter|num_steps|n_steps|loops?\b|refine|siamese", re.IGNORECASE)  # fmt: skip


def check(project: Project) -> Iterator[Finding]:
    """Look at what every holder of modules is given."""
    for file in project.files:
        if "ModuleList" not in file.text and "Sequential" not in file.text:
            continue
        code = syntax(file)
        for holder in code.calls(*_HOLDERS):
            if not code.qualified(holder.func).startswith("torch.nn."):
                continue
            for given in holder.args:
                found = _repeated(code, given.value if isinstance(given, ast.Starred) else given)
                if found is not None:
                    yield from _judged(project, code, holder, *found)


def _repeated(code: Syntax, given: ast.expr) -> tuple[ast.expr, ast.expr, ast.expr | None] | None:
    """(the whole list, the one element, how often) of a list that holds one object several times."""
    whole = given if not isinstance(given, ast.Name) else code.assigned(given) or given
    if isinstance(whole, ast.BinOp) and isinstance(whole.op, ast.Mult):
        for items, count in ((whole.left, whole.right), (whole.right, whole.left)):
            if isinstance(items, (ast.List, ast.Tuple)) and len(items.elts) == 1:
                return whole, items.elts[0], count
    if isinstance(whole, (ast.ListComp, ast.GeneratorExp)) and len(whole.generators) == 1:
        turn = whole.generators[0]
        if isinstance(whole.elt, ast.Name) and whole.elt.id not in names_in(turn.target) and _is_range(turn.iter):
            return whole, whole.elt, turn.iter.args[-1] if isinstance(turn.iter, ast.Call) else None
    if isinstance(whole, ast.List) and not whole.elts and isinstance(given, ast.Name):
        return _appended(code, given)
    return None


def _is_range(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and last_name(node.func) == "range" and len(node.args) == 1


def _appended(code: Syntax, name: ast.Name) -> tuple[ast.expr, ast.expr, ast.expr | None] | None:
    """`layers.append(layer)` in a loop over a range, of a layer that was made before the loop."""
    scope = code.scope(name)
    for call in code.calls("append"):
        taken = isinstance(call.func, ast.Attribute) and written(call.func.value) == name.id
        if not taken or code.scope(call) is not scope:
            continue
        loop = next(iter(code.loops(call)), None)
        if not isinstance(loop, ast.For) or not call.args or not isinstance(call.args[0], ast.Name):
            continue
        one = call.args[0]
        within = list(below(loop))
        inside = any(isinstance(n, ast.Name) and n.id == one.id and isinstance(n.ctx, ast.Store) for n in within)
        before = [s for s, _ in code.bindings(one) if s.lineno < loop.lineno]
        branch = any(isinstance(a, (ast.If, *Loops)) for a in code.above(call) if a is not loop and a in within)
        if _is_range(loop.iter) and not inside and before and not branch:
            return call, one, None
    return None


def _judged(project: Project, code: Syntax, holder: ast.Call, whole: ast.expr, one: ast.expr,
            count: ast.expr | None) -> Iterator[Finding]:  # fmt: skip
    made = code.assigned(one) if isinstance(one, (ast.Name, ast.Attribute)) else one
    handed = made is None and isinstance(one, ast.Name) and _is_parameter(code, one)
    learns = _learns(project, code, made, 4) if isinstance(made, ast.Call) else None
    if code.number(count) == 1 or (learns is None and not handed) or learns is False or _on_purpose(code, holder, one):
        return
    direct = learns is True
    yield _finding(code, holder, whole, one, made, count, direct)


def _is_parameter(code: Syntax, name: ast.Name) -> bool:
    function = code.function(name)
    named = re.search(r"layer|block|cell|expert", name.id)
    return function is not None and name.id in parameters(function) and bool(named)


def _learns(project: Project, code: Syntax, made: ast.Call, left: int) -> bool | None:
    """Whether a module has weights; None where that is not known."""
    name = last_name(made.func)
    if left <= 0 or name in ("deepcopy", "partial"):
        return None
    if code.qualified(made.func).startswith("torch.nn."):
        if name in _HOLDERS:
            calls = [n for a in made.args for n in below(a) if isinstance(n, ast.Call)]
            inner = [_learns(project, code, n, left - 1) for n in calls]
            return True if True in inner else None if None in inner else False
        return bool(_LEARNS.match(name))
    for file in project.files:
        other = syntax(file)
        for kind in other.of(ast.ClassDef):
            if kind.name == name:
                calls = [n for n in below(kind) if isinstance(n, ast.Call)]
                weights = any(_LEARNS.match(last_name(c.func)) or last_name(c.func) == "Parameter" for c in calls)
                return True if weights else None
    return None if not _LIKELY.search(name) or not name[:1].isupper() else True


def _on_purpose(code: Syntax, holder: ast.Call, one: ast.expr) -> bool:
    """Whether names, comments or documentation nearby say that the weights are shared."""
    owner = code.owner(holder)
    statement = code.statement(holder)
    first, last = holder.lineno, (statement.end_lineno if statement is not None else holder.end_lineno) or holder.lineno
    near = [code.file.line(n) for n in range(max(1, first - 2), last + 1)]
    doc = (ast.get_docstring(owner) or "") if owner is not None else ""
    name = owner.name if owner is not None else ""
    return any(_MEANT.search(text) for text in (*near, name, doc, written(one)[:200]))


def _finding(code: Syntax, holder: ast.Call, whole: ast.expr, one: ast.expr, made: ast.expr | None,
             count: ast.expr | None, direct: bool) -> Finding:  # fmt: skip
    times = written(count) or "every turn"
    return RULE.finding(
        f"{code.file.segment(whole)} at {code.at(whole)} puts one module ({written(one)[:80]}) into "
        f"{last_name(holder.func)} several times ({times}): all of its places share one set of weights",
        code.place(whole),
        code.file.path,
        bearing=Bearing.CAUSE if direct else Bearing.SIGN,
        severity=Severity.HIGH if direct else Severity.MEDIUM,
        measured={"kind": "repeated", "module": written(one)[:80], "times": times},
        patch=_patch(code, whole, one, made, count) if direct else (),
    )


def _patch(code: Syntax, whole: ast.expr, one: ast.expr, made: ast.expr | None,
           count: ast.expr | None) -> tuple[Patch, ...]:  # fmt: skip
    """A comprehension that makes a layer each time. A name that nothing else reads goes with its line."""
    if made is None or count is None or not isinstance(whole, (ast.BinOp, ast.ListComp, ast.GeneratorExp)):
        return ()
    change = Change(code.file, "make a module for each place")
    change.replace(whole, f"[{source_of(code.file, made)} for _ in range({source_of(code.file, count)})]")
    if isinstance(one, ast.Name):
        reads = [n for n in below(code.scope(one)) if isinstance(n, ast.Name) and n.id == one.id]
        if len(reads) != 2:
            return ()
        change.delete(code.statement(next(n for n in reads if isinstance(n.ctx, ast.Store))))
    elif not isinstance(one, ast.Call):
        return ()
    return change.patches()
