"""A resumption as a relation: what a program saves to go on from, what it restores of it and needs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cached_property

from traindx_tools.knowledge.tables import table as rows_of
from traindx_tools.on_code.definitions import ClassInfo, Function
from traindx_tools.on_code.filling.averages import moved
from traindx_tools.on_code.filling.states import READS, attribute_set
from traindx_tools.on_code.library import submodules
from traindx_tools.on_code.lookup import Lookup, lookup
from traindx_tools.on_code.optimizer_parameters import modules_of
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, last_name, syntax, written
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.training import is_optimizer, is_scaler, is_scheduler, stepped
from traindx_tools.on_code.values import (
    Bag,
    Const,
    Instance,
    Operation,
    Site,
    Symbol,
    Table,
    Thing,
    Value,
    parts,
    truth,
    unwrap,
)
from traindx_tools.program.parts import Lack

_SAVES = ("save", "dump", "savez", "savez_compressed", "save_file", "save_checkpoint", "save_pretrained", "write_text")
_KINDS = ((is_optimizer, "the optimizer's state"), (is_scaler, "the state of the loss scaler"),
          (is_scheduler, "the state of the schedule"))
_LOADS = frozenset({"torch.load", "pickle.load", "joblib.load", "dill.load", "cloudpickle.load"})
_PLACED = re.compile(r"\.last_epoch\b|\b_step_count\b|_initial_step")
_TOLD = frozenset({"print", "info", "format", "log", "debug", "warning"})


def resumes(project: Project) -> Iterator[Lack]:
    """Every part of the training state that a resumption leaves behind."""
    yield from _too_early(project)
    yield from _without_optimizer(project)
    relation = _Relation(project)
    if relation.reads:
        for save, table in relation.saves:
            if relation.goes_on(table):
                yield from relation.lacks(save, table)
    yield from _weights_alone(project)
    yield from _statistics(project)
    reading = {e.function.owner for e in project.calls("load") if e.function is not None and e.name in _LOADS}
    for save in project.calls("save", "dump"):
        if save.function is not None and save.function.owner in reading and {Table, Bag} & set(map(type, save.args)):
            yield from _counters(save, save.function.node, save.function.owner)


class _Relation:
    """What is saved and what is restored, by where each object is made."""

    def __init__(self, project: Project) -> None:
        self.project = project
        loads = list(project.calls("load_state_dict"))
        self.reads = [e for e in loads if any(isinstance(p, Symbol) and p.name.startswith(READS)
                                              for a in e.args[:1] for p in parts(a))]
        self.keys = {p.name for e in self.reads for p in parts(e.args[0]) if isinstance(p, Symbol) and p.role == "item"}
        self.restored = {site for e in loads for site in _sites(e.receiver)}
        self.restored |= {s for e in project.calls("copy_") for s in _sites(e.receiver)}
        self.restored |= self._by_own_ways("load_state_dict")
        known = {str(e.site) for e in loads if not isinstance(e.receiver, Symbol)}
        followed = {id(e.node) for e in loads} | {id(b.node) for b in project.blocks}
        self.open = any(isinstance(e.receiver, Symbol) and str(e.site) not in known and e.receiver.role not in (
            "parameter", "attribute", "output") for e in loads) or any(
                id(c) not in followed for f in project.files for c in syntax(f).calls("load_state_dict"))
        """Something that is not known is restored, too, or where no run is known to come."""

    def _by_own_ways(self, name: str) -> set[Site]:
        """Objects of the project whose classes have a method of that name of their own."""
        called = [b.subject for b in self.project.blocks if b.kind == "call" and isinstance(b.subject, Function)]
        return {s for f in called if f.info.name == name for s in _sites(f.owner)}

    @cached_property
    def saves(self) -> list[tuple[Event, Table]]:
        """Every table with the state of something that is given to what saves."""
        events = self.project.calls("save", "dump", "save_checkpoint")
        return [(e, t) for e in events for t in (*e.args, *e.kwargs.values()) if isinstance(t, Table)
                and any(_state(v) is not None for v in t.items.values())]

    @cached_property
    def saved(self) -> set[Site]:
        """Where all is made that any file holds."""
        found = {s for _, t in self.saves for v in _values(t) for s in _sites(_state(v) or v)}
        return found | self._by_own_ways("state_dict")

    def needed(self, table: Table) -> Iterator[tuple[str, Thing | Instance, bool]]:
        """(what it is, the object, whether it must be in a file) of all that a loop steps or moves which trains what
        the file holds."""
        averages, loops = dict(moved(self.project)), self.project.training_loops
        if not all(isinstance(v, (Const, Operation)) or (isinstance(v, Symbol) and (
                _state(v) is not None or v.role == "index" or (v.role == "call" and v.parent is None)))
                   for _, t in self.saves for v in _values(t)):
            averages = {e: m for e, m in averages.items() if not isinstance(m, Instance) or m.klass.info.is_module}
        here = {id(p) for v in _values(table) if (o := _state(v)) is not None for p in (unwrap(o), *submodules(o))}
        for loop in loops:
            held = [m for p in loop.of("step") for m in modules_of(stepped(p.event)) or ()]
            if not any(id(p) in here for m in held for p in (m, *submodules(m))) if held else len(loops) > 1:
                continue
            for place in loop.places:
                event = place.event
                one: Value | None = averages.get(event) or stepped(event) or event.receiver
                kind = "the average of the weights" if event in averages else next(
                    (k for is_one, k in _KINDS if event.method in ("step", "update") and is_one(one)), "")
                if kind and isinstance(one, (Thing, Instance)):
                    plain = isinstance(one, Thing) and one.short == "SGD" and one.argument(2, "momentum") is None
                    yield kind, one, event in averages or self._counts(one) or (is_optimizer(one) and not plain)

    def _counts(self, schedule: Thing | Instance) -> bool:
        """Whether a schedule counts by itself, its optimizer comes back, and nothing moves it to where that was."""
        optimizer = schedule.argument(0, "optimizer") if isinstance(schedule, Thing) else None
        if not _sites(optimizer) & self.restored:
            return False
        steps = [e for e in self.project.calls("step") if e.receiver is schedule]
        inside = {id(p.event) for loop in self.project.training_loops for p in loop.of("step")}
        return is_scheduler(schedule) and isinstance(schedule, Thing) and "last_epoch" not in schedule.kwargs and all(
            id(e) in inside and not e.args and not e.kwargs for e in steps) and not any(
            f.mentions(_PLACED) for f in self.project.files)  # fmt: skip

    def goes_on(self, table: Table) -> bool:
        """Whether the program begins again where it was: it reads a count that it saved, other than to tell it."""
        counts = {k for k, v in table.items.items() if isinstance(v, (Symbol, Operation)) and any(
            isinstance(p, Symbol) and (p.role == "index" or (p.role, p.name) == ("item", repr(k))) for p in parts(v))}
        return not table.open and table.rest is None and any(
            _key(n) in counts and not any(isinstance(up, ast.JoinedStr) or (
                isinstance(up, ast.Call) and last_name(up.func) in _TOLD) for up in code.above(n))
            for code, body in self._bodies for n in (*code.inside(body, ast.Subscript), *code.inside(body, ast.Call)))

    @cached_property
    def _bodies(self) -> list[tuple[Syntax, ast.AST]]:
        """The functions that restore something, and those around the loops that train."""
        around = [b for loop in self.project.training_loops for b in (*loop.path, loop.block)]
        homes = [*((e.file, e.function) for e in self.reads), *((b.file, b.function) for b in around)]
        return [(syntax(f), info.node if info is not None else f.tree) for f, info in dict.fromkeys(homes)]

    def lacks(self, save: Event, table: Table) -> Iterator[Lack]:
        """What the loop needs and the file has not, or has and nobody restores."""
        here = {s for v in _values(table) for s in _sites(_state(v))}
        load = next((e for e in self.reads if _sites(e.receiver) & here), None)
        told: set[Site] = set()
        for what, one, must in self.needed(table) if not self.open and (load or not here & self.restored) else ():
            keys = {repr(k) for k, v in table.items.items() if one.site in _sites(_state(v))}
            if one.site in told or keys & self.keys:
                continue
            told.add(one.site)
            if one.site in here and one.site not in self.restored and load is not None:
                yield Lack("restored", what, load.spot, save.spot)
            elif must and not _sites(one) & (self.saved | self.restored):
                yield Lack("saved", what, save.spot)


def _key(node: ast.AST) -> object:
    """The key that is read: `state["epoch"]`, `state.get("epoch")`."""
    read = isinstance(node, ast.Call) and last_name(node.func) in ("get", "pop") and node.args
    key = node.args[0] if isinstance(node, ast.Call) and read else getattr(node, "slice", None)
    stored = isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del))
    return key.value if isinstance(key, ast.Constant) and not stored else None


def _values(table: Table) -> Iterator[Value]:
    for value in table.items.values():
        yield from _values(value) if isinstance(value, Table) else (value,)


def _state(value: Value) -> Value | None:
    """The object whose state a value is."""
    return value.parent if isinstance(value, Symbol) and value.name.startswith("state_dict@") else None


def _sites(value: Value | None) -> set[Site]:
    """Where an object is made, and what it holds."""
    value = unwrap(value) if value is not None else None
    if not isinstance(value, (Thing, Instance)):
        return set()
    held = (*submodules(value), *(value.attrs.values() if isinstance(value, Instance) else ()))
    return {v.site for v in (value, *held) if isinstance(v, (Thing, Instance))}


def _counters(save: Event, body: ast.AST, owner: ClassInfo | None) -> Iterator[Lack]:
    """Counts of calls that a rate is reckoned from, and that the object which saves itself neither saves nor sets."""
    if owner is None:
        return
    for name in sorted(owner.counters):
        nodes = [(m, n) for m, f in owner.methods.items() for n in below(f.info.node)]
        kept = {getattr(n, "attr", getattr(n, "value", getattr(n, "id", ""))) for n in below(body)
                if isinstance(n, (ast.Attribute, ast.Constant, ast.Name))} & {name, "__dict__", "vars"}
        sets = any(isinstance(n, ast.Attribute) and n.attr == name and isinstance(n.ctx, ast.Store) and m != "__init__"
                   and isinstance(syntax(owner.file).statement(n), ast.Assign) for m, n in nodes)
        if not kept and not sets and any(
                isinstance(n, ast.BinOp) and isinstance(n.op, (ast.Mult, ast.Div, ast.Pow)) and (
                    name == last_name(n.left) or (isinstance(n.op, ast.Mult) and name == last_name(n.right)))
                for _, n in nodes):
            yield Lack("counter", f"{owner.name}.{name}", save.spot)


def _statistics(project: Project) -> Iterator[Lack]:
    """Objects beside the model that normalise by what they have seen so far, and that no file holds."""
    load = next(project.calls("load_state_dict", "load_file"), None)
    saves = list(project.calls(*_SAVES))
    if load is None or not saves or len(project.files) > 40:
        return  # a collection, in which another file may save
    look, updates = lookup(project), [e for e in project.events if e.kind in ("augmented", "blended")]
    whole = {site for e in saves for a in e.args for site in _sites(a)}
    for instance in {i.site: i for i in project.instances if not i.klass.info.is_module}.values():
        info = instance.klass.info
        running = sorted({n for e in updates if e.function is not None and e.function.owner is info
                          and e.function.name != "__init__" and (n := attribute_set(e)) is not None})
        applies = {m for m, f in info.methods.items() for n in below(f.info.node) if isinstance(n, ast.BinOp)
                   and isinstance(n.op, ast.Sub) and isinstance(n.left, ast.Name) and n.left.id in f.info.parameters
                   and any(isinstance(a, ast.Attribute) and a.attr in running for a in below(n.right))} - {"__init__"}
        holders = {last_name(s.targets[0]): (c, s) for c in look.codes for s in c.of(ast.Assign)
                   if isinstance(s.value, ast.Call) and last_name(s.value.func) == info.name and applies}
        for name, (code, made) in holders.items():
            used = [c for m in applies for _, c in look.calls.get(m, ())] + [c for _, c in look.calls.get(name, ())]
            if used and instance.site not in whole and not {name, info.name} & _written_down(look, saves):
                what = f"{name} = {info.name}(...) normalises by running statistics ({', '.join(running[:3])})"
                yield Lack("statistics", what, code.spot(made), load.spot)
                return


def _written_down(look: Lookup, saves: list[Event]) -> set[str]:
    """Every name in what is saved: arguments, and functions that save, or take a state, and train nothing."""
    foreign = {id(e.function.node) for e in saves if e.function is not None}
    quiet = [b for c in look.codes for b in c.of(ast.FunctionDef) if not c.calls_in(b, "backward", "step")]
    bodies = [b for b in quiet if id(b) in foreign or any(
        isinstance(n, ast.Call) and last_name(n.func) == "state_dict" for n in below(b))]
    nodes = [*bodies, *(syntax(e.file).origin(a) for e in saves if isinstance(e.node, ast.Call)
                        for a in (*e.node.args, *(k.value for k in e.node.keywords)))]
    nodes += [d for c in look.codes for d in c.of(ast.Dict) if "state_dict" in written(d)]
    called = [b for n in nodes for c in below(n) if isinstance(c, ast.Call)
              for _, b in look.functions.get(last_name(c.func), ()) if any(b is q for q in quiet)]
    return {str(getattr(n, "id", getattr(n, "attr", getattr(n, "value", "")))) for b in (*nodes, *called)
            for n in below(b) if isinstance(n, (ast.Name, ast.Attribute, ast.Constant))}


def _weights_alone(project: Project) -> Iterator[Lack]:
    """Lightning: where there is a file the weights alone come from it, and fit is not told to go on."""
    fits = [e for e in project.calls("fit") if isinstance(e.receiver, Thing) and e.receiver.short == "Trainer"]
    if any(e.argument(4, "ckpt_path") is not None for e in fits):
        return
    for code in {id(c): c for e in fits for c in [syntax(e.file)]}.values():
        for call in code.calls("load_from_checkpoint"):
            owner = last_name(getattr(call.func, "value", None))
            arms = [up for up in code.above(call) if isinstance(up, (ast.If, ast.IfExp))][:1]
            others = [n for up in arms for part in (up.orelse if isinstance(up.orelse, list) else [up.orelse])
                      for n in below(part) if isinstance(n, ast.Call) and last_name(n.func) == owner]
            if others and code.calls_in(code.scope(call), "fit"):
                yield Lack("weights", owner, code.spot(call))


def _without_optimizer(project: Project) -> Iterator[Lack]:
    """A Trainer of transformers that is asked to save the model alone, and to go on from what it saved."""
    for event in project.calls("train"):
        made, given = event.receiver, event.argument(0, "resume_from_checkpoint")
        args = made.argument(1, "args") if isinstance(made, Thing) and made.type.startswith("transformers.") else None
        if isinstance(args, Thing) and truth(args.kwargs.get("save_only_model")) and given is not None and (
                not isinstance(given, Const) or given.value):  # fmt: skip
            yield Lack("model alone", made.short, event.spot, project.spot(args.site))  # type: ignore[union-attr]


def _too_early(project: Project) -> Iterator[Lack]:
    """Calls that come before what they need, with nothing of the kind behind it."""
    for row in rows_of("orders.toml")["before"]:
        first, then = row["first"], row["then"]
        for root in project.roots_with({then}):
            places = [p for p in project.places(root) if p.event.method in (then, first) and isinstance(
                p.event.receiver, Thing) and p.event.receiver.short == row["of"]]
            names = [p.event.method for p in places]
            at = names.index(first) if first in names else 0
            if then in names[:at] and then not in names[at:]:
                yield Lack("order", row["why"], places[names.index(then)].event.spot, places[at].event.spot)
