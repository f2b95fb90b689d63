"""Other forms of loaded weights, one at a time: what a conversion, a merge or another release may have done to them.

Gates and fused projections in another order, halves for interleaved pairs, matrices transposed, channels flattened in
another order, rows shifted, blocks or siblings in each other's place, another sign, another scale, a branch that should
not be there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations, permutations

import torch

Form = Callable[[torch.Tensor], torch.Tensor]
MOST_BLOCKS = 12
"""Of one stack whose places are exchanged: 66 pairs."""
MOST_PAIRS = 6
"""Of siblings of one shape under one parent."""
HEADS = (1, 2, 4, 8, 12, 16, 32)
FACTORS = (1 / 16, 1 / 4, 4.0, 16.0)
SHIFTS = (1, -1)
FEWEST_ROWS = 8
"""Of a table that may be shifted."""


@dataclass(frozen=True)
class Candidate:
    """One conversion. `changes`: by name of the parameter what it becomes; `roles`: what is touched, for "others"."""

    said: str
    kind: str
    changes: Mapping[str, torch.Tensor]

    @property
    def roles(self) -> frozenset[str]:
        """The modules that it touches, numbers of blocks left out."""
        return frozenset(role_of(n.rpartition(".")[0]) or n for n in self.changes)


def role_of(name: str) -> str:
    """A path without the numbers of its blocks."""
    return re.sub(r"\d+", "#", name)


def candidates(model: torch.nn.Module, loaded: frozenset[str]) -> Iterator[Candidate]:
    """Every candidate of the floating parameters that were loaded, the likeliest kinds first. Nothing is written."""
    named = {n: p.detach() for n, p in model.named_parameters() if n in loaded and p.is_floating_point()
             and p.numel() > 1}
    units = _units(named)
    for unit in units.values():
        yield from _orders(unit)
    yield from _exchanges(named)
    yield from _interleaved(named)
    channels = _channels(model)
    for name, tensor in named.items():
        yield from _of_tensor(name, tensor, channels)
    for unit in units.values():
        yield from _rows(unit)
    for path, unit in units.items():
        yield from _scales(path, unit)


def _units(named: Mapping[str, torch.Tensor]) -> dict[str, dict[str, torch.Tensor]]:
    """Parameters whose rows belong together: of one module, in a recurrent one of one layer and direction."""
    found: dict[str, dict[str, torch.Tensor]] = {}
    for name, tensor in named.items():
        path, _, last = name.rpartition(".")
        part = re.sub(r"^(weight|bias|kernel)(_[ih]h)?", "", last)
        found.setdefault(f"{path}{part}", {})[name] = tensor
    return found


def _orders(unit: Mapping[str, torch.Tensor]) -> Iterator[Candidate]:
    """The parts of fused rows in another order: gates, query, key and value, a gate and its value."""
    rows = {t.shape[0] for t in unit.values() if t.ndim}
    if len(rows) != 1:
        return
    total = rows.pop()
    widths = {t.shape[1] for t in unit.values() if t.ndim == 2}
    for parts in (4, 3, 2):
        if total % parts or total < 2 * parts or not (parts == 2 or total // parts in widths):
            continue
        for order in permutations(range(parts)):
            if order != tuple(range(parts)):
                yield _joint(unit, "order", f"the {parts} parts of its rows in the order {order}",
                             partial(_ordered, order=order))


def _ordered(t: torch.Tensor, order: Sequence[int]) -> torch.Tensor:
    parts = t.chunk(len(order))
    return torch.cat([parts[i] for i in order])


def _exchanges(named: Mapping[str, torch.Tensor]) -> Iterator[Candidate]:
    """Blocks of a stack in each other's place, and siblings of one shape under one parent."""
    stacks: dict[str, dict[int, dict[str, torch.Tensor]]] = {}
    for name, tensor in named.items():
        for found in re.finditer(r"(?<=\.)(\d+)(?=\.)|^(\d+)(?=\.)", name):
            stack = stacks.setdefault(name[:found.start()], {})
            stack.setdefault(int(found[0]), {})[name[found.end():]] = tensor
    for path, blocks in stacks.items():
        for a, b in combinations(sorted(blocks)[:MOST_BLOCKS], 2):
            if _shapes(blocks[a]) == _shapes(blocks[b]):
                changes = {f"{path}{x}{n}": t for x, y in ((a, b), (b, a)) for n, t in blocks[y].items()}
                yield Candidate(f"{path}{a} and {path}{b} in each other's place", "exchange", changes)
    for pair, sets in _siblings(named).items():
        changes = {n: t for one in sets for n, t in one.items()}
        yield Candidate(f"{pair} in each other's place", "exchange", changes)


