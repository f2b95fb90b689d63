"""The calls of losses: what is known of their arguments, which noise these were made of, and whether they stand beside
each other."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property

from traindx_tools.knowledge.contracts import Contract, contract_of, losses
from traindx_tools.knowledge.fetching import NOISE
from traindx_tools.knowledge.tables import words
from traindx_tools.on_code import axes
from traindx_tools.on_code.definitions import FunctionInfo
from traindx_tools.on_code.filling.entities import Entities
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import argument
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.values import Bag, Const, Operation, Site, Symbol, Tensor, Thing, Value, parts
from traindx_tools.program.entities import Argument, LossCall
from traindx_tools.program.known import Known
from traindx_tools.program.uses import Mismatch

_PASSING = words("domains.toml", "passes", "methods")
"""Methods whose result is the same thing in another form."""
_PASSES = 2
"""Walks over the events: what a loop carries comes round once."""


class Noise:
    """The draws of noise of a project, followed through every call and operation where a target is one of them."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.draws = {e.result: e.site for e in project.events if e.kind == "call" and e.name in NOISE
                      and isinstance(e.result, Tensor)}

    def is_draw(self, value: Value | None) -> str:
        """Where a value was drawn, if it is what a draw gave, unchanged; else ""."""
        return str(self.draws[value]) if isinstance(value, Tensor) and value in self.draws else ""

    def mixed_into(self, value: Value | None) -> frozenset[str]:
        """Where the noise was drawn that was added to something on the way to a value."""
        return frozenset(str(s) for s in self._of(value, self._followed[1]))

    def drawn_for(self, value: Value | None) -> frozenset[str]:
        """Where all noise was drawn that a value was computed from."""
        return frozenset(str(s) for s in self._of(value, self._followed[0]))

    def _of(self, value: Value | None, known: dict[Value, frozenset[Site]]) -> frozenset[Site]:
        found: frozenset[Site] = frozenset()
        for one in _leaves(value):
            found |= known.get(one, frozenset())
        return found

    @cached_property
    def _followed(self) -> tuple[dict[Value, frozenset[Site]], dict[Value, frozenset[Site]]]:
        drawn: dict[Value, frozenset[Site]] = {v: frozenset({s}) for v, s in self.draws.items()}
        mixed: dict[Value, frozenset[Site]] = {}
        for _ in range(_PASSES if drawn else 0):
            for event in self.project.events:
                result = event.result
                if not isinstance(result, (Tensor, Symbol, Operation)) or result in self.draws:
                    continue
                given = [v for v in (event.receiver, *event.args, *event.kwargs.values()) if v is not None]
                for known, of_event in ((drawn, frozenset()), (mixed, self._added(event, drawn))):
                    for value in given:
                        of_event |= self._of(value, known)
                    if of_event:
                        known[result] = known.get(result, frozenset()) | of_event
        return drawn, mixed

    def _added(self, event: Event, drawn: dict[Value, frozenset[Site]]) -> frozenset[Site]:
        """The noise that one operation adds to something that does not hold it."""
        if event.kind != "operation" or event.name not in ("+", "-") or len(event.args) != 2:
            return frozenset()
        one, other = (self._of(a, drawn) for a in event.args)
        plain = [isinstance(a, Const) for a in event.args]
        return (one - other if not plain[1] else frozenset()) | (other - one if not plain[0] else frozenset())


def _leaves(value: Value | None, left: int = 3) -> Iterator[Value]:
    if isinstance(value, Bag) and left:
        for item in value.items:
            yield from _leaves(item, left - 1)
    elif isinstance(value, (Symbol, Operation)):
        yield from (p for p in parts(value) if isinstance(p, (Tensor, Symbol, Operation)))
    elif isinstance(value, Tensor):
        yield value


_CAUSAL = ("LMHeadModel", "ForCausalLM")


def mismatches(project: Project) -> Iterator[Mismatch]:
    """Every one of them."""
    for event in project.events:
        if event.kind == "clash" and (column := _column(event)) is not None:
            pred = event.args[column]
            made = (pred.kind_site or pred.site) if isinstance(pred, Tensor) else None
            yield Mismatch("broadcast", event.name, event.spot, event.text, str(made or ""),
                           (event, column), str(axes.of(pred)), str(axes.of(event.args[1 - column])))
    for event in project.calls("cross_entropy", "softmax_cross_entropy_with_integer_labels"):
        labels = event.argument(1, "target") or event.kwargs.get("labels")
        if labels is not None and _shifts(labels) >= 2:
            yield Mismatch("shift", _loss_name(event), event.spot)
    for event in project.calls("__call__"):
        model, labels, ids = event.receiver, event.kwargs.get("labels"), event.kwargs.get("input_ids")
        if isinstance(model, Thing) and model.short.endswith(_CAUSAL) and labels is not None and ids is not None and (
                _shifts(labels) >= 1 and _shifts(ids) == 0):
            yield Mismatch("shift", model.short, event.spot, made="itself")


def _loss_name(event: Event) -> str:
    return event.receiver.short if isinstance(event.receiver, Thing) else (
        event.method if event.kind == "call" else "subtraction")


def _column(event: Event) -> int | None:
    """Which side has the axis of length 1, where its samples meet all of the other side's without anybody's asking.

    An axis that the program inserted is taken for meant, except where one side alone is a model's output.
    """
    known = [axes.of(a) for a in event.args]
    one = axes.clash(*known)
    column = 0 if len(known[0].dims if known[0] else ()) > len(known[1].dims if known[1] else ()) else 1
    if one is None:
        return column
    of_models = [bool(a.models) if isinstance(a, Tensor) else False for a in event.args]
    meant = one is not None and one.role == "inserted" and event.name not in words("axes.toml", "elementwise_losses")
    return None if (meant or event.name not in ("-", "==")) and of_models[0] == of_models[1] and (
        meant or event.name in "+*/") else column


