"""What becomes of parameters, from the events of the follower: replaced, assigned, frozen, wrapped, given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from traindx_tools.knowledge.calls import growing
from traindx_tools.on_code.layers import learns, with_parameters
from traindx_tools.on_code.library import submodules
from traindx_tools.on_code.optimizer_parameters import held, one_by_one
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.values import Bag, Const, Instance, Parameters, Table, Thing, Value, truth, unwrap
from traindx_tools.program.entities import Given
from traindx_tools.program.moments import Change

WRAPPER = "DistributedDataParallel"
_APPENDING = frozenset({"append", "extend", "insert", "add_module", "register_module"})


class Ownership:
    """Notes the changes of modules that an optimizer or a wrapper holds already."""

    def __init__(self) -> None:
        self.held: set[int] = set()
        """Identities of modules that an optimizer or a wrapper comes to hold."""
        self.born: dict[int, Event] = {}
        """Where modules are made by the program, or copied."""
        self._put: Counter[int] = Counter()
        """How often each object is stored as an attribute: what is put back has taken no other one's place for good."""

    def expect(self, project: Project, optimizers: Iterable[Event]) -> None:
        """Looks ahead at what will be held: what is stored into anything else is of no interest."""
        for event in optimizers:
            if isinstance(event.result, Thing):
                self.held |= set(event.result.state.get("held_parts") or ())
        for event in project.calls(WRAPPER):
            if isinstance(event.result, Thing):
                self.held |= _inside(event.result)
        self._put = Counter(id(unwrap(e.args[0])) for e in project.events if e.kind == "store" and e.args
                            and e.name.startswith("attribute."))

    def note(self, event: Event) -> Change | None:
        """What an event changes; None where it changes no parameters that matter."""
        made = event.result
        if event.kind == "call" and event.method in ("__new__", "deepcopy") and isinstance(made, (Thing, Instance)):
            self.born.setdefault(id(made), event)
        if event.kind == "call" and event.method == WRAPPER and isinstance(made, Thing):
            return Change("wrapped", _inside(made))
        if (event.kind == "store" and event.name == "attribute.requires_grad") or event.method == "requires_grad_":
            told = _switched(event)
            return None if told is None or not told[0] else Change(
                "thawed" if told[1] else "frozen", frozenset(map(id, told[0])), of=made_at(told[0][0]))
        if event.kind == "store":
            return self._replaced(event)
        if event.kind != "call":
            return None
        if event.method == "add_param_group":
            return Change("given")
        return self._assigned(event) or self._grown(event) or self._appended(event)

    def _appended(self, event: Event) -> Change | None:
        """A list of layers, or a module, is given a further one."""
        if event.method not in _APPENDING or id(event.receiver) not in self.held:
            return None
        given = [unwrap(v) for a in event.args for v in (a.items if isinstance(a, Bag) else [a])]
        new = [v for v in given if has_parameters(v)]
        if not new:
            return None
        return Change("replaced", frozenset({id(event.receiver)}), _new(new[0]),
                      f"{event.method}() adds a new {short(new[0])}", made_at(new[0]))

    def _replaced(self, event: Event) -> Change | None:
        owner = event.receiver
        of_item = event.name.startswith("item.") and isinstance(owner, Thing)
        if not event.args or not (event.name.startswith("attribute.") or of_item):
            return None
        new, old = unwrap(event.args[0]), unwrap(event.args[-1]) if len(event.args) > 1 and not of_item else None
        if not has_parameters(new) or old is new:
            return None
        name = event.name.partition(".")[2].replace("?", "a part")
        if old is not None and id(old) in self.held and has_parameters(old) and not (
                isinstance(owner, Instance) and owner.klass.info.is_module):
            once = self._put[id(old)] == 1 and event.function is not None
            return Change("replaced", _inside(old), _new(new), f"{name} is replaced by a new {short(new)}",
                          made_at(new), True) if once else None
        if id(owner) not in self.held or (_is_construction(event) and (old is None or not has_parameters(old))):
            return None
        return Change("replaced", frozenset({id(owner)}), _new(new), f"{name} is replaced by a new {short(new)}",
                      made_at(new), len(event.args) > 1, event.name == "attribute.?")

    def _assigned(self, event: Event) -> Change | None:
        given = event.argument(2, "assign") if event.method == "load_state_dict" else None
        if not isinstance(given, Const) or given.value is not True or event.receiver is None:
            return None
        return Change("assigned", _inside(event.receiver))

    def _grown(self, event: Event) -> Change | None:
        text = growing().get(event.method)
        target = event.receiver if event.receiver is not None else event.args[0] if event.args else None
        return Change("grown", _inside(target), text=text) if text and target is not None else None


def _is_construction(event: Event) -> bool:
    """Whether a module is being made: what its constructor stores into it replaces nothing."""
    owner, info = event.receiver, event.function
    return info is not None and info.name == "__init__" and isinstance(owner, Instance) and (
        info.owner in owner.klass.info.lineage())


def has_parameters(value: Value) -> bool:
    """Whether a value is a module with parameters of its own that may train."""
    if not isinstance(value, (Thing, Instance)) or value.state.get("frozen"):
        return False
    if isinstance(value, Instance):
        return value.klass.info.is_module
    return value.type.startswith("torch.nn.") and with_parameters(value.short)


def given(optimizer: Thing | Instance) -> Iterator[Given]:
    """What an optimizer was built over, in order."""
    chosen = one_by_one(optimizer)
    for one in held(optimizer) or ():
        for module in map(unwrap, one.modules):
            if isinstance(module, (Thing, Instance)):
                yield Given(id(module), _inside(module), made_at(module), chosen or one.only_trainable)


def is_grouped(optimizer: Thing) -> bool:
    """Whether it was given groups."""
    first = optimizer.args[0] if optimizer.args else None
    return isinstance(first, Bag) and any(isinstance(i, Table) for i in first.items)


def made_at(module: Value) -> str:
    """Where a module is made."""
    return str(module.site) if isinstance(module, (Thing, Instance)) else "?"


def short(value: Value) -> str:
    """What a module is, in a word."""
    if isinstance(value, Thing):
        return value.short
    return value.klass.info.name if isinstance(value, Instance) else "module"


def _new(value: Value) -> frozenset[int]:
    """What is new in a module that is put in: its layers with weights, all of it where none is known."""
    inner = unwrap(value)
    found = frozenset(id(m) for m in submodules(inner) if isinstance(m, Thing) and learns(m))
    return found or _inside(value)


def _inside(value: Value) -> frozenset[int]:
    inner = unwrap(value)
    return frozenset(id(m) for m in submodules(inner) or [inner])


def _switched(event: Event) -> tuple[list[Value], bool] | None:
    """(the modules with their parts, whether they are trainable now); None for any other event."""
    if event.kind == "store" and event.name == "attribute.requires_grad":
        wanted = truth(event.args[0])
    elif event.kind == "call" and event.method == "requires_grad_":
        given = event.argument(0, "requires_grad")
        wanted = True if given is None else truth(given)
    else:
        return None
    return None if wanted is None else (_switched_modules(event.receiver), wanted)


def _switched_modules(target: Value | None) -> list[Value]:
    if isinstance(target, Thing) and isinstance(target.state.get("of"), Parameters):
        found: list[Value] = list(target.state["of"].modules)
    else:
        found = [target] if isinstance(target, (Thing, Instance)) else []
    return [m for owner in found for m in submodules(owner) or [owner]]
