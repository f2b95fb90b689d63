"""What rows are used for: trained on, evaluated, to choose by, and told of."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from traindx_tools.knowledge.tables import table, words
from traindx_tools.on_code.filling.blocks import is_forward
from traindx_tools.on_code.lookup import lookup
from traindx_tools.on_code.project import BACKWARD, Project
from traindx_tools.on_code.row_calls import Origins
from traindx_tools.on_code.row_names import Body, Frame, Made, Set
from traindx_tools.on_code.rows import word
from traindx_tools.on_code.syntax import last_name, parameters, syntax, written
from traindx_tools.on_code.trace import Block, Place
from traindx_tools.on_code.values import Bag, Instance, Thing
from traindx_tools.program.rows import Rows, RowUse

_GRADS = frozenset({"value_and_grad", "grad", "filter_value_and_grad", "filter_grad"})
_LEARNS = BACKWARD | _GRADS | {"apply_gradients", "apply_updates", "fit"}
_KEEPS = frozenset({"save", "deepcopy", "state_dict", "save_pretrained", "save_checkpoint"})
_TELLS = frozenset(table("rows.toml")["tells"])
_SPLITS = frozenset({"train_test_split", "random_split"})
_LOSSES = words("names.toml", "loss_functions")
_LOADERS = {"trained": "train_dataloader", "evaluated": "val_dataloader", "chosen": "val_dataloader",
            "told": "test_dataloader"}
_GIVEN = ("train_dataloaders", "train_dataloader", "val_dataloaders", "val_dataloader", "dataloaders", "datamodule",
          "test_dataloaders")


def row_uses(project: Project) -> Iterator[RowUse]:
    """Every use in the runs that train."""
    origins = Origins(lookup(project))
    frames: dict[tuple[int, ...], Frame] = {}
    for root in project.roots:
        if not _LEARNS & root.methods:
            continue
        trained = False
        places = tuple(root.places)
        ends = _last_backward(places)
        for at, place in enumerate(places):
            event = place.event
            if event.kind != "call" or not isinstance(event.node, ast.Call):
                continue
            for role, node in _asked(place, behind=bool(place.loops) and at > ends.get(id(place.loops[-1]), at)):
                frame = _frame(origins, place.path, frames)
                one = event.method in ("fit", "test", "validate") and len(event.args) + len(event.kwargs) < 3
                modules = (one and "dataloaders" not in event.kwargs) or "datamodule" in event.kwargs
                rows = origins.used(node, frame, _LOADERS.get(role, ""), modules)
                trained = trained or role == "trained"
                late = trained and not any(_LEARNS & b.methods for b in place.loops)
                if rows:
                    yield RowUse(role, rows, event.spot, written(event.node)[:200], _says(event.node, rows, node), late)
        yield from _choices(origins, root, frames)


def _says(node: ast.Call, rows: Set, asked: ast.expr) -> str:
    """Which part a figure is told to be of: by the text up to it, the call, or else by where its rows come from."""
    at = node.args.index(asked) + 1 if asked in node.args else len(node.args)
    given = [*node.args[:at], *(node.keywords if at == len(node.args) else ())]
    texts = [n.value for a in given for n in ast.walk(a) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    names = [n.id for a in (asked, *node.keywords) for n in ast.walk(a) if isinstance(n, ast.Name)]
    named = [w for t in texts if (w := word(t))] or [w for t in (last_name(node.func), *names) if (w := word(t))]
    sources = {word(str(r.source) + " ".join(str(s.part) for s in r.steps if s.by == "name")) for r in rows}
    return named[0] if len(set(named)) == 1 else sources.pop() if len(sources) == 1 and not named else ""


def _last_backward(places: Sequence[Place]) -> dict[int, int]:
    """Where the last backward pass of each loop is: what is asked of a model behind it gets no gradient."""
    return {id(loop): at for at, place in enumerate(places)
            if place.event.kind == "call" and place.event.method in BACKWARD for loop in place.loops}


def _asked(place: Place, behind: bool = False) -> Iterator[tuple[str, ast.expr]]:
    """The expressions of which the rows are asked, each with what they are used for.

    `behind`: no backward pass follows in the loop.
    """
    event, node = place.event, place.event.node
    assert isinstance(node, ast.Call)
    loop = place.loops[-1] if place.loops else None
    learns = loop is not None and bool(_LEARNS & loop.methods)
    if loop is not None and learns and not BACKWARD & loop.methods:  # of JAX: a step that takes no gradients evaluates
        inner = [b for b in place.path[place.path.index(loop):] if b.kind == "call"]
        learns = not inner or bool(_LEARNS & inner[0].methods)
    owner = event.receiver if isinstance(event.receiver, Instance) and event.method == "__call__" else None
    if any(is_forward(b) for b in place.path) or (owner is not None and not owner.klass.info.is_module):
        return
    if event.method == "__call__" or event.method in _LOSSES:
        role = "trained" if learns and event.grad is not False and not behind else "evaluated"
        yield from ((role, a) for a in node.args)
        layer = event.receiver.short if isinstance(event.receiver, Thing) else event.method
        if (event.method in _LOSSES or layer.endswith("Loss")) and role == "trained" and len(node.args) > 1 and not any(
                isinstance(n, ast.Subscript) for n in ast.walk(syntax(event.file).origin(node.args[0]))):
            yield "compared", node.args[1]
    elif event.method in _GRADS:
        up = syntax(event.file).parent(node)
        if isinstance(up, ast.Call) and up.func is node:
            yield from (("trained", a) for a in up.args)
    elif event.method in _SPLITS:
        yield from (("parted", a) for a in node.args)
    elif event.method in _TELLS:
        yield from (("told", a) for a in node.args)
    elif isinstance(event.receiver, Thing) and event.receiver.short == "Trainer" and event.method in (
            "fit", "test", "validate"):
        held = "told" if event.method != "fit" else "chosen" if _watches(event.receiver) else "evaluated"
        given = [*node.args[1:], *(k.value for k in node.keywords if k.arg in _GIVEN)]
        if event.method == "fit" and len(given) == 1:
            yield from (("trained", given[0]), (held, given[0]))
        else:
            yield from zip(("trained", held) if event.method == "fit" else (held,), given, strict=False)


def _watches(trainer: Thing) -> bool:
    """Whether a callback stops, or keeps a model, by a metric."""
    found = trainer.kwargs.get("callbacks")
    items = found.items if isinstance(found, Bag) else [found]
    return any(isinstance(v, Thing) and (v.short == "EarlyStopping" or "monitor" in v.kwargs) for v in items)


def _choices(origins: Origins, root: Block, frames: dict[tuple[int, ...], Frame]) -> Iterator[RowUse]:
    """Conditions in a training loop that keep a model or leave the loop."""
    stack: list[tuple[Block, tuple[Block, ...]]] = [(root, ())]
    seen: set[int] = set()
    while stack:
        block, path = stack.pop()
        if id(block) in seen:
            continue
        seen.add(id(block))
        test = getattr(block.node, "test", None)
        if block.kind == "branch" and isinstance(test, ast.expr) and (
                _KEEPS & block.methods or block.left == "break" or _is_record(block.node, test)) and any(
                b.kind == "loop" and _LEARNS & b.methods for b in path):
            rows = origins.rows(test, _frame(origins, path, frames))
            if rows:
                yield RowUse("chosen", rows, block.spot, written(test)[:80])

        stack += [(b, (*path, block)) for b in block.body if isinstance(b, Block)]


def _is_record(node: ast.AST, test: ast.expr) -> bool:
    """Whether what a condition compares with is then set: `if score > best: best = score`."""
    compared = {written(e) for e in (test.left, *test.comparators)} if isinstance(test, ast.Compare) else set()
    body = node.body if isinstance(node, ast.If) else []
    return any(written(n) in compared and isinstance(getattr(n, "ctx", None), ast.Store)
               for s in body for n in ast.walk(s) if isinstance(n, (ast.Name, ast.Attribute)))


def _frame(origins: Origins, path: tuple[Block, ...], frames: dict[tuple[int, ...], Frame]) -> Frame:
    """The frame of the innermost call on a path."""
    calls = tuple(b for b in path if b.kind in ("call", "root"))
    key = tuple(map(id, calls))
    if key not in frames:
        frames[key] = _entered(origins, calls, frames) if len(calls) > 1 else _outermost(calls[0])
    return frames[key]


def _outermost(root: Block) -> Frame:
    """The frame of what nobody calls: its arguments are sources."""
    code = syntax(root.function.file if root.function is not None else root.file)
    if root.function is None:
        return Frame(code, code.file.tree)
    scope = root.function.node
    found = Frame(code, scope)
    found.given.update({n: frozenset({Rows(("given", id(scope), n))}) for n in parameters(scope) if n != "self"})
    owner = code.owner(scope)
    if owner is not None:
        init = next((m for m in owner.body if isinstance(m, ast.FunctionDef) and m.name == "__init__"), owner)
        found.owner = Made(owner, Frame(code, init, key=(id(owner),)))
        found.owner.init.owner = found.owner
    return found


def _entered(origins: Origins, calls: tuple[Block, ...], frames: dict[tuple[int, ...], Frame]) -> Frame:
    outer, block = _frame(origins, calls[:-1], frames), calls[-1]
    info, node = block.function, block.node
    code = syntax(info.file if info is not None else block.file)
    scope = info.node if info is not None else code.file.tree
    if not isinstance(node, ast.Call):
        return Frame(code, scope, key=(*outer.key, id(node)))
    around: Frame | None = outer
    while around is not None and around.scope is not code.scope(scope):
        around = around.up
    owner = origins.of(node.func.value, outer) if isinstance(node.func, ast.Attribute) else None
    return origins.entered(Body(code, scope, around, owner if isinstance(owner, Made) else None), node, outer)
