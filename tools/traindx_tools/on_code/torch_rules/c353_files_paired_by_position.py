"""Files in the order of a directory, or of their text, are paired by position with labels in another order.

`sorted` puts "seed_10.npy" before "seed_2.npy". Labels that are read from the rows of a table come in the order 0, 1,
2, and from the second file on every label belongs to another file. `glob` and `os.listdir` give no order at all: it
depends on the file system, and two listings need not agree. Names with leading zeros (`f"{i:05d}.npy"`) sort as their
numbers do; a key (`key=lambda p: int(p.stem)`), or a name in each row of the table, makes the pairs certain. The rule
takes a sorted listing for wrong only where the project makes names with a running number that is not padded.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.lookup import Lookup, lookup
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, last_name, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C353",
    name="files-paired-by-position",
    title="Files are paired by position with labels in another order",
    severity=Severity.HIGH,
    sees="A listing of files, sorted as text or not at all, and labels from the rows of a table or another listing, "
         "which are read by one index or zipped.",
    matters="Labels belong to other files: the loss stays at that of guessing, or pairs change with the machine.",
    alike=("names with leading zeros", "a name in each row of the table", "two listings that are both sorted"),
    confirm=("print a few (file, label) pairs beside the rows of the table",),
)  # fmt: skip
TEXT, NONE = "sorted as text", "in no certain order"
_LISTS = frozenset({"glob", "rglob", "iglob", "listdir", "iterdir", "scandir"})
_TABLE = re.compile(r"DictReader|csv\.reader|(?<!\w)reader\(|read_csv|read_table|loadtxt|genfromtxt|json\.loads?\(|"
                    r"readlines\(|splitlines\(|read_parquet|read_excel|(np|numpy|torch)\.load\(")  # fmt: skip
_BY_NAME = re.compile(r"glob\(|listdir\(|iterdir\(|scandir\(|\.stem|basename|splitext|sort|\.name\b|merge\(|set_index")
_NUMBERED = re.compile(r"range|enumerate|count\(|arange")
_PADDED = re.compile(r"^0\d|\{.*\}")
_DATA = re.compile(r"\.(npy|npz|png|jpe?g|wav|flac|mp3|tiff?|bmp|txt|json|h5|gz)$")
_OTHER = re.compile(r"savefig|save_image|state_dict|ckpt|checkpoint|epoch|plot|figure|global_step|generated|iteration")
"""What is written during or after training: pictures of samples, weights."""
_WHOLE = frozenset({"stack", "vstack", "tensor", "from_numpy", "as_tensor", "asarray", "concatenate", "cat"})
_DEEP = 8


@dataclass(frozen=True)
class _Listing:
    """A listing of files: in which order, where it is made, and the extension that it asks for."""

    order: str
    code: Syntax
    call: ast.Call
    extension: str


def check(project: Project) -> Iterator[Finding]:
    """Look at every two sequences that are read by one index."""
    if not any(n + "(" in f.text for f in project.files for n in _LISTS):
        return
    look = lookup(project)
    told: set[int] = set()
    for code in look.codes:
        for one, other in _paired(code):
            listing = _listing(look, code, one)
            if listing is None or id(listing.call) in told:
                continue
            beside = _listing(look, code, other)
            if _compared(code, one):
                continue
            if beside is not None:
                if listing.order == NONE and beside.call is not listing.call:
                    told.update((id(listing.call), id(beside.call)))
                    yield _finding(listing, f"another listing ({written(beside.call)[:60]})", "")
                continue
            if not _is_table(look, code, other):
                continue
            named = "" if listing.order == NONE else _numbered(look, listing.extension)
            if listing.order == NONE or named:
                told.add(id(listing.call))
                yield _finding(listing, f"the rows of a table ({written(other)[:40]})", named)


def _paired(code: Syntax) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Sequences that are read side by side, each of the two first once."""
    for call in code.calls("zip", "TensorDataset", "train_test_split"):
        given = [a for a in call.args if not isinstance(a, ast.Starred)]
        yield from ((a, b) for a in given for b in given if a is not b)
    by_index: dict[tuple[int, str], list[ast.expr]] = {}
    for part in code.of(ast.Subscript):
        index = part.slice.elts[0] if isinstance(part.slice, ast.Tuple) and part.slice.elts else part.slice
        if isinstance(index, ast.Name) and isinstance(part.ctx, ast.Load):
            held = part.value
            while isinstance(held, ast.Attribute) and held.attr in ("iloc", "loc", "values"):
                held = held.value
            by_index.setdefault((_counted_by(code, part, index.id), index.id), []).append(held)
    for loop in code.of(ast.For):
        over, target = loop.iter, loop.target
        if isinstance(over, ast.Call) and last_name(over.func) == "enumerate" and over.args and isinstance(
                target, ast.Tuple) and isinstance(target.elts[0], ast.Name):  # fmt: skip
            by_index.setdefault((id(loop), target.elts[0].id), []).append(over.args[0])
    for held_by_one in by_index.values():
        texts = {written(h): h for h in held_by_one}
        yield from ((a, b) for ta, a in texts.items() for tb, b in texts.items() if ta != tb)


