"""A model is put into eval mode inside the training loop and never put back.

After the first evaluation Dropout is off and BatchNorm uses, and no longer updates, its running statistics, for all
training that follows. The rule follows `eval()` into helper functions, asks that the model is the one that is trained,
and is silent where any `train()` of it runs in the innermost loop that trains and evaluates. A model of which every
layer is known and none depends on the mode is only remarked.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code import patching
from traindx_tools.on_code.layers import MODE_DEPENDENT
from traindx_tools.on_code.library import submodules
from traindx_tools.on_code.project import Project, TrainingLoop, location
from traindx_tools.on_code.source import below
from traindx_tools.on_code.trace import Block, Event, Place
from traindx_tools.on_code.training import is_false, same, text_of
from traindx_tools.on_code.values import Bag, Instance, Symbol, Tensor, Thing, Value, unwrap
from traindx_tools.rules import Rule

RULE = Rule(
    id="C104",
    name="eval-never-undone",
    title="Training goes on in eval mode",
    severity=Severity.HIGH,
    sees="A call of eval() on the trained model, in or before the training loop, and no train() on it in that loop.",
    matters="Dropout stays off and BatchNorm's statistics stop moving for the rest of training.",
    alike=("overfitting", "BatchNorm momentum that is too small"),
    confirm=("print model.training at the start of each epoch", "add model.train() there and compare"),
)


def check(project: Project) -> Iterator[Finding]:
    """Look at every training loop."""
    for loop in project.training_loops:
        for place in loop.of("eval"):
            model = place.event.receiver
            if model is None or place.event.args or _chosen(loop, model):
                continue
            if _harmful(loop, place):
                yield from _finding(loop, place, "in the loop")
        yield from _before(loop)


def _harmful(loop: TrainingLoop, place: Place) -> bool:
    model = place.event.receiver
    assert model is not None
    around = _around(loop, place)
    if not _trained(loop, model, around):
        return False
    return not any(around in p.path and _puts_back(p.event, model) for p in loop.of("train"))


def _chosen(loop: TrainingLoop, model: Value) -> bool:
    """Whether some eval() is what training begins with: a probe on a network that is left as it is."""
    return any(same(p.event.receiver, model) and _trains_next(loop, p, model) for p in loop.of("eval"))


def _trains_next(loop: TrainingLoop, place: Place, model: Value) -> bool:
    """Whether the model is trained in the very function, by the first call of it behind eval()."""
    body = next((b for b in reversed(place.path) if b.kind == "call"), None)
    if body is None or not _SENDS & body.methods:
        return False
    later = (p for p in loop.of("__call__") if p.order > place.order and same(p.event.receiver, model))
    first = next((p for p in later if body in p.path), None)
    return first is not None and first.event.grad is not False and any(
        b.kind == "loop" and _SENDS & b.methods for b in first.path[first.path.index(body) :])  # fmt: skip


_SENDS = frozenset({"backward", "manual_backward"})


def _around(loop: TrainingLoop, place: Place) -> Block:
    """The innermost loop that holds both the evaluation and a call of backward."""
    for block in reversed(place.path):
        if block.kind == "loop" and {"backward", "manual_backward"} & block.methods:
            return block
    return loop.block


def _puts_back(event: Event, model: Value) -> bool:
    mode = event.args[0] if event.args else event.kwargs.get("mode")
    if is_false(mode):
        return False
    other = event.receiver
    return (
        same(other, model)
        or isinstance(other, Symbol)
        or not isinstance(model, (Thing, Instance))
        or _holds(other, model)
    )


def _holds(outer: Value | None, inner: Value) -> bool:
    return outer is not None and any(m is unwrap(inner) for m in submodules(unwrap(outer)))


def _trained(loop: TrainingLoop, model: Value, around: Block) -> bool:
    """Whether the model's outputs are computed with a graph in the loop, outside this evaluation."""
    target = unwrap(model)
    if isinstance(target, (Thing, Instance)) and target.state.get("frozen"):
        return False
    for place in loop.places:
        event = place.event
        if (
            event.kind == "call"
            and event.method == "__call__"
            and event.grad is not False
            and same(event.receiver, model)
        ):
            if around not in place.path:
                continue
            result = event.result
            if isinstance(result, Tensor) and result.grad is False:
                continue
            if isinstance(result, Bag) and any(isinstance(i, Tensor) and i.grad is False for i in result.items):
                continue
            return True
    return False


