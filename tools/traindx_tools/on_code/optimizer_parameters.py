"""Which parameters an optimizer was built over, and in what state they were at that moment."""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.on_code.library import submodules
from traindx_tools.on_code.values import Bag, Instance, Parameters, Table, Thing, Value, unwrap


def held(optimizer: Value | None) -> list[Parameters] | None:
    """The parameters that an optimizer was built over; None where the program does not show it."""
    if not isinstance(optimizer, (Thing, Instance)):
        return None
    first = optimizer.args[0] if optimizer.args else optimizer.kwargs.get("params")
    if first is None:
        return None
    found = list(_parameters(first, 0))
    return found if found and None not in found else None  # type: ignore[return-value]


def _parameters(value: Value, depth: int) -> Iterator[Parameters | None]:
    if isinstance(value, Parameters):
        yield value
    elif depth > 4:
        yield None
    elif isinstance(value, Bag):
        if not value.items:
            return
        for item in {id(i): i for i in value.items}.values():  # two branches may hold the same group
            yield from _parameters(item, depth + 1)
    elif isinstance(value, Table):
        inner = value.items.get("params")
        if inner is None:
            yield None
        else:
            yield from _parameters(inner, depth + 1)
    elif isinstance(value, Thing) and isinstance(value.state.get("of"), Parameters):
        yield value.state["of"]
    else:
        yield None


def iterators(optimizer: Thing) -> list[Parameters]:
    """The iterators over parameters that it is given and goes through."""
    stack: list[Value | None] = [optimizer.args[0] if optimizer.args else optimizer.kwargs.get("params")]
    for value in stack:
        if isinstance(value, Bag) and len(stack) < 60:
            stack += value.items
        elif isinstance(value, Table):
            stack.append(value.items.get("params"))
    return list({id(p): p for p in stack if isinstance(p, Parameters) and (p.lazy or p.spent)}.values())


def one_by_one(optimizer: Thing | Instance) -> bool:
    """Whether it was given parameters that a loop or a condition chose: which of a module's, is not known."""
    stack: list[Value | None] = [optimizer.args[0] if optimizer.args else optimizer.kwargs.get("params")]
    for value in stack:
        if isinstance(value, Parameters) and value.partial:
            return True
        if isinstance(value, Thing) and isinstance(value.state.get("of"), Parameters):
            return True
        if isinstance(value, Bag) and len(stack) < 200:
            stack += value.items
        elif isinstance(value, Table) and len(stack) < 200:
            stack += value.items.values()
    return False


def modules_of(optimizer: Value | None) -> list[Value] | None:
    """The modules whose parameters an optimizer holds, unwrapped; None where unknown."""
    found = held(optimizer)
    return None if found is None else [unwrap(m) for p in found for m in p.modules]


def why_frozen(optimizer: Thing | Instance) -> str | None:
    """Why every parameter that it holds was frozen when it was built; None unless all of them are known to be."""
    found = held(optimizer)
    reasons = [_reason(m) for p in found for m in p.modules] if found else []
    return reasons[0] if reasons and all(reasons) else None


def _reason(module: Value) -> str | None:
    inner = unwrap(module)
    if not isinstance(inner, (Thing, Instance)) or not inner.state.get("frozen"):
        return None
    if by := inner.state.get("frozen_by"):
        return f"the model loaded at {inner.site} is frozen ({by})"
    parts = submodules(inner) or [inner]
    whole = all(isinstance(m, (Thing, Instance)) and m.state.get("frozen") for m in parts)
    return f"every parameter of the model made at {inner.site} was frozen before" if whole else None


def parts_held(optimizer: Thing | Instance) -> dict[int, Value]:
    """The modules, and those inside them, whose parameters it holds for certain at this moment, by identity: it may
    hold others too."""
    first = optimizer.args[0] if optimizer.args else optimizer.kwargs.get("params")
    found = _parameters(first, 0) if first is not None else ()
    return {id(m): m for p in found if p is not None for model in p.modules
            for m in submodules(unwrap(model)) or [unwrap(model)]}


def frozen_parts(optimizer: Thing | Instance) -> dict[int, Value]:
    """What of its modules is frozen at this moment, by identity, where it holds the trainable parameters only."""
    filtered = any(p.only_trainable for p in held(optimizer) or [])
    parts = parts_held(optimizer) if filtered else {}
    return {i: m for i, m in parts.items() if isinstance(m, (Thing, Instance)) and m.state.get("frozen") is True}
