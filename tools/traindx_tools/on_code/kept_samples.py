"""Samples that a data set keeps and hands out, and what changes them in place while they are fetched.

An index of an array or a tensor by a number, or of a list, gives what the data set itself holds; a copy, an index by
an array and whatever a call makes are new. Names are followed in their order through `__getitem__` and the functions
that it calls.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from traindx_tools.on_code.lookup import Lookup
from traindx_tools.on_code.source import below
from traindx_tools.on_code.stored_kinds import kinds_of
from traindx_tools.on_code.syntax import FunctionNode, Syntax, argument, last_name, names_in, parameters, written

_VIEWS = frozenset({"view", "squeeze", "unsqueeze", "transpose", "permute", "numpy", "detach", "swapaxes", "T",
                    "view_as", "movedim", "reshape"})  # fmt: skip
_WRAPS = frozenset({"asarray", "from_numpy", "as_tensor", "squeeze", "transpose", "moveaxis", "expand_dims", "rot90",
                    "flip", "fliplr", "flipud", "swapaxes", "asanyarray"})  # fmt: skip
_NOT_AGAIN = frozenset({"clamp_", "clip_", "nan_to_num_", "abs_", "fill_", "zero_", "relu_", "requires_grad_",
                        "share_memory_", "copy_", "pin_memory_", "floor_", "round_", "ceil_", "sign_", "trunc_",
                        "squeeze_", "unsqueeze_", "t_"})  # fmt: skip
"""Methods whose second call finds nothing to do, or that change no value."""
_LISTS = frozenset({"append", "extend", "insert", "pop", "reverse"})
_OUT = frozenset({"clip", "maximum", "minimum", "abs", "floor", "round", "rint", "nan_to_num", "copyto"})
_RANDOM = re.compile(r"rand|^rng$|^choices?$|uniform|^(standard_)?normal_?$|^integers$|^sample$|shuffle|^perm|jitter"
                     r"|noise|augment|bernoulli|poisson|generator", re.IGNORECASE)  # fmt: skip
_IMAGE = frozenset({"astype", "shape", "transpose", "mean", "std", "ndim", "dtype", "permute", "unsqueeze", "numel"})
_STATISTICS = frozenset({"mean", "std", "max", "min", "norm", "sum", "amax", "amin", "median", "var", "percentile",
                         "quantile"})  # fmt: skip
_DEEP = 3


@dataclass(frozen=True)
class Changed:
    """A change in place: where, of which attribute, and whether it is certain that the data set holds an array."""

    code: Syntax
    node: ast.stmt
    attribute: str
    fetch: ast.FunctionDef
    what: str
    certain: bool
    source: ast.expr | None
    """The expression that takes the sample out of the data set, where the change is made in `__getitem__` itself."""


@dataclass
class _Walk:
    """One function on the way of a sample: which names are what the data set holds."""

    look: Lookup
    code: Syntax
    fetch: ast.FunctionDef
    kinds: dict[str, str]
    left: int
    body: ast.FunctionDef
    held: dict[str, tuple[str, ast.expr | None]] = field(default_factory=dict)
    found: list[Changed] = field(default_factory=list)
    gives: str = ""
    """The attribute whose sample it returns."""


def changed_samples(look: Lookup) -> Iterator[Changed]:
    """Every change in place of what a data set holds."""
    for code in look.codes:
        if "__getitem__" not in code.file.text:
            continue
        for owner in code.of(ast.ClassDef):
            fetch = next((m for m in owner.body if isinstance(m, ast.FunctionDef) and m.name == "__getitem__"), None)
            if fetch is None or not _is_data(look, code, owner):
                continue
            walk = _Walk(look, code, fetch, kinds_of(look, code, owner), _DEEP, fetch)
            _run(walk, fetch.body)
            told: set[str] = set()
            for change in walk.found:
                if change.attribute not in told:
                    told.add(change.attribute)
                    yield change


def _is_data(look: Lookup, code: Syntax, owner: ast.ClassDef) -> bool:
    """Whether it is a data set of samples, and no container that is meant to be written to."""
    bases = " ".join(written(b) for b in owner.bases)
    methods = {m.name for m in owner.body if isinstance(m, ast.FunctionDef)}
    if "__setitem__" in methods:
        return False
    return "Dataset" in bases or bool(re.search(r"Dataset|Data$", owner.name)) or any(
        last_name(a) == owner.name for c in look.codes for call in c.calls("DataLoader") for g in call.args[:1]
        for a in [_maker(c, g)])  # fmt: skip


def _maker(code: Syntax, node: ast.expr) -> ast.expr | None:
    made = code.origin(node)
    return made.func if isinstance(made, ast.Call) else None


def _run(walk: _Walk, statements: list[ast.stmt]) -> None:
    for statement in statements:
        if isinstance(statement, (*FunctionNode, ast.ClassDef)):
            continue
        _calls(walk, statement)
        if isinstance(statement, ast.Assign):
            _assigned(walk, statement)
        elif isinstance(statement, ast.AugAssign):
            _augmented(walk, statement)
        elif isinstance(statement, ast.Return) and statement.value is not None:
            first = statement.value.elts[0] if isinstance(statement.value, ast.Tuple) and statement.value.elts else None
            walk.gives = walk.gives or (_held(walk, first or statement.value) or ("", None))[0]
        elif isinstance(statement, (ast.With, ast.AsyncWith)):
            _run(walk, statement.body)
        elif isinstance(statement, (ast.If, ast.For, ast.While, ast.Try)):
            _branches(walk, statement)


def _branches(walk: _Walk, statement: ast.If | ast.For | ast.While | ast.Try) -> None:
    """Each arm on its own; afterwards a name is held where it is in all of them."""
    before = dict(walk.held)
    ends: list[dict[str, tuple[str, ast.expr | None]]] = []
    for arm in (statement.body, statement.orelse):
        walk.held = dict(before)
        _run(walk, arm)
        if not (arm and isinstance(arm[-1], (ast.Return, ast.Raise, ast.Continue, ast.Break))):
            ends.append(walk.held)
    common = set.intersection(*(set(e) for e in ends)) if ends else set()
    walk.held = {name: ends[0][name] for name in common}


def _held(walk: _Walk, node: ast.expr | None) -> tuple[str, ast.expr | None] | None:
    """The attribute that holds what an expression is, and how it is taken out; None where it is new or unknown."""
    if isinstance(node, ast.Name):
        return walk.held.get(node.id)
    if isinstance(node, ast.Subscript):
        inner = _held(walk, node.value)
        if inner is not None:
            return inner if _plain(walk, node.slice) else None
        owner = node.value
        mine = isinstance(owner, ast.Attribute) and written(owner.value) == "self"
        if mine and walk.kinds.get(owner.attr) and _indexes(walk, node.slice):  # type: ignore[attr-defined]
            return owner.attr, node  # type: ignore[attr-defined]
        return None
    if isinstance(node, ast.Attribute) and node.attr == "T":
        return _held(walk, node.value)
    if isinstance(node, ast.Call):
        name = last_name(node.func)
        known = walk.code.qualified(node.func).startswith(("numpy.", "torch."))
        if known and name in _WRAPS and node.args and not any(k.arg in ("dtype", "device") for k in node.keywords):
            return _held(walk, node.args[0]) if len(node.args) == 1 or name not in ("asarray", "as_tensor") else None
        if isinstance(node.func, ast.Attribute) and name in _VIEWS and not known:
            return _held(walk, node.func.value)
        return _followed(walk, node)
    return None


def _indexes(walk: _Walk, index: ast.expr) -> bool:
    """Whether it is one sample that is taken by a number: `i`, `i + 1`, `self.order[i]`, a slice from `i` on."""
    given = [n for n in parameters(walk.fetch) if n != "self"]
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    first = parts[0]
    if not all(_plain(walk, p) for p in parts):
        return False
    if not given or re.search(r"s$|batch|list", given[0]):  # many at once: a copy
        return False
    names = names_in(first)
    return given[0] in names or any(given[0] in names_in(walk.code.origin(n)) for n in below(first)
                                    if isinstance(n, ast.Name))  # fmt: skip


def _plain(walk: _Walk, index: ast.expr, left: int = 8) -> bool:
    """Whether an index gives a view: numbers, slices, texts, and what may be a number."""
    if left <= 0:
        return False
    if isinstance(index, ast.Tuple):
        return all(_plain(walk, p, left - 1) for p in index.elts)
    if isinstance(index, (ast.Constant, ast.Slice, ast.Attribute)):
        return True
    if isinstance(index, ast.Name):
        made = walk.code.assigned(index)
        return made is None or _plain(walk, made, left - 1)
    if isinstance(index, ast.BinOp):
        return _plain(walk, index.left, left - 1) and _plain(walk, index.right, left - 1)
    if isinstance(index, ast.UnaryOp):
        return _plain(walk, index.operand, left - 1)
    if isinstance(index, ast.Call):
        return last_name(index.func) in ("int", "len", "item", "randint", "randrange", "min", "max")
    one = isinstance(index, ast.Subscript) and not isinstance(index.slice, ast.Slice)
    return one and _plain(walk, index.slice, left - 1)  # type: ignore[attr-defined]  # self.order[i]


def _assigned(walk: _Walk, node: ast.Assign) -> None:
    for target in node.targets:
        if isinstance(target, ast.Tuple):
            same = isinstance(node.value, ast.Tuple) and len(node.value.elts) == len(target.elts)
            whole = None if same else _held(walk, node.value)
            if whole is not None and walk.kinds.get(whole[0]) == "given":
                whole = None  # pairs are what a data set gives
            values = node.value.elts if same and isinstance(node.value, ast.Tuple) else [None] * len(target.elts)
            for one, value in zip(target.elts, values, strict=True):
                if isinstance(one, ast.Name):
                    _bind(walk, one.id, whole if value is None else _held(walk, value))
        elif isinstance(target, ast.Name):
            _bind(walk, target.id, _held(walk, node.value))
        elif isinstance(target, ast.Subscript):
            _stored(walk, node, target)


def _bind(walk: _Walk, name: str, value: tuple[str, ast.expr | None] | None) -> None:
    if value is None:
        walk.held.pop(name, None)
    else:
        walk.held[name] = value


def _stored(walk: _Walk, node: ast.Assign, target: ast.Subscript) -> None:
    """`img[a:b] = 0` at a place that is drawn, `item["x"] = item["x"] / 255`, `self.x[i] = self.x[i] / 255`."""
    place = written(target)
    again = any(written(n) == place for n in below(node.value) if isinstance(n, ast.Subscript))
    inner = _held(walk, target.value)
    if inner is not None:
        drawn = _is_random(walk, target.slice) or (again and _is_random(walk, node.value))
        if drawn or (again and _again(walk, node.value, target.value)):
            _tell(walk, node, inner, f"{written(node)[:60]}", array=True)
        return
    own = _held(walk, target)
    if own is not None and again and isinstance(node.value, ast.BinOp) and _again(walk, node.value, target):
        _tell(walk, node, own, f"{written(node)[:60]}", array=True)


def _augmented(walk: _Walk, node: ast.AugAssign) -> None:
    target = node.target
    held = _held(walk, target)
    if held is None or not _again(walk, node.value, target):
        return
    if isinstance(target, ast.Subscript):
        direct = target is held[1] or written(target) == written(held[1])
        counts = isinstance(node.value, ast.Constant) and isinstance(node.op, (ast.Add, ast.Sub))
        if direct and counts:
            return  # a counter
        _tell(walk, node, held, written(node)[:60], array=True)
    else:
        listed = isinstance(node.value, (ast.List, ast.ListComp)) and isinstance(node.op, ast.Add)
        _tell(walk, node, held, written(node)[:60], array=listed or _many(walk, target, held))


def _calls(walk: _Walk, statement: ast.stmt) -> None:
    """Methods and functions that change what they are given."""
    parts = [statement] if not isinstance(statement, (ast.If, ast.For, ast.While, ast.Try, ast.With)) else []
    if isinstance(statement, (ast.If, ast.While)):
        parts = [statement.test]  # type: ignore[list-item]
    for call in (n for p in parts for n in below(p) if isinstance(n, ast.Call)):
        name = last_name(call.func)
        if isinstance(call.func, ast.Attribute):
            held = _held(walk, call.func.value)
            values = [*call.args, *(k.value for k in call.keywords)]
            inplace = name.endswith("_") and not name.endswith("__") and name not in _NOT_AGAIN
            listed = name in _LISTS and held is not None and walk.kinds.get(held[0]) == "list"
            if held is not None and (inplace or listed) and all(_again(walk, v, call.func.value) for v in values):
                _tell(walk, statement, held, written(call)[:60], array=True)
                continue
        out = _held(walk, argument(call, 99, "out"))
        if out is not None and name not in _OUT:
            _tell(walk, statement, out, written(call)[:60], array=True)
        elif (name == "shuffle" or _normalises(walk, call)) and (into := _held(walk, argument(call, 0))) is not None:
            _tell(walk, statement, into, written(call)[:60], array=True)
        elif isinstance(statement, ast.Expr) and call is statement.value:
            _followed(walk, call)


def _normalises(walk: _Walk, call: ast.Call) -> bool:
    """`normalize(img, mean, std, inplace=True)`, or a transform that was made so."""
    made: ast.expr | None = call
    if isinstance(call.func, ast.Attribute) and written(call.func.value) == "self":
        bound = walk.code.bindings(call.func)
        made = bound[0][1] if len(bound) == 1 else None
    if not isinstance(made, ast.Call) or last_name(made.func) not in ("Normalize", "normalize", "erase"):
        return False
    said = argument(made, 99, "inplace")
    return isinstance(said, ast.Constant) and said.value is True


def _followed(walk: _Walk, call: ast.Call) -> tuple[str, ast.expr | None] | None:
    """Into a function of the project that is given a sample: its changes are told, what it gives back is known."""
    given = [(i, h) for i, a in enumerate(call.args) if (h := _held(walk, a)) is not None]
    named = {k.arg: h for k in call.keywords if k.arg and (h := _held(walk, k.value)) is not None}
    if walk.left <= 0 or not (given or named):
        return None
    home = walk.look.function(walk.code, call.func)
    if home is None or not isinstance(home[1], ast.FunctionDef) or home[1] is walk.body:
        return None
    spec = [n for n in parameters(home[1]) if n not in ("self", "cls")]
    held = {spec[i]: (h[0], None) for i, h in given if i < len(spec)}
    held |= {n: (h[0], None) for n, h in named.items() if n in spec}
    inner = _Walk(walk.look, home[0], walk.fetch, walk.kinds, walk.left - 1, home[1], dict(held))
    _run(inner, home[1].body)
    walk.found += inner.found
    return (inner.gives, None) if inner.gives else None


def _again(walk: _Walk, value: ast.expr, target: ast.expr) -> bool:
    """Whether the change works a second time as well: not a statistic of the sample itself, which is then 0 or 1."""
    if _is_random(walk, value):
        return True
    own = names_in(target) - {"self"}
    whole = {written(target), *own} if not isinstance(target, ast.Subscript) else {written(target)}
    for part in _traced(walk, value, 4):
        statistic = isinstance(part, ast.Call) and last_name(part.func) in _STATISTICS
        if statistic and any(written(n) in whole for n in below(part) if isinstance(n, (ast.Name, ast.Subscript))):
            return False
    return True


def _traced(walk: _Walk, value: ast.expr, left: int) -> Iterator[ast.AST]:
    for node in below(value):
        yield node
        if isinstance(node, ast.Name) and left > 0:
            made = walk.code.assigned(node)
            if made is not None and made is not value:
                yield from _traced(walk, made, left - 1)


def _is_random(walk: _Walk, value: ast.expr) -> bool:
    for node in _traced(walk, value, 4):
        if isinstance(node, ast.Call):
            words = [last_name(node.func), *walk.code.qualified(node.func).split(".")]
            words += [last_name(node.func.value)] if isinstance(node.func, ast.Attribute) else []
            if any(_RANDOM.search(w) for w in words[:-1] if w != "sample") or _RANDOM.search(last_name(node.func)):
                return True
    return False


def _many(walk: _Walk, target: ast.expr, held: tuple[str, ast.expr | None]) -> bool:
    """Whether it is an array and no number: how it is used says so."""
    if walk.kinds.get(held[0]) == "tensor":
        return True
    if held[1] is not None and isinstance(held[1], ast.Subscript) and isinstance(held[1].slice, ast.Slice):
        return True
    name = written(target)
    for node in below(walk.body):
        if isinstance(node, ast.Attribute) and written(node.value) == name and node.attr in _IMAGE:
            return True
        if isinstance(node, ast.Subscript) and written(node.value) == name:
            return True
        given = isinstance(node, ast.Call) and last_name(node.func) in ("from_numpy", "fromarray", "randn_like")
        if given and any(written(n) == name for a in node.args for n in below(a)):  # type: ignore[attr-defined]
            return True
    return bool(re.search(r"im(g|age)|pixel|pic|spec|wave|signal|audio|frame|patch|feat|window", name + held[0], re.I))


def _tell(walk: _Walk, node: ast.stmt, held: tuple[str, ast.expr | None], what: str, *, array: bool) -> None:
    if not array or _once(walk, node, held[0]):
        return
    known = walk.kinds.get(held[0]) != "given"
    walk.found.append(Changed(walk.code, node, held[0], walk.fetch, what, known, held[1]))


def _once(walk: _Walk, node: ast.stmt, attribute: str) -> bool:
    """Whether a condition on what the data set notes itself lets it happen once a sample."""
    noted = {written(n.value if isinstance(n, ast.Subscript) else n) for n in below(walk.fetch)
             if isinstance(n, (ast.Subscript, ast.Attribute)) and isinstance(n.ctx, ast.Store)}  # fmt: skip
    noted |= {written(n.func.value) for n in below(walk.fetch)
              if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr == "add"}  # fmt: skip
    tests = [a.test for a in walk.code.above(node) if isinstance(a, ast.If)]
    return any(written(n) in noted | {f"self.{attribute}"} for t in tests for n in below(t)
               if isinstance(n, ast.Attribute))  # fmt: skip