def _shifts(value: Value) -> int:
    if isinstance(value, Tensor):
        return 2 if "first_dropped_twice" in value.tags else int("without_first" in value.tags)
    return sum(1 for p in parts(value) if isinstance(p, Symbol) and p.role == "item" and "without_first" in p.name)


_LAYERS = {"Softmax": "softmax", "Sigmoid": "sigmoid", "LogSoftmax": "log_softmax", "ReLU": "relu", "ReLU6": "relu",
           "Tanh": "tanh"}
_CALLS = {**{n: n for n in ("softmax", "sigmoid", "log_softmax", "relu", "tanh")}, "relu6": "relu", "relu_": "relu",
          "tanh_": "tanh", "sigmoid_": "sigmoid"}


def loss_calls(project: Project, entities: Entities) -> Iterator[LossCall]:
    """Every call of a loss of which a contract is known."""
    events = list(project.calls(*losses()))
    made = _made(project) if events else {}
    hooks = [r.function for r in project.roots if r.framework]
    noise = Noise(project)
    for event in events:
        contract = contract_of(event.method, event.name)
        if contract is not None:
            settings, unknown = _settings(event, contract)
            arguments = dict(_arguments(event, contract, project, made, entities, hooks))
            _follow_noise(event, contract, arguments, noise)
            yield LossCall(event.receiver.short if isinstance(event.receiver, Thing) else event.method, event.method,
                event.spot, arguments, settings, unknown, event.grad is not False, Known.DERIVED, event, event.name)


def _arguments(event: Event, contract: Contract, project: Project, made: dict[tuple[str, Site], Event],
               entities: Entities, hooks: list[FunctionInfo | None]) -> Iterator[tuple[str, Argument]]:
    for position, wanted in enumerate(contract.arguments):
        value, text = event.argument(position, wanted.name), _written(event, position, wanted.name)
        if isinstance(value, Tensor):
            maker = made.get((value.kind, value.kind_site)) if value.kind_site is not None else None
            spot = maker.spot if maker is not None else (
                project.spot(value.kind_site) if value.kind_site is not None else None)
            is_data = value.grad is not True and not value.models and not value.kind
            yield wanted.name, Argument(value.kind, spot, value.grad, bool(value.models), is_data, text, origin=maker)
        elif isinstance(value, (Symbol, Operation)) and (role := _role(value, entities, event.function in hooks)):
            yield wanted.name, Argument(gradient=True if role == "output" and event.grad is not False else None,
                                          of_a_model=role == "output", of_data=role == "data", text=text)


def _follow_noise(event: Event, contract: Contract, arguments: dict[str, Argument], noise: Noise) -> None:
    """Where one argument is a draw: which noise the others were computed from."""
    values = {w.name: event.argument(p, w.name) for p, w in enumerate(contract.arguments)}
    if not any(noise.is_draw(v) for v in values.values()):
        return
    for name, value in values.items():
        known = arguments.get(name, Argument(text="?"))
        arguments[name] = replace(known, draw=noise.is_draw(value), noise=noise.drawn_for(value),
                                  mixed=noise.mixed_into(value))


def _written(event: Event, position: int, name: str) -> str:
    node = event.node if isinstance(event.node, ast.Call) else None
    found = argument(node, position, name) if node is not None else None
    return event.file.segment(found) if found is not None else "?"


def _role(value: Symbol | Operation, entities: Entities, in_hook: bool) -> str:
    """Whether something unknown is what a module gave, or what a batch holds; "" where that is not known. `in_hook`: a
    framework calls the function, and gives it a batch."""
    if isinstance(value, Operation):  # a label times 2, less 1
        found = {_role(v, entities, in_hook) for v in value.operands if isinstance(v, (Symbol, Operation))}
        return found.pop() if len(found) == 1 else ""
    one: Value | None = value
    for _ in range(8):
        if not isinstance(one, Symbol):
            return ""
        if one.role == "output":
            return "output"
        if one.role == "iteration" or (one.role == "parameter" and in_hook):
            return "data"
        if one.role == "call" and "@" not in one.name:
            return "output" if one.parent is not None and entities.is_called_module(one.parent) else ""
        if one.role == "call" and one.name.partition("@")[0] not in _PASSING:
            return ""
        one = one.parent
    return ""


def _settings(event: Event, contract: Contract) -> tuple[dict[str, object], frozenset[str]]:
    """The switches that a call, or the layer that it calls, is given; and those that are given and not known."""
    layer = event.receiver.kwargs if isinstance(event.receiver, Thing) else {}
    known: dict[str, object] = {}
    unknown: set[str] = set()
    for name in {a.switch for a in contract.arguments if a.switch}:
        value: Value | None = event.kwargs.get(name, layer.get(name))
        if isinstance(value, Const):
            known[name] = value.value
        elif value is not None:
            unknown.add(name)
    return known, frozenset(unknown)


def _made(project: Project) -> dict[tuple[str, Site], Event]:
    """The first call of each activation, by what it gives and its place: a function, or a layer."""
    found: dict[tuple[str, Site], Event] = {}
    for event in project.calls(*_CALLS):
        found.setdefault((_CALLS[event.method], event.site), event)
    for event in project.calls("__call__"):
        if isinstance(event.receiver, Thing) and event.receiver.short in _LAYERS:
            found.setdefault((_LAYERS[event.receiver.short], event.site), event)
    return found
