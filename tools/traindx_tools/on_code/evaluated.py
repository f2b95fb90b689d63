"""What a program trains on and what it validates on, by the place where they are used, and whether the two overlap.

The places: `Trainer(train_dataset=, eval_dataset=)`, Lightning's `fit(model, train, val)`, `train_dataloader()` and
`val_dataloader()` of one class, and loops with and without a backward pass. A part is followed through loaders,
subsets, slices and `map` to the data set that it is taken from. Where a part is not known there is no answer.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from traindx_tools.on_code.lookup import Lookup, Where, returned
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import FunctionNode, Syntax, argument, last_name, parameters, written

_LOADERS = re.compile(r"DataLoader$")
_HOLDERS = frozenset({"TensorDataset", "ConcatDataset", "tensor", "as_tensor", "from_numpy", "asarray", "list", "zip"})
_SAME = frozenset({"map", "with_format", "rename_column", "rename_columns", "remove_columns", "cast_column", "cast",
                   "to", "float", "long", "cuda", "with_transform", "flatten", "numpy", "batch", "prefetch", "cache",
                   "clone"})  # fmt: skip
_MIXES = frozenset({"shuffle", "repeat"})
_TAKES = frozenset({"select", "take"})
_SPLITS = ("random_split", "train_test_split")
_STREAM = re.compile(r"random|synthetic|stream|iterable|generat|simulat|fake|dummy|toy|mock", re.IGNORECASE)
_ON_PURPOSE = re.compile(
    r"^test_|overfit|sanity|memori[sz]|smoke|debug|dry.?run|train_?eval|eval_?train|probe|in.sample",
    re.IGNORECASE,
)
_DEEP = 10
_MOST = 8


@dataclass(frozen=True)
class Part:
    """A part of a data set: which one, and its rows. `low` None: some rows, not known which."""

    source: tuple[object, ...]
    low: float | None
    high: float
    name: str
    """How the data set is written where it is taken."""
    of: tuple[object, ...] = ()
    """The data set that a random split took it from."""

    @property
    def whole(self) -> bool:
        """Whether it is all of it."""
        return self.low == 0 and self.high == math.inf


@dataclass(frozen=True)
class Pair:
    """What is trained on and what is validated on, as it is handed over."""

    code: Syntax
    trained: ast.expr
    held_code: Syntax
    held: ast.expr
    by_loop: bool = False


def pairs(look: Lookup) -> Iterator[Pair]:
    """Everything that is validated on beside what is trained on."""
    for code in look.codes:
        text = code.file.text
        if "eval_dataset" in text:
            for call in code.of(ast.Call):
                trained, held = argument(call, 99, "train_dataset"), argument(call, 99, "eval_dataset")
                if trained is not None and held is not None:
                    yield Pair(code, trained, code, held)
        if "ightning" in text:
            for call in code.calls("fit"):
                trained = argument(call, 1, "train_dataloaders", "train_dataloader")
                held = argument(call, 2, "val_dataloaders", "val_dataloader")
                if trained is not None and held is not None:
                    yield Pair(code, trained, code, held)
        if "val_dataloader" in text:
            yield from _by_methods(code)
    yield from _by_loops(look)


def _by_methods(code: Syntax) -> Iterator[Pair]:
    for owner in code.of(ast.ClassDef):
        made: dict[str, list[ast.expr]] = {
            f.name: list(returned(f)) for f in owner.body if isinstance(f, ast.FunctionDef)}  # fmt: skip
        trained, held = made.get("train_dataloader", []), made.get("val_dataloader", [])
        if len(trained) == 1 and len(held) == 1:
            yield Pair(code, trained[0], code, held[0])


def _by_loops(look: Lookup) -> Iterator[Pair]:
    """Loaders that loops with a backward pass run over, and those of loops under no_grad."""
    trained: list[Where] = []
    held: list[Where] = []
    if not any("DataLoader" in c.file.text for c in look.codes):
        return
    for code in look.codes:
        if not any(word in code.file.text for word in ("backward(", "no_grad", "inference_mode")):
            continue
        for loop in code.of(ast.For):
            source = loop.iter
            while isinstance(source, ast.Call) and last_name(source.func) in ("enumerate", "tqdm") and source.args:
                source = source.args[0]
            if not isinstance(source, (ast.Name, ast.Attribute)):
                continue
            over = _loaders(look, code, source)
            calls = {last_name(n.func) for n in below(loop) if isinstance(n, ast.Call)} if over else set()
            if "backward" in calls and "step" in calls:
                trained += over
            elif over and "backward" not in calls and _without_gradients(code, loop):
                held += over
    for one, train in trained[:_MOST]:
        for other, val in held[:_MOST]:
            if val is not train:
                yield Pair(one, train, other, val, by_loop=True)


def _without_gradients(code: Syntax, loop: ast.For) -> bool:
    inside = any(isinstance(n, (ast.With,)) and _no_grad(n) for n in below(loop))
    for up in code.above(loop):
        if isinstance(up, ast.With) and _no_grad(up):
            return True
        if isinstance(up, FunctionNode):
            return inside or any("no_grad" in written(d) or "inference_mode" in written(d) for d in up.decorator_list)
    return inside


def _no_grad(node: ast.With) -> bool:
    return any(last_name(getattr(i.context_expr, "func", i.context_expr)) in ("no_grad", "inference_mode")
               for i in node.items)  # fmt: skip


def _loaders(look: Lookup, code: Syntax, source: ast.expr) -> list[Where]:
    """The loaders that a name may mean: what is bound to it, or what the callers of its function pass."""
    made = code.assigned(source)
    if made is not None:
        return [(code, made)] if isinstance(made, ast.Call) and _LOADERS.search(last_name(made.func)) else []
    body = code.function(source)
    if not isinstance(source, ast.Name) or not isinstance(body, ast.FunctionDef) or source.id not in parameters(body):
        return []
    spec = [n for n in parameters(body) if n not in ("self", "cls")]
    if source.id not in spec:
        return []
    found: list[Where] = []
    for other, call in look.callers(body, code)[:_MOST]:
        given = argument(call, spec.index(source.id), source.id)
        made = other.assigned(given) if isinstance(given, (ast.Name, ast.Attribute)) else given
        if isinstance(made, ast.Call) and _LOADERS.search(last_name(made.func)):
            found.append((other, made))
    return found


def part(look: Lookup, code: Syntax, node: ast.expr, left: int = _DEEP) -> Part | None:
    """The part of a data set that an expression is; None where it is not known."""
    if left <= 0:
        return None
    if isinstance(node, (ast.Name, ast.Attribute)):
        step = look.one_step(code, node)
        if step is not None and step[1] is not node:
            found = part(look, *step, left - 1)
            made_here = found is not None and found.source == (id(step[1]),)
            return replace(found, name=written(node)) if found is not None and made_here else found
        if code.bindings(node):
            return None  # several could be meant
        scope = code.owner(node) if isinstance(node, ast.Attribute) else code.scope(node)
        return Part((id(scope), written(node)), 0, math.inf, written(node))
    if isinstance(node, ast.IfExp):
        empty = isinstance(node.orelse, ast.Constant) and node.orelse.value is None
        return part(look, code, node.body, left - 1) if empty else None
    if isinstance(node, ast.Subscript):
        return _of_subscript(look, code, node, left)
    return _of_call(look, code, node, left) if isinstance(node, ast.Call) else None


def _of_call(look: Lookup, code: Syntax, node: ast.Call, left: int) -> Part | None:
    name = last_name(node.func)
    first = node.args[0] if node.args else None
    if _LOADERS.search(name) or name in _HOLDERS:
        data = first if first is not None else argument(node, 0, "dataset")
        sampled = _LOADERS.search(name) and any(k.arg in ("sampler", "batch_sampler", None) for k in node.keywords)
        return None if sampled or data is None or len(node.args) > 6 else part(look, code, data, left - 1)
    if name == "Subset" and len(node.args) == 2:
        return _rows(look, code, part(look, code, node.args[0], left - 1), node.args[1])
    if isinstance(node.func, ast.Attribute) and name in _TAKES and first is not None:
        inner = part(look, code, node.func.value, left - 1)
        if name == "take":
            number = look.number(code, first)
            return _within(inner, 0, number) if number is not None else None
        return _rows(look, code, inner, first)
    if isinstance(node.func, ast.Attribute) and name in (*_SAME, *_MIXES) and not code.qualified(node.func):
        inner = part(look, code, node.func.value, left - 1)
        return inner if inner is None or name in _SAME or inner.whole else None
    if name in _SPLITS:
        return Part((id(node),), 0, math.inf, code.file.segment(node)[:60])
    if _STREAM.search(name) or name == "next" or any(_STREAM.search(written(a)) for a in node.args):
        return None
    return Part((id(node),), 0, math.inf, code.file.segment(node)[:60])


def _of_subscript(look: Lookup, code: Syntax, node: ast.Subscript, left: int) -> Part | None:
    inner = part(look, code, node.value, left - 1)
    if inner is None:
        return None
    taken = node.slice
    if isinstance(taken, ast.Constant):
        whole = inner.whole and isinstance(taken.value, (str, int))
        took = _split_of(look, code, node, left)
        return Part((*inner.source, taken.value), 0, math.inf, written(node), took) if whole else None
    if isinstance(taken, ast.Slice):
        return _sliced(look, code, inner, taken)
    return Part(inner.source, None, math.inf, inner.name) if isinstance(taken, ast.Name) else None


def _split_of(look: Lookup, code: Syntax, node: ast.Subscript, left: int) -> tuple[object, ...]:
    """The data set that `random_split(data, ...)[i]` or `data.train_test_split(...)["train"]` is a part of."""
    _, made = look.origin(code, node.value)
    if not isinstance(made, ast.Call) or last_name(made.func) not in _SPLITS:
        return ()
    data: ast.expr | None = made.args[0] if len(made.args) <= 2 and made.args else None
    if isinstance(made.func, ast.Attribute) and last_name(made.func) == "train_test_split" and not made.args:
        data = made.func.value
    whole = part(look, code, data, left - 1) if data is not None else None
    return whole.source if whole is not None and whole.whole else ()


def _sliced(look: Lookup, code: Syntax, inner: Part, rows: ast.Slice) -> Part | None:
    low = 0.0 if rows.lower is None else look.number(code, rows.lower)
    high = math.inf if rows.upper is None else look.number(code, rows.upper)
    if rows.step is not None or low is None or high is None or low < 0 or high < 0:
        return None
    return _within(inner, low, high)


def _within(inner: Part | None, low: float, high: float) -> Part | None:
    if inner is None or inner.low is None:
        return inner
    start = inner.low + low
    return replace(inner, low=start, high=min(inner.high, inner.low + high))


def _rows(look: Lookup, code: Syntax, inner: Part | None, rows: ast.expr) -> Part | None:
    """The rows that a subset takes: a range of known ends, or some of them."""
    _, rows = look.origin(code, rows)
    if isinstance(rows, ast.Call) and last_name(rows.func) == "list" and rows.args:
        _, rows = look.origin(code, rows.args[0])
    if inner is None or not (isinstance(rows, ast.Call) and last_name(rows.func) in ("range", "arange")):
        return None if inner is None else Part(inner.source, None, math.inf, inner.name)
    ends = [look.number(code, a) for a in rows.args]
    if len(ends) == 1 and ends[0] is None:  # range(n) of a length that is not known: from the start on
        smaller = isinstance(rows.args[0], ast.Call) and last_name(rows.args[0].func) == "min"
        return _within(inner, 0, 1) if smaller else Part(inner.source, None, math.inf, inner.name)
    if None in ends or not 1 <= len(ends) <= 2:
        return Part(inner.source, None, math.inf, inner.name)
    low, high = (0.0, ends[0]) if len(ends) == 1 else (ends[0], ends[1])
    return _within(inner, low or 0.0, high or 0.0)


def overlap(trained: Part, held: Part) -> bool:
    """Whether some rows are certainly in both."""
    if trained.source != held.source:
        return (held.whole and held.source == trained.of) or (trained.whole and trained.source == held.of)
    if trained.low is None or held.low is None:
        return trained.whole or held.whole
    return max(trained.low, held.low) < min(trained.high, held.high)


def on_purpose(pair: Pair) -> bool:
    """Whether the code says that it is meant: a run that overfits, a metric over the training set."""
    code = pair.held_code
    around = code.function(pair.held)
    names = [around.name if around is not None else "", code.file.path.rpartition("/")[2], written(pair.held)]
    statement = code.statement(pair.held)
    names += [written(t) for t in statement.targets] if isinstance(statement, ast.Assign) else []
    if any(_ON_PURPOSE.search(n) for n in names) or "overfit" in code.file.text.lower():
        return True
    return pair.by_loop and isinstance(statement, ast.Assign) and "train" in written(statement.targets[0]).lower()