def _counted_by(code: Syntax, node: ast.AST, name: str) -> int:
    """What gives an index its values: the loop or comprehension around it, or else the function."""
    for up in code.above(node):
        targets = [up.target] if isinstance(up, ast.For) else (
            [g.target for g in up.generators] if isinstance(up, (ast.ListComp, ast.GeneratorExp)) else [])  # fmt: skip
        if any(isinstance(n, ast.Name) and n.id == name for t in targets for n in below(t)):
            return id(up)
    return id(code.scope(node))


def _listing(look: Lookup, code: Syntax, node: ast.expr, left: int = _DEEP) -> _Listing | None:
    """The listing of files that an expression is."""
    if left <= 0:
        return None
    if isinstance(node, (ast.Name, ast.Attribute)):
        step = look.one_step(code, node)
        found = _listing(look, *step, left - 1) if step is not None and step[1] is not node else None
        return found if found is None else _sorted_in_place(code, node, found)
    if isinstance(node, ast.ListComp):
        tells = len(node.generators) == 1 and "index" not in written(node.elt)
        return _listing(look, code, node.generators[0].iter, left - 1) if tells else None
    if isinstance(node, ast.Subscript):
        return _listing(look, code, node.value, left - 1) if isinstance(node.slice, ast.Slice) else None
    if not isinstance(node, ast.Call):
        return None
    name = last_name(node.func)
    if name in _WHOLE and node.args:
        return _listing(look, code, node.args[0], left - 1)
    if name in _LISTS:
        return _Listing(NONE, code, node, _extension(node))
    if name not in ("sorted", "list", "tuple", "filter", "array") or not node.args:
        return None
    found = _listing(look, code, node.args[-1], left - 1)
    if found is None or name != "sorted":
        return found
    if any(k.arg in ("key", "cmp") for k in node.keywords):
        return None
    return _Listing(TEXT, found.code, found.call, found.extension)


def _sorted_in_place(code: Syntax, node: ast.expr, found: _Listing) -> _Listing | None:
    """`files.sort()`, `files.sort(key=...)`, `random.shuffle(files)`: what is put into an order of its own is none."""
    text = written(node)
    for call in code.calls("sort"):
        if written(getattr(call.func, "value", None)) == text:
            return None if call.keywords else _Listing(TEXT, found.code, found.call, found.extension)
    return found


def _extension(call: ast.Call) -> str:
    text = written(call)
    match = re.search(r"\.(\w{2,5})['\"]", text)
    return match.group(1) if match else ""


def _is_table(look: Lookup, code: Syntax, node: ast.expr) -> bool:
    """Whether a sequence comes out of the rows of a table, in their order."""
    text = _expanded(look, code, node, 4)
    return _TABLE.search(text) is not None and _BY_NAME.search(text) is None


def _expanded(look: Lookup, code: Syntax, node: ast.expr, left: int) -> str:
    """An expression's text with that of what its names are made of."""
    text = written(node)
    if left <= 0:
        return text
    if isinstance(node, ast.List) and not node.elts:
        return text
    for part in below(node):
        if isinstance(part, (ast.Name, ast.Attribute)) and isinstance(part.ctx, ast.Load):
            step = look.one_step(code, part)
            if step is not None and step[1] is not node and len(written(step[1])) < 600:
                text += " ; " + _expanded(look, *step, left - 1)
                if isinstance(step[1], ast.List) and not step[1].elts:
                    text += _appended(look, code, part, left - 1)
    return text


def _appended(look: Lookup, code: Syntax, name: ast.expr, left: int) -> str:
    """What a loop puts into a list: `for row in reader: labels.append(int(row[1]))`."""
    text, wanted = "", written(name)
    for call in code.calls("append"):
        if written(getattr(call.func, "value", None)) == wanted and call.args:
            text += " ; " + written(call.args[0])
            for loop in code.loops(call):
                if isinstance(loop, ast.For):
                    text += " ; " + _expanded(look, code, loop.iter, left)
    return text


