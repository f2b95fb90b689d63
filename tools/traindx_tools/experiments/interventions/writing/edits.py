"""Small edits of a program's source, one place at a time: a step left out, a comparison turned, a slice not taken.

What mutation testing calls mutants (DeMillo, Lipton, Sayward 1978), made to be run as experiments: a program with a
fault at one place is one edit away from a program without it. The edits are of the language and not of any library: of
names only builtins that make another type are known, and pairs like min and max. Arithmetic is left alone: another
formula is another task. Read as text; nothing is imported or run.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.experiments.interventions.writing.offsets import Offsets

LEFT_OUT, UNWRAPPED, TURNED, SWAPPED, EXCHANGED = "left-out", "unwrapped", "turned", "swapped", "exchanged"
UNDONE = "undone"
ALWAYS, NEVER, WHOLE, PLAIN = "always", "never", "whole", "plain"
KINDS = (LEFT_OUT, UNWRAPPED, TURNED, SWAPPED, EXCHANGED, ALWAYS, NEVER, WHOLE, PLAIN, UNDONE)
LONGEST = 64
"""Characters of a piece of source that a person is shown."""
IN_A_MODEL = 0.4
"""How much likelier an edit outside of a class's `forward`, `__call__` or `__init__` is to heal: layers that are taken
away or exchanged mostly do not fit any more."""
_OTHER_TYPE = frozenset({
    "range", "len", "open", "zip", "enumerate", "print", "str", "repr", "isinstance", "super", "type", "id", "hash",
    "iter", "next", "getattr", "hasattr", "int", "float", "bool", "set", "list", "dict", "tuple", "frozenset", "vars",
    "callable", "issubclass", "format", "input", "bytes", "chr", "ord", "item"})
_PAIRS = {"min": "max", "argmin": "argmax", "amin": "amax", "minimum": "maximum", "nanmin": "nanmax", "sum": "mean",
          "ceil": "floor", "any": "all", "nlargest": "nsmallest", "sin": "cos", "cummin": "cummax"}
_OTHER = {**_PAIRS, **{b: a for a, b in _PAIRS.items()}}
_ATOMS = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant, ast.Tuple, ast.List)
_COMPARED = {ast.Lt: ">", ast.Gt: "<", ast.LtE: ">=", ast.GtE: "<=", ast.Eq: "!=", ast.NotEq: "==", ast.In: "not in",
             ast.NotIn: "in", ast.Is: "is not", ast.IsNot: "is"}
_WRITTEN = {ast.Lt: "<", ast.Gt: ">", ast.LtE: "<=", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=", ast.In: "in",
            ast.NotIn: "not in", ast.Is: "is", ast.IsNot: "is not"}


@dataclass(frozen=True)
class Edit:
    """One edit: the span of the text that becomes `text`. `likely`: how soon it is tried, against the others."""

    do: str
    line: int
    column: int
    """Both from 1, as an editor counts them. Of a method its name, of a slice its bracket."""
    start: int
    end: int
    text: str
    before: str
    after: str
    """The statement or expression, without and with the edit, on one line."""
    likely: float


def edits_of(text: str, tree: ast.Module) -> list[Edit]:
    """Every edit of one source, the likeliest to undo a fault first, of equals in the order of the text."""
    found = list(_Source(text, tree).edits())
    seen: dict[tuple[int, int, str], Edit] = {}
    for edit in found:
        key = (edit.start, edit.end, edit.text)
        if text[edit.start:edit.end] != edit.text and (key not in seen or seen[key].likely < edit.likely):
            seen[key] = edit
    return sorted(seen.values(), key=lambda e: (-e.likely, e.line, e.column, e.do))


class _Source:
    def __init__(self, text: str, tree: ast.Module) -> None:
        self.text, self.tree, self.offsets = text, tree, Offsets(text)
        self.imported = {a.asname or a.name.partition(".")[0] for node in ast.walk(tree)
                         if isinstance(node, (ast.Import, ast.ImportFrom)) for a in node.names}
        self.sliced = _complements(tree)
        self.orders = _orders(tree)

    def edits(self) -> Iterator[Edit]:
        for body, model in _bodies(self.tree.body, False):
            times = IN_A_MODEL if model else 1.0
            for at, statement in enumerate(body):
                for edit in self._of_statement(statement, body[at + 1] if at + 1 < len(body) else None):
                    yield edit if times == 1 else Edit(**{**vars(edit), "likely": edit.likely * times})

    def _of_statement(self, node: ast.stmt, following: ast.stmt | None) -> Iterator[Edit]:
        if isinstance(node, (ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal, ast.Pass)) or _for_a_person(node):
            return
        if isinstance(node, ast.If) and _is_entry(node.test):
            return
        if isinstance(node, ast.Expr) and isinstance(node.value, (ast.Call, ast.Await)):
            yield self._made(LEFT_OUT, node, node, "pass", 4.0)
            if isinstance(following, ast.Expr) and isinstance(following.value, ast.Call) and not _for_a_person(
                    following):
                yield self._exchanged(node, following)
        elif isinstance(node, ast.AugAssign) or (isinstance(node, ast.Assign) and all(
                isinstance(t, ast.Subscript) for t in node.targets)):
            yield self._made(LEFT_OUT, node, node, "pass", 4.0)
        elif isinstance(node, ast.If):
            yield self._made(ALWAYS, node.test, node.test, "True", 2.0)
            yield self._made(NEVER, node.test, node.test, "False", 2.0)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple) and len(
                node.targets[0].elts) == 2:
            yield self._two(node, node.targets[0].elts[0], node.targets[0].elts[1], 2.0)
        for outer in _expressions(node):
            for inner in ast.walk(outer):
                yield from self._of_expression(inner, node)

    def _of_expression(self, node: ast.AST, statement: ast.stmt) -> Iterator[Edit]:
        if isinstance(node, ast.Call):
            yield from self._of_call(node, statement)
        elif isinstance(node, ast.Compare) and len(node.ops) == 1:
            yield self._turned(node, statement)
        elif isinstance(node, ast.UnaryOp) and not isinstance(node.operand, ast.Constant):
            if not (isinstance(node.op, ast.Invert) and ast.dump(node.operand) in self.sliced):
                yield self._made(PLAIN, node, statement, self._alone(node.operand), 3.0)
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
            yield self._made(TURNED, node, statement, str(not node.value), 3.5)
        elif isinstance(node, ast.Subscript) and _is_slice(node.slice) and ast.dump(node.value) not in self.sliced:
            yield self._made(WHOLE, node, statement, self._alone(node.value), 3.0)
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Name) and node.slice.id in self.orders:
            yield self._made(UNDONE, node, statement, f"{self._alone(node.value)}[{node.slice.id}.argsort()]", 2.5)

    def _of_call(self, node: ast.Call, statement: ast.stmt) -> Iterator[Edit]:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else (
            node.func.id if isinstance(node.func, ast.Name) else "")
        told = self.offsets.of(node)
        if name in _OTHER:
            func = self.offsets.of(node.func)
            text = func[:len(func) - len(name)] + _OTHER[name] + told[len(func):]
            yield self._made(TURNED, node, statement, text, 4.0)
        yield from self._reversed(node, name, statement)
        inner = self._inner(node)
        if inner is not None and name not in _OTHER_TYPE and not name[:1].isupper() and not (
                isinstance(statement, ast.Expr) and statement.value is node):
            again = isinstance(statement, ast.Assign) and statement.value is node and ast.dump(
                inner) in {_loaded(t) for t in statement.targets}
            yield self._made(UNWRAPPED, node, statement, self._alone(inner), 4.5 if again else 2.0)
        plain = [a for a in node.args if isinstance(a, (ast.Name, ast.Attribute))]
        if len(node.args) >= 2 and plain[:2] == node.args[:2] and name not in _OTHER_TYPE:
            yield self._two(statement, node.args[0], node.args[1], 2.0)

    def _reversed(self, node: ast.Call, name: str, statement: ast.stmt) -> Iterator[Edit]:
        """A sort the other way round: of numbers by their negatives, of a list by `reverse`; a flag that is there is
        turned over as it is."""
        told, given = self.offsets.of(node), {k.arg for k in node.keywords}
        bare = any(isinstance(a, (ast.GeneratorExp, ast.Starred)) for a in node.args)
        if (name == "sorted" and node.args and not bare) or (
                name == "sort" and not node.args and isinstance(statement, ast.Expr)):
            if "reverse" not in given:
                joint = "" if told[:-1].rstrip().endswith(("(", ",")) else ", "
                yield self._made(TURNED, node, statement, f"{told[:-1]}{joint}reverse=True)", 3.0)
        elif name == "argsort" and "descending" not in given and not bare:
            over = node.args[0] if node.args else node.func.value if isinstance(node.func, ast.Attribute) else None
            if over is not None and not isinstance(over, ast.UnaryOp):
                turned = f"-{self._alone(over)}"
                yield self._made(TURNED, over, statement, turned if node.args or not isinstance(over, _ATOMS) else
                                 f"({turned})", 3.0)

    def _inner(self, node: ast.Call) -> ast.expr | None:
        """What a call changes, where it may well give the same kind of thing: the object of a method, or the first
        argument of a function whose others are plain values."""
        func = node.func
        others = [*node.args, *(k.value for k in node.keywords)]
        if isinstance(func, ast.Attribute) and not _begins_with(func, self.imported):
            plain = all(_is_plain(a) for a in others)
            return func.value if plain and not isinstance(func.value, ast.Constant) else None
        if not node.args or not all(_is_plain(a) for a in others[1:]):
            return None
        first = node.args[0]
        return None if isinstance(first, (ast.Starred, ast.Constant, ast.JoinedStr, ast.Lambda)) else first

    def _alone(self, node: ast.expr) -> str:
        """Its source, to stand where another expression stood; parentheses around a node are not in its span."""
        text = self.offsets.of(node)
        return text if isinstance(node, _ATOMS) else f"({text})"

    def _turned(self, node: ast.Compare, statement: ast.stmt) -> Edit:
        """The operator alone: what stands beside it keeps its parentheses and comments."""
        (start, between), (onward, end) = self.offsets.span(node.left), self.offsets.span(node.comparators[0])
        kind = type(node.ops[0])
        gap = self.text[between:onward].replace(_WRITTEN[kind], _COMPARED[kind], 1)
        text = self.text[start:between] + gap + self.text[onward:end]
        return self._edit(TURNED, node, start, end, text, statement, 3.0)

    def _two(self, statement: ast.stmt, a: ast.expr, b: ast.expr, likely: float) -> Edit:
        (start, between), (onward, end) = self.offsets.span(a), self.offsets.span(b)
        text = self.text[onward:end] + self.text[between:onward] + self.text[start:between]
        return self._edit(SWAPPED, a, start, end, text, statement, likely)

    def _exchanged(self, a: ast.stmt, b: ast.stmt) -> Edit:
        (start, between), (onward, end) = self.offsets.span(a), self.offsets.span(b)
        text = self.text[onward:end] + self.text[between:onward] + self.text[start:between]
        return Edit(EXCHANGED, *self.offsets.place(start), start, end, text, _short(self.text[start:end]), _short(text),
                    2.0)

    def _made(self, do: str, node: ast.AST, statement: ast.AST, text: str, likely: float) -> Edit:
        return self._edit(do, node, *self.offsets.span(node), text, statement, likely)

    def _edit(self, do: str, node: ast.AST, start: int, end: int, text: str, statement: ast.AST, likely: float) -> Edit:
        first, last = self.offsets.span(statement)
        if isinstance(statement, (ast.If, ast.While, ast.For, ast.With)):  # its head alone
            last = max(end, self.offsets.span(statement.body[0])[0])
        after = self.text[first:start] + text + self.text[end:last]
        return Edit(do, *self.offsets.place(self._told_at(node)), start, end, text,
                    _short(self.text[first:last], start - first), _short(after, start - first), likely)

    def _told_at(self, node: ast.AST) -> int:
        """Where a person sees it: of `a.b().c()` and `a[0][1:]`, which begin at one place, behind what comes before."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            return self.offsets.span(node.func)[1] - len(node.func.attr)
        if isinstance(node, ast.Subscript):
            return self.offsets.span(node.value)[1]
        return self.offsets.span(node)[0]


