"""Distances between two values, which of their sides gradients pass, and choices of a code by products with a table."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from traindx_tools.knowledge.names import LOSS_CLASSES
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import written
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.training import sent_backward
from traindx_tools.on_code.values import Site, Tensor, Thing, Value, parts
from traindx_tools.program.parts import CodeLookup
from traindx_tools.program.uses import Distance, WholeCut

_LOSSES = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "squared_error", "l2_loss")
_WRITES = ("copy_", "lerp_", "mul_", "add_", "index_copy_", "index_add_")
"""What keeps a table by averages writes into it."""


def distances(project: Project) -> Iterator[Distance]:
    """Every one of two known values of which a side is cut."""
    found = list(_distances(project))
    last = {d.at.function: id(d) for d in found if d.of_a_table and not d.both_cut and not d.reached}
    yield from (replace(d, last=last.get(d.at.function) == id(d)) for d in found)


def _distances(project: Project) -> Iterator[Distance]:
    cuts = list(project.calls("detach", "stop_gradient"))
    if not cuts:
        return
    cut = {x.site for e in cuts for x in (e.receiver, *e.args) if isinstance(x, Tensor) and x.grad is not False}
    tables = _looked_up(project)
    between = [*project.calls(*_LOSSES), *(e for e in project.events if e.kind == "operation" and e.name == "-")]
    reached = _reached(project) | _passed(between, cut)
    pulled = {_pair(v) for e in between if len(v := [a for a in e.args[:2] if isinstance(a, Tensor)]) == 2
              and sum(a.grad is False and a.site in cut for a in v) == 1}  # fmt: skip
    for event in between:
        sides = [v for v in event.args[:2] if isinstance(v, Tensor)]
        fixed = [s.grad is False and s.site in cut for s in sides]
        straight = isinstance(event.result, Tensor) and event.kind == "operation" and event.result.site in cut
        if event.grad is False or len(sides) != 2 or not any(fixed) or straight or sides[0].site == sides[1].site:
            continue
        side = sides[fixed.index(True)]
        looked_up = any(s.site in tables for s in sides) or _pair(sides) in pulled if all(fixed) else (
            side.site in tables)
        yield Distance(event.spot, event.text, all(fixed), _text(event, fixed.index(True)),
                       looked_up, side.site in reached)


def _pair(sides: list[Tensor]) -> frozenset[Site | None]:
    """The two sides of a distance, whichever stands first: a codebook has two terms of one pair."""
    return frozenset(s.site for s in sides)


_SIMILAR = ("cosine_similarity", "CosineSimilarity")
_CONTRAST = ("cross_entropy", "log_softmax", "logsumexp", "softmax")


def to_itself(project: Project) -> Iterator[Distance]:
    """Every comparison of a further module's output of an encoding with an encoding by the same module, if gradients
    pass both and nothing contrasts it with others."""
    events = [e for e in project.calls(*_LOSSES, *_SIMILAR, "__call__") if e.grad is not False and (
        e.method != "__call__" or (isinstance(e.receiver, Thing) and e.receiver.short in (*LOSS_CLASSES, *_SIMILAR)))]
    last = {e.result.site: id(e.receiver) for e in project.calls("__call__") if isinstance(e.result, Tensor)
            } if events else {}  # fmt: skip
    contrasted = {s for e in project.calls(*_CONTRAST) for a in e.args if isinstance(a, Tensor)
                  for s in (a.site, *a.parents)} if events else set()  # fmt: skip
    for event in events:
        sides = [v for v in event.args[:2] if isinstance(v, Tensor) and v.grad and v.models]
        for one, other in ((0, 1), (1, 0)) if len(sides) == 2 else ():
            is_further = sides[other].models < sides[one].models and last.get(sides[one].site) not in (
                None, *sides[other].models)
            if is_further and isinstance(event.result, Tensor) and event.result.site not in contrasted:
                yield Distance(event.spot, event.text, False, _text(event, other))


def _text(event: Event, place: int) -> str:
    node = event.node
    sides = [node.left, node.right] if isinstance(node, ast.BinOp) else node.args if isinstance(node, ast.Call) else []
    return event.file.segment(sides[place]) if place < len(sides) else "?"


def _looked_up(project: Project) -> frozenset[Site | None]:
    """Where rows of an embedding were taken, in classes that do not write such tables by hand."""
    by_hand = {id(e.function.owner) for e in project.calls(*_WRITES) if e.function is not None}
    calls = [e for e in project.calls("__call__") if isinstance(e.receiver, Thing) and e.receiver.short == "Embedding"]
    return frozenset(e.result.site for e in (*calls, *project.calls("embedding")) if isinstance(e.result, Tensor)
                     and e.function is not None and id(e.function.owner) not in by_hand)


def _passed(between: list[Event], cut: set[Site | None]) -> frozenset[Site | None]:
    """Where the sides of distances arose that gradients pass, but for those of a difference that is cut as a whole."""
    return frozenset(v.site for e in between if e.grad is not False and not (
        isinstance(e.result, Tensor) and e.kind == "operation" and e.result.site in cut)
        for v in e.args[:2] if isinstance(v, Tensor) and v.grad is not False)


def _reached(project: Project) -> frozenset[Site | None]:
    """Where the values arose that gradients of some loss pass."""
    losses = [sent_backward(e) for e in project.calls("backward", "manual_backward")]
    losses += [r.result for r in project.roots if r.framework == "training_step"]
    return frozenset(s for loss in losses if isinstance(loss, Tensor) for s in (loss.site, *loss.parents))


def whole_cuts(project: Project) -> Iterator[WholeCut]:
    """Where `z + (q - z)` is cut from the graph as a whole."""
    for event in project.calls("stop_gradient", "detach"):
        node, cuts = event.node, event.method == "stop_gradient"
        given = node.args[:1] if isinstance(node, ast.Call) else []
        inner = next(iter(given), None) if cuts else getattr(getattr(node, "func", None), "value", None)
        sides = (inner.left, inner.right) if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Add) else ()
        for kept, change in (sides, sides[::-1]) if sides else ():
            of = change if isinstance(change, ast.BinOp) and isinstance(change.op, ast.Sub) else None
            if of is not None and written(of.right) == written(kept) and isinstance(node, ast.Call):
                cut = f"{written(node.func)}({written(change)})" if cuts else f"({written(change)}).detach()"
                yield WholeCut(event.file.segment(node), event.spot, written(kept), written(change),
                               f"{written(kept)} + {cut}", event)
                break


_CHOOSES = ("argmax", "max", "topk", "argsort")
_NORMALISES = ("normalize", "renorm_", "div_", "copy_", "weight_norm", "renorm")


def code_lookups(project: Project) -> Iterator[CodeLookup]:
    """Every choice behind such a product."""
    products = {e.site: (e, t) for e in project.events if e.kind == "operation" and e.name == "@"
                and (t := _table(e)) is not None}  # fmt: skip
    for event in project.calls(*_CHOOSES) if products else ():
        x = event.receiver if isinstance(event.receiver, Tensor) else event.args[0] if event.args else None
        sites = (x.site, *x.parents) if isinstance(x, Tensor) else ()
        found = next((products[s] for s in sites if s in products), None)
        if found is not None:
            product, table = found
            taken = any(e.receiver is table for e in project.calls("__call__")) or any(
                table in _of(e) for e in project.calls("embedding", "index_select"))
            yield CodeLookup(f"{table.short} made at {table.site}", product.text,
                             product.spot, event.spot, taken, _is_normalised(project, table))


def _table(event: Event) -> Thing | None:
    """The layer whose weight one side of a product is, where the other is of rows of length 1."""
    for one, other in (event.args, event.args[::-1]):
        if isinstance(one, Tensor) and "unit" in one.tags and not isinstance(other, Tensor):
            things = [p for p in parts(other) if isinstance(p, Thing)]
            return next((t for t in things if t.short in ("Embedding", "Parameter")), None)
    return None


def _of(event: Event) -> list[Value]:
    given = [*event.args, *event.kwargs.values(), *([event.receiver] if event.receiver is not None else [])]
    return [p for v in given for p in parts(v)]


def _is_normalised(project: Project, table: Thing) -> bool:
    """Whether a line other than those that make it normalises the table, or divides it."""
    divided = [e for e in project.events if e.kind == "operation" and e.name == "/"]
    return any(any(p is table for p in _of(e)) and not (e.function is not None and e.function.name == "__init__")
               for e in (*project.calls(*_NORMALISES), *divided))  # fmt: skip
