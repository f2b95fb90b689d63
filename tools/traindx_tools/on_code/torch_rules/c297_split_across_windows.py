"""Overlapping windows, or rows of one subject, are split at random.

Windows that are cut from a series one step apart share nearly all of their values. A random split puts neighbours on
both sides: for nearly every validation window training holds one that is the same but for a few steps. The same holds
for the rows of one patient, speaker or document. Validation then measures memory, looks excellent, and says nothing of
new series or subjects. The split belongs before the windows are cut, by time or by subject.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.linear_forms import linear
from traindx_tools.on_code.lookup import Lookup, lookup, returned
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.row_counts import Counter, Spot
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import FunctionNode, Syntax, argument, last_name, parameters, syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C297",
    name="split-across-windows",
    title="Overlapping windows or rows of one subject are split at random",
    severity=Severity.MEDIUM,
    sees="random_split, train_test_split or a shuffled order over windows that overlap, or over rows that were "
         "collected subject by subject.",
    matters="Validation data are nearly the training data: the metric is too good and hides overfitting.",
    alike=("windows that do not overlap", "a split by time or subject before the windows are cut",
           "independent samples"),
    confirm=("split by series or by time instead: the validation metric falls",),
)  # fmt: skip
_GROUPS = re.compile(r"^(subject|patient|user|speaker|person|participant|session|document|doc|video|recording|record"
                     r"|author|customer|house(hold)?|animal|driver|slide|volunteer|clip|utt|well|vehicle|rider"
                     r"|subj|proband\w*|paciente|sujet|sprecher)(s|_?ids?)?$", re.IGNORECASE)  # fmt: skip
_SPLITS = ("random_split", "train_test_split")
_CARRIES = frozenset({
    "TensorDataset", "stack", "array", "asarray", "cat", "concatenate", "tensor", "from_numpy", "list", "zip", "vstack",
    "as_tensor", "float", "tuple", "DataFrame", "unsqueeze", "astype", "to", "Subset",
})  # fmt: skip
_CUTS = frozenset({"unfold", "sliding_window_view"})
_DEEP = 10

Made = tuple[Syntax, ast.AST]


def check(project: Project) -> Iterator[Finding]:
    """Look at every random split."""
    files = [f for f in project.files if any(w in f.text for w in (*_SPLITS, "permutation(", "randperm(", "shuffle("))]
    if not files:
        return
    look = lookup(project)
    for file in files:
        code = syntax(file)
        for place, data in _splits(code):
            sources = list(_made_of(look, code, data, _DEEP))
            window = next((w for c, n in sources if (w := _window(look, c, n)) is not None), None)
            if window is not None:
                yield _finding(code, place, window, "windows")
                return
            group = next((g for c, n in sources if (g := _collected(c, n)) is not None), None)
            if group is not None:
                yield _finding(code, place, group, "groups")
                return


def _splits(code: Syntax) -> Iterator[tuple[ast.AST, ast.expr]]:
    """(the split, what is split)."""
    for call in code.calls(*_SPLITS):
        shuffle = argument(call, 99, "shuffle")
        fixed = isinstance(shuffle, ast.Constant) and shuffle.value is False
        if call.args and not fixed and argument(call, 99, "groups") is None:
            yield from ((call, a) for a in (call.args if last_name(call.func) == "train_test_split" else call.args[:1]))
    for part in code.of(ast.Subscript):
        order = part.slice if isinstance(part.slice, (ast.Subscript, ast.Name)) else None
        if order is not None and _drawn(code, order) and isinstance(part.value, (ast.Name, ast.Attribute)):
            yield part, part.value
    for call in code.calls("Subset"):
        if len(call.args) == 2 and _drawn(code, call.args[1]):
            yield call, call.args[0]
    for call in code.calls("shuffle"):
        data = call.args[0] if call.args else None
        if isinstance(data, ast.Name) and _halved(code, data):
            yield call, data


def _drawn(code: Syntax, node: ast.expr) -> bool:
    """Whether it is a part of a random order: `order[:k]`, or a name for it."""
    made = code.origin(node)
    if not isinstance(made, ast.Subscript) or not isinstance(made.slice, ast.Slice):
        return False
    whole = code.origin(made.value)
    plain = whole.func if isinstance(whole, ast.Call) and isinstance(whole.func, ast.Attribute) else None
    if plain is not None and plain.attr in ("tolist", "numpy"):
        whole = code.origin(plain.value)
    drawn = isinstance(whole, ast.Call) and last_name(whole.func) in ("randperm", "permutation")
    return drawn and _halved(code, made.value)


def _halved(code: Syntax, data: ast.expr) -> bool:
    """Whether both sides of one place are taken: `x[:k]` and `x[k:]`."""
    text = written(data)
    ends = [s.slice for s in code.of(ast.Subscript) if written(s.value) == text and isinstance(s.slice, ast.Slice)]
    lower = {written(e.lower) for e in ends if e.lower is not None}
    upper = {written(e.upper) for e in ends if e.upper is not None}
    return bool(lower & upper)


def _made_of(look: Lookup, code: Syntax, node: ast.AST, left: int) -> Iterator[Made]:
    """What a data set is made of, followed through names, lists that are appended to, functions and data sets."""
    if left <= 0:
        return
    yield code, node
    if isinstance(node, (ast.Name, ast.Attribute)):
        for call in code.calls("append", "extend"):
            if isinstance(call.func, ast.Attribute) and written(call.func.value) == written(node) and call.args and (
                code.scope(call) is code.scope(node)):  # fmt: skip
                yield code, call
                yield from _made_of(look, code, call.args[0], left - 1)
        step = look.one_step(code, node)
        if step is not None and step[1] is not node:
            yield from _made_of(look, *step, left - 1)
    elif isinstance(node, ast.Subscript):
        yield from _made_of(look, code, node.value, left - 1)
    elif isinstance(node, (ast.Tuple, ast.List)):
        for part in node.elts:
            yield from _made_of(look, code, part, left - 1)
    elif isinstance(node, ast.Call):
        name = last_name(node.func)
        if name in _CARRIES:
            owner = node.func.value if isinstance(node.func, ast.Attribute) and not code.qualified(node.func) else None
            for part in [*node.args, *([owner] if owner is not None else [])]:
                yield from _made_of(look, code, part, left - 1)
        for other, kind in look.classes.get(name, [])[:1]:
            yield from ((other, b) for b in kind.body if isinstance(b, ast.FunctionDef) and b.name == "__getitem__")
        body = look.function(code, node.func) if name not in _CARRIES else None
        if body is not None and name not in look.classes:
            for result in returned(body[1]):
                yield from _made_of(look, body[0], result, left - 1)


def _window(look: Lookup, code: Syntax, node: ast.AST) -> tuple[Syntax, ast.AST, str] | None:
    """A cut of overlapping windows below a node."""
    roots: list[ast.AST] = [node]
    if not isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.Call, ast.FunctionDef)):
        return None
    for part in (p for r in roots for p in below(r)):
        if isinstance(part, ast.Call) and last_name(part.func) in _CUTS:
            found = _library_cut(look, code, part)
            if found:
                return code, part, found
        if isinstance(part, ast.Subscript):
            rows = part.slice.elts[0] if isinstance(part.slice, ast.Tuple) and part.slice.elts else part.slice
            found = _slice_cut(look, code, node, rows) if isinstance(rows, ast.Slice) else None
            if found:
                return code, part, found
    return None


def _library_cut(look: Lookup, code: Syntax, call: ast.Call) -> str | None:
    if last_name(call.func) == "sliding_window_view":
        return "one step apart" if "::" not in written(code.parent(call) or call) else None
    size, step = argument(call, 1, "size"), argument(call, 2, "step")
    known = [Counter(look).number(Spot(code, n)) if n is not None else None for n in (size, step)]
    if known[1] is None or (known[0] is not None and known[1] >= known[0]) or (known[0] is None and known[1] != 1):
        return None
    return f"{known[1]:g} steps apart"


def _slice_cut(look: Lookup, code: Syntax, node: ast.AST, rows: ast.Slice) -> str | None:
    """`series[i : i + width]` with i of a range with a step below the width, or the index of a data set."""
    if rows.lower is None or rows.upper is None or rows.step is not None:
        return None
    low, high = linear(code, rows.lower), linear(code, rows.upper)
    if low is None or high is None:
        return None
    width = {k: high.get(k, 0.0) - low.get(k, 0.0) for k in {*low, *high}}
    width = {k: v for k, v in width.items() if v}
    known = width.get("", 0.0) if set(width) <= {""} else None
    if not width or (known is not None and known < 2):
        return None
    wide = known if known is not None else _sum(look, code, rows, width)
    for name, factor in low.items():
        step = _step(look, code, node, name, rows)
        if step is None or not factor:
            continue
        apart = step * factor
        if (wide is not None and 0 < apart < wide) or (wide is None and apart == 1):
            return f"{apart:g} step{'s' if apart != 1 else ''} apart" + (f", {wide:g} wide" if wide is not None else "")
    return None


def _sum(look: Lookup, code: Syntax, at: ast.AST, width: dict[str, float]) -> float | None:
    """The number of a width of several names."""
    total = width.get("", 0.0)
    for name, factor in width.items():
        part = next((n for n in below(at) if isinstance(n, ast.expr) and written(n) == name), None) if name else None
        number = Counter(look).number(Spot(code, part)) if part is not None else None
        if name and number is None:
            return None
        total += factor * (number or 0.0)
    return total


def _step(look: Lookup, code: Syntax, node: ast.AST, name: str, at: ast.AST) -> float | None:
    """By how much a name advances from one window to the next."""
    if isinstance(node, ast.FunctionDef) and node.name == "__getitem__":
        given = [n for n in parameters(node) if n != "self"]
        return 1.0 if given and name == given[0] else None
    for up in (at, *code.above(at)):
        over: list[tuple[ast.expr, ast.expr]] = []
        if isinstance(up, (ast.ListComp, ast.GeneratorExp)):
            over = [(g.target, g.iter) for g in up.generators]
        elif isinstance(up, ast.For):
            over = [(up.target, up.iter)]
        for target, source in over:
            if written(target) == name and isinstance(source, ast.Call) and last_name(source.func) == "range":
                step = argument(source, 2, "step")
                return 1.0 if step is None else Counter(look).number(Spot(code, step))
        if isinstance(up, FunctionNode):
            break
    return None


def _collected(code: Syntax, node: ast.AST) -> tuple[Syntax, ast.AST, str] | None:
    """Several rows from each of several subjects: two loops of which the outer one is over subjects."""
    over: list[ast.expr] = []
    if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        over = [g.target for g in node.generators]
    elif isinstance(node, ast.Call) and last_name(node.func) in ("append", "extend"):
        loops = [x for x in code.loops(node) if isinstance(x, ast.For)][::-1]
        over = [x.target for x in loops] + ([loops[-1].target] if loops and last_name(node.func) == "extend" else [])
    if len(over) < 2:
        return None
    for target in over[:-1]:
        for name in (n for n in below(target) if isinstance(n, ast.Name)):
            if _GROUPS.match(name.id):
                return code, node, f"rows of each {name.id}"
    return None


def _finding(code: Syntax, place: ast.AST, found: tuple[Syntax, ast.AST, str], kind: str) -> Finding:
    other, made, what = found
    why = f"windows that overlap ({what}, cut at {other.at(made)})" if kind == "windows" else (
        f"{what} (collected at {other.at(made)})")  # fmt: skip
    return RULE.finding(
        f"{written(place)[:60]} at {code.at(place)} splits {why} at random: validation leaks, nearly the same data "
        "are on both sides",
        code.place(place),
        code.file.path,
        bearing=Bearing.SIGN,
        measured={"kind": kind, "what": what},
    )