def _before(loop: TrainingLoop) -> Iterator[Finding]:
    """An evaluation before training, after which nothing puts the model back."""
    done: list[Value] = []
    for place in reversed(loop.modes_before):
        model = place.event.receiver
        if model is None or any(same(model, d) for d in done):
            continue
        done.append(model)
        if place.event.method != "eval" or not _evaluates(place) or not _trained(loop, model, loop.block):
            continue
        if _chosen(loop, model):
            continue
        if not any(_puts_back(p.event, model) for p in loop.of("train")):
            yield from _finding(loop, place, "before the loop")


def _evaluates(place: Place) -> bool:
    """Whether eval() belongs to an evaluation of its own: in a function that also runs the model without a graph."""
    block = next((b for b in reversed(place.path) if b.kind == "call"), None)
    if block is None or "backward" in block.methods:
        return False
    return block.function is not None and "__call__" in block.methods


def _finding(loop: TrainingLoop, place: Place, kind: str) -> Iterator[Finding]:
    event = place.event
    model = event.receiver
    assert model is not None
    layers, complete = _mode_dependent(unwrap(model))
    harmless = complete and not layers
    around = _around(loop, place)
    name = text_of(event)
    consequence = (
        "no layer of it depends on the mode"
        if harmless
        else (
            f"from then on {', '.join(layers)} stay in eval mode" if layers else "from then on it trains in eval mode"
        )
    )
    yield RULE.finding(
        f"{name}.eval() at {event.file.path}:{event.line} is not undone: no train() is called on the model in "
        "the training "
        f"loop at {around.file.path}:{around.line}; {consequence}",
        location(event),
        event.file.path,
        bearing=Bearing.CAUSE,
        severity=Severity.LOW if harmless else None,
        measured={"kind": kind, "model": name, "loop_line": around.line, "layers": tuple(layers)},
        patch=() if harmless else _patch(loop, around, model),
    )


def _mode_dependent(model: Value) -> tuple[list[str], bool]:
    """The mode-dependent layers of a model by type, and whether all of its layers are known."""
    if not isinstance(model, (Thing, Instance)) or (
        isinstance(model, Thing) and not model.type.startswith("torch.nn.")
    ):
        return [], False
    found: dict[str, None] = {}
    complete = True
    for part in submodules(model):
        if isinstance(part, Thing):
            if part.short.startswith(MODE_DEPENDENT) or ("Transformer" in part.short and "Encoder" in part.short):
                found[part.short] = None
            if part.short in ("LSTM", "GRU", "RNN") and part.kwargs.get("dropout") is not None:
                found[part.short] = None
            complete = complete and part.type.startswith("torch.nn.") and part.short != "Module"
        elif isinstance(part, Instance):
            foreign = [b for b in part.klass.info.foreign_bases if not b.startswith("torch.nn.")]
            complete = (
                complete
                and not foreign
                and not any(
                    isinstance(v, Symbol) and v.role in ("call", "parameter", "output") for v in part.attrs.values()
                )
            )
    return list(found), complete


def _patch(loop: TrainingLoop, around: Block, model: Value) -> tuple[Patch, ...]:
    import ast

    name = _name_in(loop, around, model)
    if name is None or not isinstance(around.node, (ast.For, ast.While)) or not around.node.body:
        return ()
    made = patching.insert_before(
        around.file, around.node.body[0], f"{name}.train()", f"put {name} back into training mode in every iteration"
    )
    return (made,) if made is not None else ()


def _name_in(loop: TrainingLoop, around: Block, model: Value) -> str | None:
    """How the model is called in the function in which the loop stands."""
    import ast

    if isinstance(around.node, (ast.For, ast.While)):
        for place in loop.places:
            node = place.event.node
            if (
                place.event.function is around.function
                and same(place.event.receiver, model)
                and isinstance(node, ast.Call)
            ):
                target = (
                    node.func
                    if place.event.method == "__call__"
                    else (node.func.value if isinstance(node.func, ast.Attribute) else node.func)
                )
                if isinstance(target, (ast.Name, ast.Attribute)):
                    return ast.unparse(target)
        for name in {n.id for n in below(around.node) if isinstance(n, ast.Name)}:
            if around.function is None or not isinstance(model, (Thing, Instance)):
                break
            if any(_argument_named(p, around, name, model) for p in loop.places):
                return name
    return None


def _argument_named(place: Place, around: Block, name: str, model: Value) -> bool:
    import ast

    event = place.event
    if event.function is not around.function or not isinstance(event.node, ast.Call):
        return False
    return any(
        isinstance(a, ast.Name) and a.id == name and i < len(event.args) and same(event.args[i], model)
        for i, a in enumerate(event.node.args)
    )