def _bodies(body: list[ast.stmt], model: bool) -> Iterator[tuple[list[ast.stmt], bool]]:
    """Every list of statements, with whether it stands in a method that a module of layers has."""
    yield body, model
    for node in body:
        inside = model
        if isinstance(node, ast.ClassDef):
            inside = True
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            inside = model and node.name in ("forward", "__call__", "__init__", "setup")
        for name in ("body", "orelse", "finalbody"):
            inner = getattr(node, name, None)
            if isinstance(inner, list) and inner and isinstance(inner[0], ast.stmt):
                yield from _bodies(inner, inside)
        for handler in getattr(node, "handlers", ()):
            yield from _bodies(handler.body, inside)


def _expressions(node: ast.stmt) -> Iterator[ast.expr]:
    """Those of the statement itself, not of the statements in it, nor its targets, nor annotations."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return
    for name, value in ast.iter_fields(node):
        if name in ("targets", "target", "annotation", "body", "orelse", "finalbody", "handlers"):
            continue
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, ast.expr):
                yield one
            elif isinstance(one, ast.withitem):
                yield one.context_expr


def _for_a_person(node: ast.stmt) -> bool:
    """Whether a statement says something, stops, or checks: texts, prints, log lines, errors."""
    if isinstance(node, (ast.Raise, ast.Assert)):
        return True
    if not isinstance(node, ast.Expr):
        return False
    if not isinstance(node.value, ast.Call):
        return isinstance(node.value, (ast.Constant, ast.JoinedStr))
    return any(isinstance(a, ast.JoinedStr) or (isinstance(a, ast.Constant) and isinstance(a.value, str))
               for a in node.value.args)


def _is_entry(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id == "__name__"


def _is_plain(node: ast.expr) -> bool:
    """A number, a text, a flag, or a tuple of them: what tells how, and is not what is worked on."""
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return True


def _is_slice(node: ast.expr) -> bool:
    parts = node.elts if isinstance(node, ast.Tuple) else [node]
    sliced = [p for p in parts if isinstance(p, ast.Slice)]
    return bool(sliced) and len(sliced) == len(parts) and any(p.lower or p.upper or p.step for p in sliced)


def _complements(tree: ast.Module) -> frozenset[str]:
    """What is cut in two: sliced both from and up to one place, or selected by a mask and by its opposite. An edit that
    gives the whole in the place of a part would let the one half be measured on the other."""
    upto: dict[str, set[str]] = {}
    onward: dict[str, set[str]] = {}
    chosen: set[str] = set()
    turned: set[str] = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.Subscript):
            continue
        if isinstance(node.slice, ast.Slice):
            if node.slice.upper is not None:
                upto.setdefault(ast.dump(node.value), set()).add(ast.dump(node.slice.upper))
            if node.slice.lower is not None:
                onward.setdefault(ast.dump(node.value), set()).add(ast.dump(node.slice.lower))
        elif isinstance(node.slice, ast.UnaryOp) and isinstance(node.slice.op, ast.Invert):
            turned.add(ast.dump(node.slice.operand))
        else:
            chosen.add(ast.dump(node.slice))
    cut = {value for value, ends in upto.items() if ends & onward.get(value, set())}
    return frozenset(cut | (chosen & turned))


def _orders(tree: ast.Module) -> frozenset[str]:
    """Names of what `argsort` gives: indexing by one puts rows in an order, and by its own argsort back again."""
    return frozenset(
        target.id for node in ast.walk(tree) if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
        for target in node.targets if isinstance(target, ast.Name)
        and isinstance(node.value.func, (ast.Name, ast.Attribute))
        and (node.value.func.attr if isinstance(node.value.func, ast.Attribute) else node.value.func.id) == "argsort")


def _begins_with(node: ast.expr, names: set[str]) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and node.id in names


def _loaded(target: ast.expr) -> str:
    """The dump of a target as if it was read."""
    return ast.dump(target).replace("Store()", "Load()")


def _short(text: str, around: int = 0) -> str:
    """On one line, the part around a place where it is too long."""
    if around > LONGEST // 2:
        text = "..." + text[around - LONGEST // 3:]
    flat = " ".join(text.split())
    return flat if len(flat) <= LONGEST else flat[:LONGEST - 3] + "..."
