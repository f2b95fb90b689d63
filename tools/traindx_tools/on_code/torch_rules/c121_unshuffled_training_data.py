"""Training data arrives in an order that means something.

Rows that are made or stored class after class and are not shuffled, or pass through a shuffle buffer much smaller
than a class, give batches of one or two classes: the model fits the current class and forgets the others, with the
epoch as period. The rule is certain where it sees the rows being made in nested loops whose outer variable is the
label, or labels by `repeat_interleave` of a range; a map-style loader without `shuffle` is only remarked.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.lookup import lookup
from traindx_tools.on_code.project import Project, TrainingLoop, location
from traindx_tools.on_code.repairs import data
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import argument, last_name, parameters, syntax
from traindx_tools.on_code.trace import Block
from traindx_tools.on_code.values import Bag, Const, Instance, Tensor, Thing, Value, truth
from traindx_tools.rules import Rule

RULE = Rule(
    id="C121",
    name="unshuffled-training-data",
    title="Training data is not shuffled",
    severity=Severity.HIGH,
    sees="The loader of a training loop: its shuffle, its sampler, and the order in which its rows are made.",
    matters="Batches are correlated; with rows sorted by class the model forgets all but the current one.",
    alike=("a learning rate that is too high", "a schedule with restarts at each epoch"),
    confirm=("print the labels of the first batches", "shuffle the rows once before training and compare"),
)
_SAMPLERS = ("sampler", "batch_sampler")


def check(project: Project) -> Iterator[Finding]:
    """Look at the loaders that training loops run over."""
    shuffled = [
        e.args[0] if e.args else e.receiver for e in project.calls("shuffle", "permutation", "sample", "randperm")
    ]
    for loop in project.training_loops:
        for block in _loops(loop):
            loader = block.subject
            if isinstance(loader, Thing) and loader.short == "DataLoader":
                yield from _judged(loader, shuffled, project, block)


def _loops(loop: TrainingLoop) -> list[Block]:
    found = {id(b): b for p in loop.backwards for b in p.loops}
    return list(found.values())


def _judged(loader: Thing, shuffled: list[Value | None], project: Project, block: Block) -> Iterator[Finding]:
    wanted = loader.argument(2, "shuffle")
    if (
        truth(wanted)
        or (wanted is not None and not isinstance(wanted, Const))
        or any(loader.kwargs.get(s) for s in _SAMPLERS)
    ):
        return
    dataset = loader.argument(0, "dataset")
    if dataset is None or loader.state.get("annotation"):
        return
    event = next((e for e in project.calls("DataLoader") if e.result is loader), None)
    if event is None:
        return
    rows = _ordered(dataset, 0)
    if rows is not None and not any(s is rows for s in shuffled):
        buffer = _buffer(dataset)
        through = f", passes through a buffer of {buffer} rows" if buffer else ""
        yield RULE.finding(
            f"The training loader at {event.file.path}:{event.line} reads rows that are made class by class at "
            f"{_site(rows)}"
            f"{through} and is not shuffled: each batch holds one or two classes",
            location(event),
            event.file.path,
            bearing=Bearing.CAUSE,
            measured={"kind": "ordered", "made_at": str(_site(rows)), "buffer": buffer},
            patch=data.shuffled(event.file, event.node)
            if not _is_stream(dataset)
            else data.whole_buffer(event.file, dataset, buffer)
            if isinstance(dataset, Instance) and buffer is not None
            else (),
        )
    elif (why := _by_class(project, dataset)) is not None:
        if _labels_unread(block):
            return
        yield RULE.finding(
            f"The training loader at {event.file.path}:{event.line} does not shuffle, and {why}: each batch holds one "
            "or two classes",
            location(event),
            event.file.path,
            bearing=Bearing.CAUSE,
            measured={"kind": "ordered", "made_at": str(dataset.site) if isinstance(dataset, Thing) else "?"},
            patch=data.shuffled(event.file, event.node),
        )
    elif not _is_stream(dataset) and isinstance(dataset, (Instance, Thing)):
        yield RULE.finding(
            f"The training loader at {event.file.path}:{event.line} does not shuffle: batches come in the order "
            "of the data in "
            "every epoch",
            location(event),
            event.file.path,
            bearing=Bearing.SIGN,
            severity=Severity.LOW,
            measured={"kind": "no shuffle"},
        )


def _labels_unread(block: Block) -> bool:
    """Whether the loop throws the labels away, `for x, _ in loader`: then the order of classes says nothing."""
    loop = block.node
    pair = loop.target if isinstance(loop, ast.For) else None
    if isinstance(pair, ast.Tuple) and len(pair.elts) == 2 and isinstance(pair.elts[1], ast.Tuple):
        pair = pair.elts[1]  # of enumerate
    label = pair.elts[1] if isinstance(pair, ast.Tuple) and len(pair.elts) == 2 else None
    return isinstance(label, ast.Name) and not any(
        isinstance(n, ast.Name) and n.id == label.id and isinstance(n.ctx, ast.Load) for n in below(loop))  # fmt: skip


def _by_class(project: Project, dataset: Value) -> str | None:
    """Why the samples of a data set lie class by class: folders of classes, or one part for each class in a row."""
    if not isinstance(dataset, Thing):
        return None
    if dataset.short in ("ImageFolder", "DatasetFolder"):
        return f"{dataset.short} lists its files class by class"
    parts = dataset.node.args[0] if isinstance(dataset.node, ast.Call) and dataset.node.args else None
    if dataset.short != "ConcatDataset" or not isinstance(parts, ast.ListComp) or len(parts.generators) != 1:
        return None
    made, over = parts.elt, parts.generators[0]
    file = project.file(dataset.site.path)
    if file is None or not isinstance(made, ast.Call):
        return None
    turning = {n.id for n in below(over.target) if isinstance(n, ast.Name)}
    if _labelled(made, turning):
        return f"the parts that line {made.lineno} puts in a row have one label each"
    body = lookup(project).function(syntax(file), made.func)
    if body is None or isinstance(body[1], ast.Lambda):
        return None
    given = zip(parameters(body[1]), made.args, strict=False)
    names = {name for name, a in given if isinstance(a, ast.Name) and a.id in turning}
    names |= {k.arg for k in made.keywords if k.arg and isinstance(k.value, ast.Name) and k.value.id in turning}
    if any(_labelled(n, names) for n in below(body[1])):
        return f"{body[1].name} makes a part with one label for each class, which line {made.lineno} puts in a row"
    return None


def _labelled(node: ast.AST, names: set[str]) -> bool:
    """`torch.full((n,), k)`, `[k] * n`, `np.repeat(k, n)`: the same label for each row."""
    if isinstance(node, ast.Call) and last_name(node.func) in ("full", "full_like", "repeat"):
        value = argument(node, 0 if last_name(node.func) == "repeat" else 1, "fill_value")
        return isinstance(value, ast.Name) and value.id in names
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and isinstance(node.left, ast.List):
        return len(node.left.elts) == 1 and isinstance(node.left.elts[0], ast.Name) and node.left.elts[0].id in names
    return False


def _ordered(value: Value, depth: int) -> Value | None:
    """The rows inside a data set that were made class by class."""
    if depth > 4:
        return None
    if isinstance(value, Bag):
        return value if value.ordered_by else None
    if isinstance(value, Tensor):
        return value if {"ramp", "repeated"} <= value.tags else None
    inner: list[Value] = []
    if isinstance(value, Instance):
        inner = list(value.attrs.values())
    elif isinstance(value, Thing) and value.short in ("TensorDataset", "Subset"):
        if value.short == "Subset" and len(value.args) < 2:
            return None  # random_split draws at random
        inner = list(value.args)
    return next((found for v in inner if (found := _ordered(v, depth + 1)) is not None), None)


def _buffer(dataset: Value) -> int | None:
    if not isinstance(dataset, Instance) or not _is_stream(dataset):
        return None
    sizes = [
        v.value
        for k, v in dataset.attrs.items()
        if isinstance(v, Const)
        and type(v.value) is int
        and ("buffer" in k or "window" in k or "pool" in k or "shuffle" in k)
    ]
    return sizes[0] if sizes else None


def _is_stream(dataset: Value) -> bool:
    if isinstance(dataset, Instance):
        return dataset.klass.info.derives("IterableDataset") or dataset.klass.info.method("__getitem__") is None
    return isinstance(dataset, Thing) and "Iterable" in dataset.type


def _site(value: Value) -> object:
    return value.site if isinstance(value, (Bag, Tensor)) else "?"
