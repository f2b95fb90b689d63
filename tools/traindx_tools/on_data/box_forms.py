"""Boxes of one part that are written otherwise: two corners, corner and size, centre and size, y before x.

Of two parts neither is odd. There what a form makes impossible has to tell them apart: the second corner lies behind
the first in every box, and half a size fits between the centre and the edge of the picture. Rows of one part that all
keep this, and of the other that often do not, are of two forms, where one of the ways makes both parts alike.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from traindx_tools.on_data.column import Array
from traindx_tools.on_data.relations import Contrary, Features
from traindx_tools.on_data.significance import LEVEL, distance, distance_tail

ROWS = 24
APART = 0.2
ALIKE = 0.12
AGREE = 0.2
_SLACK, _KEPT, _BROKEN = 0.02, 0.995, 0.1
"""Rounding of a centre as a share of the size; shares of the boxes that keep what a form asks, in one part and in the
other."""
_SAME = 1.63
"""Distance of two samples of one distribution, over the root of 1/m + 1/n: one in a hundred is larger (Kolmogorov)."""
_CORNERS = (("x1", "y1", "x2", "y2"), ("xmin", "ymin", "xmax", "ymax"), ("x0", "y0", "x1", "y1"),
            ("left", "top", "right", "bottom"), ("x", "y", "w", "h"), ("x", "y", "width", "height"),
            ("left", "top", "width", "height"), ("cx", "cy", "w", "h"), ("x_min", "y_min", "x_max", "y_max"))
"""How the four columns of a box are called; what they hold is told by their values alone."""


def _stacked(*columns: Array) -> Array:
    return np.stack(columns, axis=1)


WAYS: Mapping[str, Callable[[Array], Array]] = {
    "as two corners where all others are corner and size":
        lambda b: _stacked(b[:, 0], b[:, 1], b[:, 2] - b[:, 0], b[:, 3] - b[:, 1]),
    "as corner and size where all others are two corners":
        lambda b: _stacked(b[:, 0], b[:, 1], b[:, 0] + b[:, 2], b[:, 1] + b[:, 3]),
    "as centre and size where all others are corner and size":
        lambda b: _stacked(b[:, 0] - b[:, 2] / 2, b[:, 1] - b[:, 3] / 2, b[:, 2], b[:, 3]),
    "as corner and size where all others are centre and size":
        lambda b: _stacked(b[:, 0] + b[:, 2] / 2, b[:, 1] + b[:, 3] / 2, b[:, 2], b[:, 3]),
    "as two corners where all others are centre and size":
        lambda b: _stacked((b[:, 0] + b[:, 2]) / 2, (b[:, 1] + b[:, 3]) / 2, b[:, 2] - b[:, 0], b[:, 3] - b[:, 1]),
    "as centre and size where all others are two corners":
        lambda b: _stacked(b[:, 0] - b[:, 2] / 2, b[:, 1] - b[:, 3] / 2, b[:, 0] + b[:, 2] / 2, b[:, 1] + b[:, 3] / 2),
    "with x and y exchanged": lambda b: b[:, [1, 0, 3, 2]],
}


_FORMS: tuple[tuple[str, Callable[[Array], Array]], ...] = (
          ("two corners", lambda b: (b[:, 2] > b[:, 0]) & (b[:, 3] > b[:, 1])),
          ("centre and size", lambda b: (b[:, 0] >= b[:, 2] / 2 - _SLACK * b[:, 2])
           & (b[:, 1] >= b[:, 3] / 2 - _SLACK * b[:, 3]) & (b[:, 2] > 0) & (b[:, 3] > 0)))
"""Forms, and which boxes may be of that form in a picture whose first corner is 0, 0."""


def boxes_of(x: Features) -> Iterator[tuple[str, Array]]:
    """Each field of four numbers, and each four columns that are called as those of a box are."""
    for name in dict.fromkeys(x.fields):
        at = [i for i, f in enumerate(x.fields) if f == name]
        if len(at) == 4:
            yield name, np.array(at)
    plain = [re.sub(r"^(.*[_.])?(box|bbox|bb)?[_.]?", r"\1", n.lower()) for n in x.names]
    for called in _CORNERS:
        for prefix in {p[: -len(called[0])] for p in plain if p.endswith(called[0])}:
            wanted = [prefix + c for c in called]
            if all(w in plain for w in wanted):
                yield ", ".join(x.names[plain.index(w)] for w in wanted), np.array([plain.index(w) for w in wanted])
                break
    for k in range(len(plain) - 3):
        numbered = [re.fullmatch(r"(.*?)(\d+)", n) for n in x.names[k: k + 4]]
        stems = {m[1] for m in numbered if m is not None}
        if all(numbered) and len(stems) == 1 and len(set(x.fields[k: k + 4])) == 4 and [
                int(m[2]) for m in numbered if m is not None] in ([0, 1, 2, 3], [1, 2, 3, 4]):
            yield ", ".join(x.names[k: k + 4]), np.arange(k, k + 4)


def other_forms(x: Features, member: Array, parts: int, comparisons: float) -> list[Contrary]:
    """Parts whose boxes are as those of all others only when they are read in another form."""
    out = []
    for name, at in boxes_of(x):
        known = np.isfinite(x.values[:, at]).all(axis=1)
        boxes = [_spread_out(x.values[known & (member == p)][:, at]) for p in range(parts)]
        if min(map(len, boxes)) < ROWS:
            continue
        if parts == 2:
            out += _of_two(x, name, at, boxes, comparisons)
            continue
        rests = [np.concatenate([b for j, b in enumerate(boxes) if j != p]) for p in range(parts)]
        apart = [_apart(b, r) for b, r in zip(boxes, rests, strict=True)]
        odd = int(np.argmax(apart))
        others = [b for j, b in enumerate(boxes) if j != odd]
        among = max(_apart(b, np.concatenate([c for k, c in enumerate(others) if k != j]))
                    - _noise(len(b), len(rests[odd])) for j, b in enumerate(others))
        chance = distance_tail(apart[odd], len(boxes[odd]), len(rests[odd])) * comparisons * 7
        if apart[odd] < APART or among > AGREE or chance > LEVEL:
            continue
        fits = {told: _apart(way(boxes[odd]), rests[odd]) for told, way in WAYS.items()}
        told = min(fits, key=lambda t: fits[t])
        if fits[told] <= ALIKE + _noise(len(boxes[odd]), len(rests[odd])) and fits[told] < 0.6 * apart[odd]:
            out.append(Contrary(
                odd, tuple(dict.fromkeys(x.names[i] for i in at)),
                f"{name} is {apart[odd]:.2f} apart from all others as it stands, {fits[told]:.2f} when read so",
                (f"boxes {told}",), True, "boxes"))
    return out


def _of_two(x: Features, name: str, at: Array, boxes: list[Array], comparisons: float) -> list[Contrary]:
    """The second of two parts, where both are alike in one way only, and what the forms ask tells them apart."""
    first, second = boxes
    noise = math.sqrt(1.0 / len(first) + 1.0 / len(second))
    apart = _apart(second, first)
    if apart < APART or distance_tail(apart, len(second), len(first)) * comparisons * 7 > LEVEL:
        return []
    fits = {told: _apart(way(second), first) for told, way in WAYS.items()}
    told = min(fits, key=lambda t: fits[t])
    if fits[told] > _SAME * noise or fits[told] > 0.5 * apart or not _told_by_form(told, second, first):
        return []
    said = told.replace("all others are", "the other part is")
    return [Contrary(1, tuple(dict.fromkeys(x.names[i] for i in at)),
                     f"{name} is {apart:.2f} apart from the other part as it stands, {fits[told]:.2f} when read so",
                     (f"boxes {said}",), True, "boxes")]


def _told_by_form(told: str, mine: Array, others: Array) -> bool:
    """Whether the boxes that are said to be of a form all keep what it asks, and those of the other often do not."""
    for form, keeps in _FORMS:
        for here, there, said in ((mine, others, told.startswith(f"as {form}")),
                                  (others, mine, told.endswith(f"are {form}"))):
            if said and float(keeps(here).mean()) >= _KEPT and float(keeps(there).mean()) <= 1 - _BROKEN:
                return True
    return False


def _spread_out(boxes: Array) -> Array:
    return boxes[:: max(1, len(boxes) // 4000)]


def _noise(m: int, n: int) -> float:
    return 1.36 * math.sqrt(1.0 / max(1, m) + 1.0 / max(1, n))


def _apart(mine: Array, others: Array) -> float:
    """The largest distance of any of the four numbers, and of the edges that each form would give the box."""
    return max(distance(np.sort(a), np.sort(b)) for a, b in zip(_numbers(mine), _numbers(others), strict=True))


def _numbers(b: Array) -> list[Array]:
    low, high = b[:, :2], b[:, 2:]
    edges = (high - low, low + high, low - high / 2, low + high / 2)
    return [*(b[:, k] for k in range(4)), *(e[:, k] for e in edges for k in (0, 1))]