def _compared(code: Syntax, node: ast.expr) -> bool:
    """Whether names are checked against the table somewhere around it."""
    around = code.owner(node) or code.scope(node)
    return any(re.search(r"\.stem|\.name\b|basename|splitext", written(c)) for c in code.inside(around, ast.Compare))


def _numbered(look: Lookup, extension: str) -> str:
    """The name with a running number without leading zeros that the project makes; empty where none is, or some are."""
    found = ""
    for code in look.codes:
        for text, number, ending, padded in _names(code):
            fits = ending.endswith("." + extension) if extension else _DATA.search(ending) is not None
            if not ending.startswith(".") or not fits or _OTHER.search(written(code.statement(text))):
                continue
            if padded:
                return ""
            if number is not None and _counts(code, number):
                found = found or f"{written(text)} at {code.at(text)}"
    return found


def _names(code: Syntax) -> Iterator[tuple[ast.expr, ast.expr | None, str, bool]]:
    """(text, number, what follows the number, whether it is padded) of every text that ends in a number and more."""
    for text in code.of(ast.JoinedStr):
        last = text.values[-1] if text.values else None
        before = text.values[-2] if len(text.values) > 1 else None
        if isinstance(last, ast.Constant) and isinstance(before, ast.FormattedValue):
            form = before.format_spec
            padded = form is not None and bool(_PADDED.search(written(form).strip("f'\"")))
            number = before.value if form is None else None
            yield text, number, str(last.value), padded or "zfill" in written(before.value)
    for call in code.calls("format"):
        held = call.func.value if isinstance(call.func, ast.Attribute) else None
        if isinstance(held, ast.Constant) and isinstance(held.value, str) and call.args:
            match = re.search(r"\{\d?(:[^}]*)?\}([^{}]*)$", held.value)
            if match:
                yield call, call.args[-1], match.group(2), bool(match.group(1))
    for sum_ in code.of(ast.BinOp):
        if isinstance(sum_.op, ast.Mod) and isinstance(sum_.left, ast.Constant) and isinstance(sum_.left.value, str):
            match = re.search(r"%(0\d+)?d([^%]*)$", sum_.left.value)
            number = sum_.right.elts[-1] if isinstance(sum_.right, ast.Tuple) and sum_.right.elts else sum_.right
            if match:
                yield sum_, number, match.group(2), bool(match.group(1))
        last = sum_.right if isinstance(sum_.op, ast.Add) else None
        before = sum_.left.right if isinstance(sum_.left, ast.BinOp) else sum_.left
        if isinstance(last, ast.Constant) and isinstance(last.value, str) and isinstance(before, ast.Call):
            if last_name(before.func) == "str" and before.args:
                yield sum_, before.args[0], last.value, False
            elif last_name(before.func) in ("zfill", "rjust"):
                yield sum_, None, last.value, True


def _counts(code: Syntax, node: ast.expr) -> bool:
    """Whether it is the variable of a loop over numbers, of more than ten."""
    if isinstance(node, ast.BinOp):
        node = node.left
    if not isinstance(node, ast.Name) or code.bindings(node):
        return False
    loops = [(x.target, x.iter) for x in code.loops(node) if isinstance(x, ast.For)]
    loops += [(g.target, g.iter) for up in code.above(node)
              if isinstance(up, (ast.ListComp, ast.GeneratorExp)) for g in up.generators]  # fmt: skip
    for target, over in loops:
        first = target.elts[0] if isinstance(target, ast.Tuple) and target.elts else target
        if isinstance(first, ast.Name) and first.id == node.id and _NUMBERED.search(written(over)):
            most = code.number(over.args[-1]) if isinstance(over, ast.Call) and over.args else None
            return most is None or most > 10 or "range" not in written(over)
    return False


def _finding(listing: _Listing, labels: str, named: str) -> Finding:
    code, call = listing.code, listing.call
    why = (f"names have a running number without leading zeros ({named}), so 10 comes before 2"
           if named else "the file system gives them in any order")  # fmt: skip
    return RULE.finding(
        f"{written(call)[:80]} at {code.at(call)} gives files {listing.order}, which are paired by position with "
        f"{labels}: {why}, and labels do not belong to their files",
        code.place(call),
        code.file.path,
        bearing=Bearing.CAUSE,
        severity=Severity.HIGH if named else Severity.MEDIUM,
        measured={"kind": "text order" if named else "no order"},
    )
