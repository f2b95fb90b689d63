"""The loaders of a program: over which data set, in which order, for what; what happens when a sample is fetched."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import replace

from traindx_tools.knowledge import fetching
from traindx_tools.knowledge.fetching import lies_by_class
from traindx_tools.on_code.lengths import whole_data
from traindx_tools.on_code.nodes import listed
from traindx_tools.on_code.project import BACKWARD, Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import names_in
from traindx_tools.on_code.trace import Block, Event, Place
from traindx_tools.on_code.values import (
    Bag,
    Const,
    Function,
    Instance,
    Symbol,
    Table,
    Tensor,
    Thing,
    Value,
    number,
    truth,
)
from traindx_tools.program.loading import Draw, Fetch, Loader
from traindx_tools.program.moments import Spot

_ORDERS = ("shuffle", "permutation", "sample", "randperm")


def class_by_class(project: Project, data: Value | None, is_stream: bool) -> tuple[str, str, int | None]:
    """Why, as a clause, where the rows are made, and the rows of a buffer that they pass; ("", "", None) if not."""
    rows = _ordered(data, 0)
    if rows is not None:
        orders = [e.args[0] if e.args else e.receiver for e in project.calls(*_ORDERS)]
        if any(o is rows for o in orders):
            return "", "", None
        site = str(rows.site) if isinstance(rows, (Bag, Tensor)) else "?"
        buffer = _buffer(data) if is_stream else None
        through = f", passes through a buffer of {buffer} rows" if buffer else ""
        return f"reads rows that are made class by class at {site}{through}", site, buffer
    if not isinstance(data, Thing):
        return "", "", None
    why = lies_by_class(data.short)
    if not why and data.short == "ConcatDataset" and _one_label_each(data.args[0] if data.args else None):
        why = f"the parts that {data.site} puts in a row have one label each"
    return why, str(data.site) if why else "", None


def _ordered(value: Value | None, depth: int) -> Value | None:
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
    elif isinstance(value, Thing) and (value.short, len(value.args) > 1) in (
            ("TensorDataset", True), ("TensorDataset", False), ("Subset", True)):
        inner = list(value.args)
    return next((found for v in inner if (found := _ordered(v, depth + 1)) is not None), None)


def _one_label_each(parts: Value | None) -> bool:
    """Whether a comprehension makes parts of which each has the same label for all its rows."""
    part = parts.items[0] if isinstance(parts, Bag) and parts.open and parts.items else None
    return isinstance(part, Thing) and any(isinstance(a, Tensor) and "uniform" in a.tags for a in part.args)


def _buffer(data: Value | None) -> int | None:
    """The size of a buffer in which a stream shuffles: a whole number that it keeps and that is no length
    of its own."""
    if not isinstance(data, Instance):
        return None
    sizes = [v.value for k, v in data.attrs.items() if isinstance(v, Const) and type(v.value) is int
             and any(word in k for word in ("buffer", "window", "pool", "shuffle"))]
    return sizes[0] if sizes else None




def objects_of(project: Project, data: Value) -> tuple[str, str, float | None, Spot] | None:
    """A list of Python objects that a data set keeps: its attribute, the class, how many they are, where it is made."""
    for name, value in data.attrs.items() if isinstance(data, Instance) else ():
        if isinstance(value, Bag) and value.kind == "list" and value.items and _is_object(value.items[0]):
            count = number(value.size) if value.open else float(len(value.items))
            at = project.spot(value.site) if value.site is not None else None
            if at is not None and isinstance(data, Instance):
                return name, data.klass.info.name, count, at
    return None


def _is_object(value: Value) -> bool:
    if isinstance(value, Bag):
        return not all(isinstance(v, Tensor) for v in value.items)
    text = isinstance(value, Const) and isinstance(value.value, str)
    return text or isinstance(value, (Table, Instance)) or (isinstance(value, Symbol) and value.role == "text")


_TELLS_WORKERS = ("worker_init_fn", "get_worker_info")


def loaders(project: Project) -> Iterator[Loader]:
    """Each loader that the program makes."""
    made = [e for e in project.calls("DataLoader") if isinstance(e.result, Thing) and e.name.startswith("torch.")]
    if not made:
        return
    seeded = any(word in f.text for f in project.files for word in _TELLS_WORKERS)
    data = [e.result.argument(0, "dataset") for e in made if isinstance(e.result, Thing)]
    ids = {id(d) for one in data for d in (one, whole_data(one)) if d is not None}
    changed = any(e.kind == "store" and id(e.receiver) in ids for e in project.events)
    stores = listed((id(p.event.receiver), p) for root in (project.roots if changed else ()) for p in root.places
                    if p.event.kind == "store" and id(p.event.receiver) in ids)
    loops = listed((id(b.subject), b) for b in project.blocks if b.kind == "loop")
    for event in made:
        loader = _made(project, event, stores)
        if loader is not None:
            loader.seeded, loader.told_the_epoch = seeded, any(project.calls("set_epoch"))
            _used(project, loops.get(id(event.result), []), loader)
            yield loader


def _made(project: Project, event: Event, stores: Mapping[int, list[Place]]) -> Loader | None:
    """A loader as it is made. `stores`: what is written to attributes and items, by whose they are."""
    thing = event.result
    given = thing.argument(0, "dataset") if isinstance(thing, Thing) else None
    data = whole_data(given)
    if not isinstance(thing, Thing) or data is None or thing.state.get("annotation"):
        return None
    found = Loader(event.spot, id(data), cut=_cut(given) if data is not given else 0)
    found.made = str(data.site) if isinstance(data, (Thing, Instance)) else ""
    found.known = isinstance(data, (Thing, Instance))
    wanted, sampler = thing.argument(2, "shuffle"), thing.argument(3, "sampler") or thing.argument(4, "batch_sampler")
    found.shuffles = truth(wanted) if wanted is not None else False
    found.sampler = sampler.short if isinstance(sampler, Thing) else "unknown" if sampler is not None else ""
    if isinstance(sampler, Thing) and not thing.state.get("prepared"):
        found.sampler_at = project.spot(sampler.site)
        found.shuffles = truth(sampler.argument(3, "shuffle")) is not False
    found.drop_last = truth(thing.argument(8, "drop_last"))
    found.single = number(thing.argument(1, "batch_size") or Const(1)) == 1
    workers = thing.argument(5, "num_workers")
    found.workers = False if workers is None else None if number(workers) is None else number(workers) != 0
    found.persistent = workers is not None and found.workers is not False and _may_persist(thing)
    found.is_stream = isinstance(data, Instance) and (
        data.klass.info.derives("IterableDataset") or data.klass.info.method("__getitem__") is None)
    found.fetch = _fetch(project, data)
    found.kept = _kept(project, data) if isinstance(data, Instance) else None
    found.ordered, found.ordered_at, found.through = class_by_class(project, given, found.is_stream)
    found.objects = objects_of(project, data)
    found.swapped = any(_swaps(p) for owner in {id(given), id(data)} for p in stores.get(owner, ()))
    if found.persistent and isinstance(data, Instance):
        found.changed = next((c for p in stores.get(id(data), ()) if (c := _changed(p, data)) is not None), None)
    return found


def _cut(part: Value | None) -> int:
    """The parts of a random split are one thing here; subsets by indices belong together."""
    return id(part) if not isinstance(part, Thing) or len(part.args) < 2 else 1


def _may_persist(loader: Thing) -> bool:
    """`persistent_workers=True`, or as long as there are workers."""
    said = loader.kwargs.get("persistent_workers")
    return said is not None and truth(said) is not False


def _used(project: Project, loops: list[Block], loader: Loader) -> None:
    """What the loops over a loader do: those that send losses backward, and the others."""
    steps = any(loop.of("step") for loop in project.training_loops)
    for block in loops:
        attacks = steps and not any("step" in m for m in block.methods)  # gradients of the input: nothing is updated
        if BACKWARD & block.methods and not attacks:
            loader.trains = block.spot
            loader.labels_unread = _throws_labels_away(block)
            loader.epochs = loader.epochs or any(
                block in p.path and any(b.kind == "loop" for b in p.path[:p.path.index(block)])
                for t in project.training_loops for p in t.backwards)
        elif any(m in block.methods for m in ("__call__", "argmax", "no_grad")) and not _carries_state(block):
            loader.evaluates = block.spot


def _carries_state(block: Block) -> bool:
    """Whether a loop of JAX takes back what it hands on, as a step does: `state, loss = step(state, batch)`."""
    calls = [s for s in below(block.node) if isinstance(s, ast.Assign) and isinstance(s.value, ast.Call)]
    return "jax" in block.file.text and any(
        {n for t in s.targets for n in names_in(t)} & {n for a in s.value.args for n in names_in(a)}  # type: ignore[attr-defined]
        for s in calls)


def _throws_labels_away(block: Block) -> bool:
    """`for x, _ in loader`, behind `enumerate` too: then the order of classes says nothing."""
    pair = block.node.target if isinstance(block.node, ast.For) else None
    if isinstance(pair, ast.Tuple) and len(pair.elts) == 2 and isinstance(pair.elts[1], ast.Tuple):
        pair = pair.elts[1]
    label = pair.elts[1] if isinstance(pair, ast.Tuple) and len(pair.elts) == 2 else None
    return isinstance(label, ast.Name) and not any(
        isinstance(n, ast.Name) and n.id == label.id and isinstance(n.ctx, ast.Load) for n in below(block.node))


# what happens when a sample is fetched


def _fetch(project: Project, data: Value) -> Fetch:
    if isinstance(data, Thing):
        return Fetch(tuple(_of_transforms([*data.args, *data.kwargs.values()], project)))
    block = project.fetched.get(id(data))
    if block is None or not isinstance(data, Instance):
        return Fetch()
    places = [p for p in block.places if not _switched_off(p)]
    slow = next((p.event for p in places if p.event.name in fetching.slow_calls()), None)
    return Fetch(
        tuple(_draws(places, data, project)),
        None if slow is None else (slow.name, *fetching.slow_calls()[slow.name], slow.spot))


def _switched_off(place: Place) -> bool:
    """Whether a switch that keeps its default leaves it out."""
    return any(isinstance(b.subject, Const) and bool(b.subject.value) is b.is_other for b in place.branches)


def _draws(places: list[Place], data: Instance, project: Project) -> Iterator[Draw]:
    for event in (p.event for p in places if p.event.kind == "call"):
        owner = event.receiver
        if event.name in fetching.DRAWING and fetching.FIXES_DRAWS not in event.kwargs:
            yield Draw(event.text, event.spot)
        elif isinstance(owner, Thing) and owner.type in fetching.GENERATORS:
            own = next((k for k, v in data.attrs.items() if v is owner), "")
            if own:
                yield Draw(event.text, project.spot(owner.site), own)
        elif isinstance(owner, Thing) and event.method in ("__call__", owner.short):
            yield from _of_transforms([owner], project)


def _of_transforms(values: list[Value], project: Project, left: int = 4) -> Iterator[Draw]:
    """Random transforms of libraries among values, inside containers of them as well."""
    for value in values:
        if isinstance(value, Bag) and left:
            yield from _of_transforms(value.items, project, left - 1)
        elif isinstance(value, Thing) and fetching.is_random_transform(value.type):
            if number(value.kwargs.get("p")) != 0:
                yield Draw(value.short, project.spot(value.site), by_library=True)
        elif isinstance(value, Thing) and fetching.is_container(value.type) and left:
            yield from _of_transforms([*value.args, *value.kwargs.values()], project, left - 1)


def _kept(project: Project, data: Instance) -> tuple[Draw, str] | None:
    """A draw in a function, or an object that is called, that the data set was given and calls when it is made."""
    given = [*data.args, *data.kwargs.values()]
    callees = {id(v.info.node) for v in given if isinstance(v, Function)}
    callees |= {id(m.info.node) for v in given if isinstance(v, Instance)
                if (m := v.klass.info.method("__call__")) is not None}
    init = data.klass.info.method("__init__")
    if init is None:
        return None
    followed: set[int] = set()
    for block in project.blocks:
        if block.kind != "call" or block.function is None or block.function.node is not init.info.node:
            continue
        if id(block.body) in followed:
            continue  # the same call, seen from another place
        followed.add(id(block.body))
        for place in block.places:
            event, owner = place.event, place.event.receiver
            library = isinstance(owner, Thing) and event.method == "__call__" and any(_of_transforms([owner], project))
            inner = event.name in fetching.DRAWING and fetching.FIXES_DRAWS not in event.kwargs and any(
                _is_callee(b, callees) for b in place.path)
            if library or inner:
                return Draw(event.text, event.spot), data.klass.info.name
    return None


def _is_callee(block: Block, callees: set[int]) -> bool:
    return block.kind == "call" and block.function is not None and id(block.function.node) in callees


# what changes later


def _swaps(place: Place) -> bool:
    """`part.dataset = ...`, `data.transform = None` outside of the constructor."""
    event = place.event
    inside = event.function is not None and event.function.name == "__init__"
    return not inside and event.name.startswith("attribute.")


def _changed(place: Place, data: Instance) -> tuple[str, str, object] | None:
    """An attribute that fetching reads, changed in a loop."""
    event, name = place.event, place.event.name.rpartition(".")[2]
    inside = event.function is not None and event.function.name.startswith("__")
    if inside or not place.loops or name not in _read(data):
        return None
    call = next((b for b in reversed(place.path) if b.kind == "call"), None)
    spot = event.spot
    at = spot if call is None else replace(call.spot, quote=spot.quote)
    return name, event.text, at


def _read(data: Instance) -> set[str]:
    """The attributes that the methods of a data set read, its constructor and its length left out."""
    methods = [m.info.node for info in data.klass.info.lineage() for n, m in info.methods.items()
               if n not in ("__init__", "__len__")]
    return {n.attr for m in methods for n in below(m) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Load)}
