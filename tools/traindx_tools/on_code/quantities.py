"""Which quantities a value rises or falls with: entropies, ratios and differences of log-probabilities, as signed tags.

"+entropy" says that it rises with an entropy, "-apart@path:line" that it falls with the difference of log-probabilities
that is taken there. Sums keep, differences turn; what is neither rising nor falling in its argument ends it. "slope" is
a gradient by data that was taken without a graph: what is computed of it has none, until it weighs what has one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from traindx_tools.knowledge.tables import table
from traindx_tools.on_code.descriptions import Const, Site, Tensor
from traindx_tools.on_code.values import Bag, Operation, Symbol, Value, number

_SMALLER, _LARGER = frozenset({"min", "minimum"}), frozenset({"max", "maximum"})
MOST = 8
"""Quantities that are kept of one value."""
_TURNED = {"+": "-", "-": "+"}
_RISING = frozenset(table("quantities.toml")["rising"])
_FALLING = frozenset(table("quantities.toml")["falling"])
_CALLS = {name: frozenset({f"+{what}"}) for name, what in table("quantities.toml")["calls"].items()}
_LOG_PROBABILITIES = frozenset(table("quantities.toml")["words"]["log_probability"])


def of(value: Value | None) -> frozenset[str]:
    """The signed quantities of a value."""
    return frozenset(t for t in value.tags if t[:1] in _TURNED) if isinstance(value, Tensor) else frozenset()


def turned(found: Iterable[str]) -> frozenset[str]:
    """Those of the negative; other tags stay."""
    return frozenset(_TURNED[t[0]] + t[1:] if t[:1] in _TURNED else t for t in found)


def combined(op: str, left: Value, right: Value, site: Site) -> frozenset[str]:
    """What a binary operation leaves of both sides."""
    if op == "-" and _is_log_probability(left) and _is_log_probability(right):
        return _difference(left, right, site)
    a, b = of(left), of(right)
    if op in ("*", "/"):
        a, b = (s if not _weighs(o) else frozenset(t for t in s if not _is_slope(t))
                for s, o in ((a, right), (b, left)))
    if op == "+":
        return _bounded(a | b)
    if op == "-":
        centred = isinstance(right, Tensor) and right.tags & {"reduced", "one_row"} and b <= a
        return _bounded(a if centred else a | turned(b))
    if op == "*":
        if _is_fixed_share(left) or _is_fixed_share(right):
            a, b = _seen_from_the_other(a), _seen_from_the_other(b)
        return _entropy(left, right) or _entropy(right, left) or _bounded(turned(a | b) if _is_negative(
            left) != _is_negative(right) else a | b)
    if op == "/":
        return _bounded(turned(a) if _is_negative(right) else a | turned(b))
    return slopes([left, right])


def slopes(values: Iterable[Value]) -> frozenset[str]:
    """The gradients without a graph that values are computed of."""
    return frozenset(t for v in values for t in of(v) if _is_slope(t))


def _is_slope(tag: str) -> bool:
    return tag[1:].startswith("slope@")


def _weighs(value: Value) -> bool:
    return isinstance(value, Tensor) and value.grad is not False and bool(value.models)


def through(name: str, x: Tensor, args: tuple[Value, ...], kwargs: dict[str, Value]) -> frozenset[str]:
    """What a function or method by its last name leaves; and what it makes."""
    if name in _CALLS:
        return _CALLS[name]
    found = of(x)
    if name in _SMALLER | _LARGER and args and of(args[0]):
        found |= of(args[0]) | _optimist(name, found)
    made = turned(found) if name in _FALLING else found if name in _RISING else slopes([x])
    if name in ("detach", "item"):
        made = frozenset(t for t in made if not _is_slope(t))
    if name == "exp":
        made = frozenset(t.replace("apart@", "ratio@") for t in made)
    if name in ("log", "log2"):
        return made | {"logarithm"}
    shares = x.kind == "softmax" or (x.low == 0 and x.high == 1)
    if name == "mean" and shares and _holds_zero(args[0] if args else kwargs.get("dim", kwargs.get("axis"))):
        return made | {"averaged"}
    return made


def _optimist(name: str, found: frozenset[str]) -> frozenset[str]:
    """The larger of two weighted ratios, or minus it: nothing bounds what it pays for."""
    if name in _LARGER and any(t.startswith("+ratio@") for t in found):
        return frozenset({"+optimist"})
    return frozenset({"-optimist"} if name in _SMALLER and any(t.startswith("-ratio@") for t in found) else ())


def joined(parts: list[Tensor]) -> frozenset[str]:
    """Of several values in a row: what holds of all."""
    return frozenset.intersection(*(of(p) for p in parts)) if parts else frozenset()


def _bounded(found: frozenset[str]) -> frozenset[str]:
    """Not the difference beside its own exponential, `exp(x) - x - 1`, which has its least value at 0."""
    both = {t.partition("@")[2] for t in found if "ratio@" in t} & {t.partition("@")[2] for t in found if "apart@" in t}
    return frozenset(sorted(t for t in found if not both or t.partition("@")[2] not in both)[:MOST])


def _is_fixed_share(value: Value) -> bool:
    """Whether a value is a probability that does not train, or its negative."""
    return isinstance(value, Tensor) and value.grad is False and value.dtype != "bool" and (
        value.kind == "softmax" or (value.low, value.high) == (-1.0, 0.0))


def _seen_from_the_other(found: frozenset[str]) -> frozenset[str]:
    """A difference of logarithms, weighted by what the fixed side gives: its mean is minus that side's divergence."""
    return frozenset(_TURNED[t[0]] + t[1:] if "apart@" in t and t[:1] in _TURNED else t for t in found)


def _is_log_probability(value: Value) -> bool:
    if isinstance(value, Tensor):
        return value.kind == "log_softmax" or "log_prob" in value.tags
    name = value.name.partition("@")[0].lower() if isinstance(value, Symbol) and value.role != "call" else ""
    return any(w in re.split(r"[^a-z_]", name) or name.endswith(f"_{w}") for w in _LOG_PROBABILITIES)


def _difference(left: Value, right: Value, site: Site) -> frozenset[str]:
    fixed = [not isinstance(v, Tensor) or v.grad is False for v in (left, right)]
    models = [v.models if isinstance(v, Tensor) else frozenset() for v in (left, right)]
    if all(fixed) and (models[0] == models[1] or not all(models)):
        return frozenset()
    return frozenset({f"{'-' if fixed[0] and not fixed[1] else '+'}apart@{site}"}) if any(fixed) else frozenset()


def _entropy(p: Value, log: Value) -> frozenset[str]:
    """p * log p: the entropy falls with it."""
    if not isinstance(p, Tensor) or not isinstance(log, Tensor) or "logarithm" not in log.tags:
        return frozenset()
    if p.site not in log.parents and p.site != log.site:
        return frozenset()
    return frozenset({"-spread"} if "averaged" in p.tags else {"-entropy"} if p.kind == "softmax" else ())


def _is_negative(value: Value) -> bool:
    known = number(value)
    return (known is not None and known < 0) or (isinstance(value, Operation) and value.op == "-" and len(
        value.operands) == 1) or (isinstance(value, Tensor) and "minus" in value.tags and not of(value))


def _holds_zero(dim: Value | None) -> bool:
    return Const(0) in dim.items if isinstance(dim, Bag) else dim == Const(0)
