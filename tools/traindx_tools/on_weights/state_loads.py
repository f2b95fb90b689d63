"""Which model of a program takes the weights of which file, and what its layers are called in a state dict.

A load is told where the state comes from a file as it is: `torch.load(path)`, an entry of it, `load_file(path)`. One
whose keys are written anew first (a prefix taken off) says nothing of what the file's keys have to be.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from traindx_tools.on_code.layers import learns, named_parts
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.values import Const, Instance, Site, Symbol, Thing, Value, unwrap

READS = frozenset({"torch.load", "safetensors.torch.load_file", "torch.hub.load_state_dict_from_url"})
_WRAPPERS = frozenset({"torch.nn.DataParallel", "torch.nn.parallel.DistributedDataParallel"})
"""Modules that put "module." in front of each name."""
_NORMS = ("BatchNorm", "LayerNorm", "GroupNorm", "SyncBatchNorm", "RMSNorm")
_CHANGES = frozenset({"pop", "update", "popitem", "clear", "setdefault", "__setitem__", "__delitem__"})
_DEEPEST = 6

Dims = tuple[int | None, ...]


@dataclass(frozen=True)
class Layer:
    """A layer with weights. `weight`: sizes of its weight's axes, None where the text leaves one open; () unknown."""

    kind: str
    weight: Dims = ()


@dataclass(frozen=True)
class Model:
    """A model of the program, by the class that makes it. `layers`: by the name that a state dict gives them."""

    name: str
    made: Site
    layers: Mapping[str, Layer]


@dataclass(frozen=True)
class Load:
    """`load_state_dict` of a model with what a file holds."""

    model: Model
    at: Site
    file: str
    """The last part of the file's path, "" where the text leaves it open."""
    keys: tuple[str, ...] | None
    """The entries that lead to the state in the file; None where they are chosen while the program runs."""


def loads(project: Project) -> Iterator[Load]:
    """Every load of a model whose layers are known."""
    for event in project.calls("load_state_dict"):
        model = model_of(event.receiver)
        state = event.argument(0, "state_dict")
        if model is None or not isinstance(state, Symbol) or _changed(project, state):
            continue
        found = _read_from(state)
        if found is not None:
            yield Load(model, event.site, _file_of(project, found[0]), found[1])


def models(project: Project) -> list[Model]:
    """The outermost models, each class once: those that no other one holds."""
    made = [i for i in project.instances if i.klass.info.is_module]
    inner = {id(part) for whole in made for _, part in named_parts(whole)}
    found: dict[str, Model] = {}
    for whole in made:
        model = model_of(whole) if id(whole) not in inner else None
        if model is not None:
            found.setdefault(model.name, model)
    held = {p.klass.info.name for whole in made for _, p in named_parts(whole) if isinstance(p, Instance)}
    return [m for name, m in found.items() if name not in held]


def model_of(value: Value | None) -> Model | None:
    """What a value is as a model; None for what is none, or has no layer that is known."""
    whole = unwrap(value) if value is not None else None
    outer = value if isinstance(value, Thing) else None
    before = "module." if outer is not None and outer.type in _WRAPPERS else ""
    if before and outer is not None and outer.args:
        whole = unwrap(outer.args[0])
    if not isinstance(whole, Instance) and not (isinstance(whole, Thing) and whole.type.startswith("torch.nn.")):
        return None
    layers = {f"{before}{path}": layer for path, part in named_parts(whole) if (layer := _layer(part)) is not None}
    name = whole.klass.info.name if isinstance(whole, Instance) else whole.short
    site = Site(whole.klass.info.file.path, whole.klass.info.node.lineno) if isinstance(whole, Instance) else whole.site
    return Model(name, site, layers) if layers else None


def _layer(part: Value) -> Layer | None:
    """A layer of torch.nn that certainly has weights under its own name."""
    if not isinstance(part, Thing) or not part.type.startswith("torch.nn."):
        return None
    if part.short.startswith(_NORMS):
        plain = all(k not in part.kwargs for k in ("affine", "elementwise_affine"))
        return Layer(part.short, _sizes(part, ("num_features", 0)) if part.short.startswith("BatchNorm") else ()
                     ) if plain else None  # fmt: skip
    if not learns(part) or part.short.startswith("Transformer"):
        return None
    if part.short == "Linear":
        return Layer(part.short, _sizes(part, ("out_features", 1), ("in_features", 0)))
    if part.short == "Embedding":
        return Layer(part.short, _sizes(part, ("num_embeddings", 0), ("embedding_dim", 1)))
    return Layer(part.short)


def _sizes(layer: Thing, *axes: tuple[str, int]) -> Dims:
    """Sizes that are written down; a default that a caller may override is left open."""
    values = [layer.argument(position, name) for name, position in axes]
    return tuple(v.value if isinstance(v, Const) and v.fixed and type(v.value) is int else None for v in values)


def _read_from(state: Symbol) -> tuple[Symbol, tuple[str, ...] | None] | None:
    """The call that read a file, and the keys that lead from what it gave to the state."""
    keys: list[str] = []
    sure = True
    node: Value | None = state
    for _ in range(_DEEPEST):
        if not isinstance(node, Symbol):
            return None
        name = node.name.partition("@")[0]
        if node.role == "call" and name in READS:
            return node, tuple(reversed(keys)) if sure else None
        if node.role == "item" and name[:1] in "\"'":
            keys.append(ast.literal_eval(name))
        elif node.role == "call" and name == "get":
            sure = False
        else:
            return None
        node = node.parent
    return None


def _changed(project: Project, state: Symbol) -> bool:
    """Whether keys are taken out of a state, or put into it, anywhere."""
    return any(e.receiver == state and e.method in _CHANGES for e in project.calls(*_CHANGES)) or any(
        e.kind in ("store", "delete") and (e.receiver == state or (e.args and e.args[0] == state))
        for e in project.events)  # fmt: skip


def _file_of(project: Project, read: Symbol) -> str:
    """How the file of a read is called: the last part of its path, where that is written."""
    for event in project.calls(*(r.rpartition(".")[2] for r in READS)):
        if event.result == read:
            return _last_part(event)
    return ""


def _last_part(event: Event) -> str:
    given = event.argument(0, "f") or event.argument(0, "filename")
    if isinstance(given, Const) and isinstance(given.value, str):
        return PurePosixPath(given.value).name
    node = event.node.args[0] if isinstance(event.node, ast.Call) and event.node.args else None
    written: Sequence[str] = [n.value for n in below(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)
                              ] if node is not None else []
    return next((PurePosixPath(w).name for w in written if PurePosixPath(w).suffix and "{" not in w), "")
