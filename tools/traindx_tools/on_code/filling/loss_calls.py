"""The calls of losses, and what is known of their arguments."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from traindx_tools.knowledge.contracts import Contract
from traindx_tools.knowledge.domains import contract_of, losses, passing
from traindx_tools.on_code.definitions import FunctionInfo
from traindx_tools.on_code.filling.entities import Entities
from traindx_tools.on_code.filling.random_draws import Noise
from traindx_tools.on_code.filling.spots import spot_at, spot_of
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import argument
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.values import Const, Operation, Site, Symbol, Tensor, Thing, Value
from traindx_tools.program.entities import Argument, LossCall
from traindx_tools.program.known import Known

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
                spot_of(event), arguments, settings, unknown, event.grad is not False, Known.DERIVED, event, event.name)


def _arguments(event: Event, contract: Contract, project: Project, made: dict[tuple[str, Site], Event],
               entities: Entities, hooks: list[FunctionInfo | None]) -> Iterator[tuple[str, Argument]]:
    for position, wanted in enumerate(contract.arguments):
        value, text = event.argument(position, wanted.name), _written(event, position, wanted.name)
        if isinstance(value, Tensor):
            maker = made.get((value.kind, value.kind_site)) if value.kind_site is not None else None
            spot = spot_of(maker) if maker is not None else (
                spot_at(value.kind_site, project) if value.kind_site is not None else None)
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
        found = {_role(v, entities, in_hook) for v in value.operands
                 if isinstance(v, (Symbol, Operation))}
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
        if one.role == "call" and one.name.partition("@")[0] not in passing():
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
