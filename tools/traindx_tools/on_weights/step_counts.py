"""Parameters of an optimizer whose step counts differ from the rest, by the modules that they make up.

Whole modules that made fewer steps than all others and than the run are of an older state, or were out of the optimizer
for a while. Unfreezing in order does that on purpose: from the input on, the nearer the fewer; so does a head that was
added, an expert or an embedding that is stepped only where it has a gradient. Those are remarks.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise


@dataclass(frozen=True)
class Apart:
    """Modules with another count."""

    modules: tuple[str, ...]
    names: tuple[str, ...]
    """Their tensors, in the model's order."""
    counts: tuple[float, ...]
    usual: float
    of: int
    design: str
    """Why it may be meant, "" where nothing says so."""


_RECURRENT = re.compile(r"\.?([^.]+)_l(\d+(?:_reverse)?)$")
"""torch keeps the layers of a recurrent module in one, and numbers its tensors."""


def _layered(name: str) -> str:
    """`rnn.weight_ih_l0` as `rnn.l0.weight_ih`."""
    return _RECURRENT.sub(lambda m: f".l{m[2]}.{m[1]}", name)


def apart(counts: Mapping[str, float], order: Sequence[str], matrices: frozenset[str]) -> Apart | None:
    """The modules whose parameters all have another count than most; None where single tensors do.

    `counts`: steps by name. `order`: names in the model's order. `matrices`: those of them that are matrices.
    """
    real = {_layered(n): n for n in order}
    found = _apart({_layered(n): c for n, c in counts.items()}, list(real), frozenset(map(_layered, matrices)))
    return None if found is None else replace(found, names=tuple(real[n] for n in found.names))


def _apart(counts: Mapping[str, float], order: Sequence[str], matrices: frozenset[str]) -> Apart | None:
    known = [n for n in order if n in counts]
    usual, times = Counter(counts.values()).most_common(1)[0] if counts else (0.0, 0)
    odd = [n for n in known if counts[n] != usual]
    if not odd or times < len(known) / 2:
        return _in_order(known, counts, usual)
    modules = whole_modules(known, set(odd))
    covered = [n for n in odd if any(n.startswith(f"{m}.") for m in modules)]
    if len(covered) < len(odd) or not matrices & set(odd):
        return None
    values = tuple(sorted({counts[n] for n in odd}))
    return Apart(modules, tuple(odd), values, usual, len(known), _design(known, odd, counts, usual))


def _in_order(known: Sequence[str], counts: Mapping[str, float], usual: float) -> Apart | None:
    """Counts that grow from the input to the output over many stages: unfreezing step by step."""
    values = [counts[n] for n in known]
    if len(set(values)) < 2 or any(b < a for a, b in pairwise(values)):
        return None
    odd = tuple(n for n in known if counts[n] != usual)
    return Apart((), odd, tuple(sorted({counts[n] for n in odd})), usual, len(known), _UNFROZEN)


_UNFROZEN = "the nearer to the input the fewer, as where a model is unfrozen from its end on"


def _design(known: Sequence[str], odd: Sequence[str], counts: Mapping[str, float], usual: float) -> str:
    values = [counts[n] for n in known]
    if all(a <= b for a, b in pairwise(values)):
        return _UNFROZEN
    modules = whole_modules(known, set(odd))
    single = len(modules) == 1 and not ("." in modules[0] and modules[0].rpartition(".")[2].isdigit())
    if single and list(odd) == list(known[len(known) - len(odd):]) and all(counts[n] < usual for n in odd):
        return "the last module, as a head that was added later"
    if len({counts[n] for n in odd}) > 1 or all("expert" in n.lower() for n in odd):
        return "from module to module otherwise, as where not each batch reaches each of them (experts)"
    if all("emb" in n.lower() or n.rpartition(".")[0].endswith("wte") for n in odd):
        return "an embedding, which has no gradient in some batches"
    return ""


def whole_modules(known: Sequence[str], odd: set[str]) -> tuple[str, ...]:
    """The highest prefixes with two tensors or more, all of which are among `odd`."""
    held: dict[str, list[str]] = {}
    for name in known:
        parts = name.split(".")
        for depth in range(1, len(parts)):
            held.setdefault(".".join(parts[:depth]), []).append(name)
    whole = [p for p, names in held.items() if all(n in odd for n in names) and (
        len(names) >= 2 or p.rpartition(".")[0] not in held)]
    return tuple(p for p in whole if not any(p.startswith(f"{q}.") for q in whole))