def _siblings(named: Mapping[str, torch.Tensor]) -> dict[str, list[dict[str, torch.Tensor]]]:
    """Modules of one shape under one parent, exchanged: in each block by itself, and in all blocks at once."""
    modules: dict[str, dict[str, torch.Tensor]] = {}
    for name, tensor in named.items():
        path, _, last = name.rpartition(".")
        modules.setdefault(path, {})[last] = tensor
    below: dict[str, list[str]] = {}
    for path in modules:
        if path and not path.rpartition(".")[2].isdigit():
            below.setdefault(path.rpartition(".")[0], []).append(path)
    found: dict[str, list[dict[str, torch.Tensor]]] = {}
    for paths in below.values():
        alike = [(a, b) for a, b in combinations(paths, 2) if _shapes(modules[a]) == _shapes(modules[b])]
        for a, b in alike[:MOST_PAIRS]:
            one = {f"{x}.{n}": t for x, y in ((a, b), (b, a)) for n, t in modules[y].items()}
            found[f"{a} and {b}"] = [one]
            roles = f"{role_of(a)} and {role_of(b)}"
            if "#" in roles:
                found.setdefault(roles, []).append(one)
    return {k: v for k, v in found.items() if "#" not in k or len(v) > 1}


def _interleaved(named: Mapping[str, torch.Tensor]) -> Iterator[Candidate]:
    """Halves of each head's rows for interleaved pairs and the other way round: rotary positions of another release.

    Queries and keys together, since it is their product that has to fit; which siblings they are is not known.
    """
    pairs: dict[tuple[str, str], list[str]] = {}
    for name, tensor in named.items():
        path, _, last = name.rpartition(".")
        parent = path.rpartition(".")[0]
        if tensor.ndim != 2 or last != "weight":
            continue
        for other in named:
            if other > name and other.rpartition(".")[0].rpartition(".")[0] == parent and (
                    other.endswith(".weight") and named[other].shape == tensor.shape):
                pairs.setdefault((role_of(name), role_of(other)), []).extend((name, other))
    for (a, b), names in list(pairs.items())[:MOST_PAIRS]:
        rows = named[names[0]].shape[0]
        for heads in (h for h in HEADS if rows % (2 * h) == 0 and rows // h >= 4):
            for said, form in (("halves for pairs", _to_pairs), ("pairs for halves", _to_halves)):
                changes = {n: form(named[n], heads) for n in dict.fromkeys(names)}
                yield Candidate(f"in each of {heads} heads {said} in {a} and {b}", "interleaved", changes)


def _to_pairs(t: torch.Tensor, heads: int) -> torch.Tensor:
    return t.reshape(heads, 2, -1, *t.shape[1:]).transpose(1, 2).reshape(t.shape)


def _to_halves(t: torch.Tensor, heads: int) -> torch.Tensor:
    return t.reshape(heads, -1, 2, *t.shape[1:]).transpose(1, 2).reshape(t.shape)


def _of_tensor(name: str, t: torch.Tensor, channels: Sequence[int]) -> Iterator[Candidate]:
    if t.ndim == 2 and t.shape[0] == t.shape[1]:
        yield Candidate(f"{name} transposed", "transposed", {name: t.T})
    if t.ndim == 2:
        for inner in channels:
            if t.shape[1] % inner == 0 and 1 < inner < t.shape[1]:
                outer = t.shape[1] // inner
                for a, b in ((inner, outer), (outer, inner)):
                    form = t.reshape(-1, a, b).transpose(1, 2).reshape(t.shape)
                    yield Candidate(f"the columns of {name} read as {b} x {a} for {a} x {b}", "flattened", {name: form})
    for axis in range(1, t.ndim):
        if t.shape[axis] > 1:
            yield Candidate(f"axis {axis} of {name} reversed", "reversed", {name: t.flip(axis)})


def _rows(unit: Mapping[str, torch.Tensor]) -> Iterator[Candidate]:
    """Rows of a table, or of an output layer with its bias, reversed or shifted: ids or classes numbered otherwise."""
    if not any(t.ndim >= 2 for t in unit.values()):
        return
    rows = {t.shape[0] for t in unit.values() if t.ndim}
    if len(rows) == 1 and rows.pop() >= FEWEST_ROWS:
        yield _joint(unit, "reversed", "its rows in reverse", partial(torch.flip, dims=(0,)))
        for by in SHIFTS:
            yield _joint(unit, "shifted", f"its rows shifted by {by}", partial(torch.roll, shifts=by, dims=0))


def _scales(path: str, unit: Mapping[str, torch.Tensor]) -> Iterator[Candidate]:
    whole = {n: t for n, t in unit.items() if t.ndim >= 2} or dict(unit)
    for factor in FACTORS:
        yield _joint(whole, "scaled", f"times {factor:g}", partial(torch.mul, other=factor))
    yield _joint(whole, "scaled", "of the other sign", torch.neg)
    yield _joint(unit, "zeroed", "all zero, so that what it adds is left out", torch.zeros_like)


def _joint(unit: Mapping[str, torch.Tensor], kind: str, said: str, form: Form) -> Candidate:
    names = " and ".join(unit) if len(unit) <= 2 else f"{next(iter(unit))} and {len(unit) - 1} that belong to it"
    return Candidate(f"{names}: {said}", kind, {n: form(t) for n, t in unit.items()})


def _channels(model: torch.nn.Module) -> list[int]:
    """Channels that convolutions give: what may have been flattened with its places."""
    given = (getattr(m, "out_channels", None) for m in model.modules())
    return sorted({n for n in given if isinstance(n, int)})


def _shapes(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Size]:
    return {n: t.shape for n, t in tensors.items()}
