"""Always on: what the program is made of and does, kept as facts for whoever reads the record. Nothing is judged.

Of each function that is called from outside: where it is made, how often it was called, whether it takes gradients, and
of each argument what it holds and whether it is the same in each call that was looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from traindx_tools.finding import Finding
from traindx_tools.on_jax import internals
from traindx_tools.on_jax.probe import Call, JaxProbe
from traindx_tools.on_jax.tracing import argument_names
from traindx_tools.program_texts.values import MOST_VALUES, kind_of, values_of

MOST_FUNCTIONS, MOST_GROUPS, MOST_LEAVES = 12, 8, 512
MOST_LOOKS = 8
WIDTH = 300
"""Characters of a line of arguments."""
ELEMENTS = 64
"""Of an array, at equal distances, by which it is known whether it is the same."""


@dataclass
class _Function:
    """One function. `groups`: leaves of its first call, by what of an argument they are."""

    name: str
    place: tuple[str, int] | None
    kind: str
    trains: bool
    groups: dict[str, list[int]]
    kinds: dict[str, str]
    """What a group held in the first call."""
    calls: int = 0
    looks: list[dict[int, Any]] = field(default_factory=list)
    """Samples by leaf, of the first calls that were looked at and of the last one; on the device."""

    @property
    def sampled(self) -> list[int]:
        """Leaves that are compared from call to call: the first, the middle and the last of each group."""
        return [i for m in self.groups.values() for i in sorted({m[0], m[len(m) // 2], m[-1]})]


class ProgramFacts(JaxProbe):
    """Keeps samples of arguments; nothing waits for them before the program ends, but for those of the first calls."""

    name = "jax-program"
    always_on = True
    looks_before = True

    def __init__(self, scene: Any) -> None:
        super().__init__(scene)
        self._functions: dict[int, _Function] = {}

    def before_call(self, call: Call) -> None:
        """Looks at calls 1, 2, 4, 8, ...: before it gives anything away."""
        number = call.watched.number
        known = self._functions.get(number)
        if known is None and call.step == 1 and len(self._functions) < MOST_FUNCTIONS:
            known = self._functions[number] = _first(call)
        if known is None:
            return
        known.calls = call.step
        if call.step & (call.step - 1) == 0:
            known.looks = [*known.looks[:MOST_LOOKS - 1], _samples(_leaves(call), known.sampled)]

    def after_call(self, call: Call) -> None:
        """Whether it takes gradients is known when it was traced."""
        known = self._functions.get(call.watched.number)
        if known is not None and call.step == 1:
            known.trains = call.watched.differentiates or call.watched.kind != "jit"

    def failed(self, error: BaseException) -> Iterable[Finding]:
        """The facts are worth most then."""
        self._tell()
        return ()

    def finish(self) -> Iterable[Finding]:
        """Writes the facts."""
        self._tell()
        return ()

    def _tell(self) -> None:
        self.scene.facts[:0] = [line for f in self._functions.values() for line in _told(f)]
        self._functions.clear()


def _first(call: Call) -> _Function:
    names, leaves = argument_names(call.watched, call.args, call.kwargs), _leaves(call)
    groups: dict[str, list[int]] = {}
    for i, name in enumerate(names[:MOST_LEAVES]):
        groups.setdefault(_group(name), []).append(i)
    kinds = {group: _held([leaves[i] for i in members if i < len(leaves)]) for group, members in groups.items()}
    return _Function(call.watched.name, call.watched.place, call.watched.kind, call.watched.differentiates, groups,
                     {g: k for g, k in kinds.items() if k})


def _group(name: str) -> str:
    """An argument, and the first step into it: `state.params`, `batch['x']`."""
    found = re.match(r"[^.\[]+(?:\.\w+|\[[^\]]*\])?", name)
    return found[0] if found is not None else name


def _leaves(call: Call) -> list[Any]:
    import jax

    leaves: list[Any] = jax.tree_util.tree_leaves((call.args, call.kwargs))
    return leaves[:MOST_LEAVES]


def _held(leaves: Sequence[Any]) -> str:
    """What a group of leaves holds: one array with its values, several by their number and size."""
    arrays = [x for x in leaves if hasattr(x, "shape") and hasattr(x, "dtype")]
    if not arrays:
        return f"{leaves[0]!r:.40}" if len(leaves) == 1 and isinstance(leaves[0], (bool, int, float)) else ""
    if len(arrays) > 1:
        return f"{len(arrays)} arrays, {sum(int(np.prod(x.shape)) for x in arrays):,} values"
    one = arrays[0]
    if internals.is_typed_key(one):
        return "a key" if not one.shape else f"keys {list(one.shape)}"
    if not _readable(one) or one.size > MOST_VALUES:
        return kind_of(tuple(one.shape), one.dtype)
    read = np.asarray(one)
    return values_of(read if read.dtype.kind in "biuf" else read.astype(np.float32), one.dtype)


def _readable(leaf: Any) -> bool:
    return (hasattr(leaf, "dtype") and not internals.is_tracer(leaf) and getattr(leaf, "is_fully_addressable", True)
            and not getattr(leaf, "is_deleted", bool)())


def _samples(leaves: Sequence[Any], among: Sequence[int]) -> dict[int, Any]:
    """A part of each of these arrays, copied; other leaves as they are."""
    return {i: _sample(leaves[i]) for i in among if i < len(leaves)}


def _sample(leaf: Any) -> Any:
    if isinstance(leaf, (bool, int, float, str)):
        return leaf
    if not _readable(leaf) or not getattr(leaf, "size", 0):
        return None
    if isinstance(leaf, np.ndarray):
        return leaf.reshape(-1)[:: max(1, leaf.size // ELEMENTS)].copy()
    return _sampled()(leaf)


@cache
def _sampled() -> Any:
    import jax
    import jax.numpy as jnp

    def sampled(value: Any) -> Any:
        flat = (jax.random.key_data(value) if internals.is_typed_key(value) else jnp.asarray(value)).reshape(-1)
        return flat[:: max(1, flat.size // ELEMENTS)]

    return getattr(jax.jit, "__wrapped__", jax.jit)(sampled)


def _told(known: _Function) -> Iterator[str]:
    """A line of a function, and what it is given in as many as that takes."""
    at = f" at {known.place[0]}:{known.place[1]}" if known.place is not None else ""
    counted = "once" if known.calls == 1 else f"{known.calls:,} times"
    yield f"function {known.name}{at}: {'takes gradients, ' if known.trains else ''}called {counted}"
    parts = [f"{group}: {held}{_course(known, known.groups[group])}"
             for group, held in list(known.kinds.items())[:MOST_GROUPS]]
    more = len(known.kinds) - MOST_GROUPS
    line = ""
    for part in [*parts, *([f"{more} more"] if more > 0 else [])]:
        if line and len(line) + len(part) > WIDTH:
            yield f"{known.name} is given {line}"
            line = ""
        line = f"{line}; {part}" if line else part
    if line:
        yield f"{known.name} is given {line}"


def _course(known: _Function, members: Sequence[int]) -> str:
    """Whether these leaves are the same in all calls that were looked at; "" with fewer than three."""
    if len(known.looks) < 3:
        return ""
    same = [same for i in members if i in known.looks[0] and (same := _same(known.looks, i)) is not None]
    if not same:
        return ""
    if all(same):
        return ", never changes"
    return f", {sum(same)} of {len(same)} never change" if any(same) else ", changes"


def _same(looks: Sequence[Mapping[int, Any]], leaf: int) -> bool | None:
    """None where it was not there in some look."""
    values = [look.get(leaf) for look in looks]
    if any(v is None for v in values):
        return None
    first, *rest = (np.asarray(v) for v in values)
    return all(v.shape == first.shape and v.tobytes() == first.tobytes() for v in rest)
