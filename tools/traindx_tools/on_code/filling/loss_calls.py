"""The calls of losses, and what is known of their arguments."""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.knowledge.contracts import Contract
from traindx_tools.knowledge.domains import contract_of, losses
from traindx_tools.on_code.filling.spots import spot_at, spot_of
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.values import Const, Site, Tensor, Thing, Value
from traindx_tools.program.entities import Argument, LossCall
from traindx_tools.program.known import Known

_LAYERS = {"Softmax": "softmax", "Sigmoid": "sigmoid", "LogSoftmax": "log_softmax", "ReLU": "relu", "ReLU6": "relu",
           "Tanh": "tanh"}
_CALLS = {**{n: n for n in ("softmax", "sigmoid", "log_softmax", "relu", "tanh")}, "relu6": "relu", "relu_": "relu",
          "tanh_": "tanh", "sigmoid_": "sigmoid"}


def loss_calls(project: Project) -> Iterator[LossCall]:
    """Every call of a loss of which a contract is known."""
    events = list(project.calls(*losses()))
    made = _made(project) if events else {}
    for event in events:
        contract = contract_of(event.method)
        if contract is not None:
            settings, unknown = _settings(event, contract)
            yield LossCall(
                event.receiver.short if isinstance(event.receiver, Thing) else event.method, event.method,
                spot_of(event), dict(_arguments(event, contract, project, made)), settings, unknown,
                event.grad is not False and event.framework != "validation_step", Known.DERIVED, event)


def _arguments(event: Event, contract: Contract, project: Project, made: dict[tuple[str, Site], Event]
               ) -> Iterator[tuple[str, Argument]]:
    for position, argument in enumerate(contract.arguments):
        value = event.argument(position, argument.name)
        if isinstance(value, Tensor):
            maker = made.get((value.kind, value.kind_site)) if value.kind_site is not None else None
            spot = spot_of(maker) if maker is not None else (
                spot_at(value.kind_site, project) if value.kind_site is not None else None)
            yield argument.name, Argument(value.kind, spot, value.grad, bool(value.models), maker)


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
