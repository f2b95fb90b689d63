"""What transforms data is fitted, and what numbers names and characters is filled, for which part of the data."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.on_code.lookup import Lookup, lookup
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.splits import named, part_of
from traindx_tools.on_code.syntax import Syntax, last_name, syntax, written
from traindx_tools.on_code.trace import Block, Event, Place
from traindx_tools.on_code.values import Bag, Const, Operation, Symbol, Tensor, Thing, Value, number, whole
from traindx_tools.program.parts import Alphabet, BlankUse, PartFit

_FITS = frozenset({"fit", "fit_transform"})
_KINDS = re.compile(r"Scaler|Normali[sz]er$|Standardi[sz]er|Encoder$|Vectorizer|^(Incremental|Kernel|Sparse)?PCA$"
                    r"|TruncatedSVD|Imputer|Binarizer|Discretizer|QuantileTransformer|PowerTransformer")  # fmt: skip
_TRANSFORMS = re.compile(r"transform|normali[sz]e|standardi[sz]e|scale|encode|apply")
_LISTED = re.compile(r"listdir|iterdir|scandir|glob|user|session|group|doc")
"""Folders of classes, as image folders have them, and numbers that only tell rows apart."""


def part_fits(project: Project) -> Iterator[PartFit]:
    """Every one of which the part is known, by what is given here or to the functions around it."""
    look, seen = lookup(project), set[int]()
    for root in project.roots:
        for place in root.places:
            for kind, at, path in _fitted(place):
                part = _part(look, at, path) if id(at) not in seen and not _guarded(path) else None
                seen.add(id(at))
                if part is not None:
                    around = next((b.function for b in reversed(path) if b.kind == "call"), root.function)
                    group = f"{id(around.owner or around) if around else 0} {kind}" if kind else str(id(at.node))
                    whole = at.node if kind else syntax(at.file).statement(at.node) or at.node
                    text = " ".join(written(whole).split())[:80]
                    yield PartFit(kind, text, at.spot, part, group, id(_made(at)))


def _fitted(place: Place) -> Iterator[tuple[str, Event | Block, tuple[Block, ...]]]:
    """The class of what is fitted, if it transforms ("" for a numbering), the call, and the blocks around it."""
    event = place.event
    made = event.receiver
    if event.kind == "call" and event.method in _FITS and isinstance(made, Thing) and _KINDS.search(made.short):
        yield made.short, event, place.path
    elif _numbers(event):
        yield "", event, place.path
    for i, block in enumerate(place.path):
        owner = block.function.owner if block.kind == "call" and block.function is not None else None
        if owner is not None and block.function is not None and block.function.name in _FITS:
            methods = {n for info in owner.lineage() for n in info.methods}
            if any(_TRANSFORMS.match(m) for m in methods) and "predict" not in methods:
                yield owner.name, block, place.path[:i]
            return


def _made(at: Event | Block) -> object:
    return at.receiver if isinstance(at, Event) else getattr(at.subject, "owner", None)


def _guarded(path: tuple[Block, ...]) -> bool:
    """Whether a condition in the function itself decides about it, or the function only makes a picture."""
    inside = path[max((i for i, b in enumerate(path) if b.kind == "call"), default=0):]
    drawn = inside and inside[0].function is not None and re.search("plot|visual|draw", inside[0].function.name)
    return bool(drawn) or any(b.kind == "branch" for b in inside)


def _numbers(event: Event) -> bool:
    """Whether names get numbers by what occurs: `{n: i for i, n in enumerate(sorted(set(names)))}`, or the next one."""
    if event.kind == "call" and event.method == "setdefault" and len(event.args) == 2:
        size = event.args[1]
        return isinstance(size, Operation) and size.op == "len" and size.operands[0] is event.receiver
    if event.kind != "numbering" or not isinstance(event.node, ast.DictComp):
        return False
    code, over = syntax(event.file), event.node.generators[0].iter
    names = code.origin(over.args[0]) if isinstance(over, ast.Call) and over.args else None
    for _ in range(3):
        if isinstance(names, ast.Call) and last_name(names.func) in ("sorted", "list", "tuple") and names.args:
            names = code.origin(names.args[0])
    occurs = isinstance(names, ast.SetComp) or last_name(getattr(names, "func", None)) in ("set", "unique", "Counter")
    return occurs and names is not None and not _LISTED.search(written(names) + written(event.node))


def _part(look: Lookup, at: Event | Block, path: tuple[Block, ...]) -> str | None:
    """The part that is given to the fit itself, else to the innermost call around it that says one."""
    own = [] if isinstance(at, Event) and at.method not in _FITS else [at]
    calls = [(syntax(b.file), b.node) for b in (*own, *reversed([b for b in path if b.kind == "call"]))]
    for code, node in calls:
        given = [*node.args, *(k.value for k in node.keywords)] if isinstance(node, ast.Call) else []
        parts = {p for a in given if (p := part_of(look, code, a)) is not None}
        parts = parts or {p for p in [_bound(code, node)] if p is not None}
        if parts:
            return parts.pop() if len(parts) == 1 else None
    return None


def _bound(code: Syntax, node: ast.AST) -> str | None:
    """The part that the name of the result says: `train, val = Rows(a), Rows(b)`."""
    statement = code.statement(node)
    if not isinstance(statement, ast.Assign):
        return None
    target, value = statement.targets[0], statement.value
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and node in value.elts:
        target = target.elts[value.elts.index(node)]
    return named(last_name(target)) if node is value or node in getattr(value, "elts", ()) else None


def blank_uses(project: Project) -> Iterator[BlankUse]:
    """Every CTC loss of which the blank is known."""
    for event in project.calls("ctc_loss"):
        layer = event.receiver
        given = layer.argument(0, "blank") if isinstance(layer, Thing) else event.argument(4, "blank")
        blank = whole(number(given or event.kwargs.get("blank_id") or Const(0)))
        scores = event.argument(0, "log_probs")
        shape = scores.shape if isinstance(scores, Tensor) else None
        if isinstance(scores, Tensor) and shape is None:  # axes were turned after the log-softmax
            made = [e.result for e in project.calls("log_softmax") if e.site == scores.kind_site]
            shape = made[0].shape if made and isinstance(made[0], Tensor) else None
        if blank is not None:
            yield BlankUse(event.spot, blank, shape.dims[-1] if shape is not None and shape.dims else None)


def alphabets(project: Project) -> Iterator[Alphabet]:
    """Every `{c: i for i, c in enumerate(characters)}` whose characters the program fixes."""
    told: set[str] = set()
    for event in (e for e in project.events if e.kind == "numbering"):
        entries, start = _entries(event.receiver), _start(event.args[0])
        made = event.node if isinstance(event.node, ast.DictComp) else None
        if made is None or start is None or not entries or str(event.site) in told:
            continue
        told.add(str(event.site))
        target = made.generators[0].target
        if isinstance(target, ast.Tuple) and written(target.elts[-1]) == written(made.key):
            yield Alphabet(event.spot, written(made.generators[0].iter), entries, start + _added(project, event))


def _entries(value: Value | None) -> tuple[str, ...]:
    """The texts of a list, up to the first that is not known."""
    if isinstance(value, Const):
        return tuple(value.value) if isinstance(value.value, str) else ()
    found: list[str] = []
    for item in value.items if isinstance(value, Bag) else ():
        if not (isinstance(item, Const) and isinstance(item.value, str)):
            break
        found.append(item.value)
    return tuple(found)


def _start(value: Value) -> int | None:
    """The number of the first entry: 0 for the counter, 1 for the counter plus 1."""
    if isinstance(value, Symbol):
        return 0 if value.role == "index" else None
    if isinstance(value, Operation) and value.op == "+" and len(value.operands) == 2:
        known = [whole(number(o)) for o in value.operands]
        inner = [_start(o) for o, k in zip(value.operands, known, strict=True) if k is None]
        more = [k for k in known if k is not None]
        return inner[0] + more[0] if len(more) == 1 and inner and inner[0] is not None else None
    return None


def _added(project: Project, event: Event) -> int:
    """What is added wherever the table is read: `table[c] + 1`."""
    statement = syntax(event.file).statement(event.node)
    name = last_name(statement.targets[0]) if isinstance(statement, ast.Assign) else ""
    return int(bool(name) and any(f.mentions(re.compile(rf"\b{re.escape(name)}\[[^\]\n]+\]\s*\+\s*1\b"))
                                  for f in project.files))
