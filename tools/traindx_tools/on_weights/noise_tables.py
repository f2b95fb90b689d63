"""Tables of one noise schedule that lie in one module and determine each other, and the one that is of another one.

Samplers keep betas, their product and several functions of it. From each of them the product follows, and from that all
others. Where most follow from one product and one does not by far, it was replaced or left over. Which function a table
is called as is taken from its name; that it is none of this schedule, and that others agree, from the values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traindx_tools.on_weights.noise_schedules import near

Array = NDArray[np.float64]
FEWEST = 16
"""Steps of a schedule."""
AGREE = 3
"""Tables that follow from one product, and more than do not."""
FAR, FAR_OF_POSTERIOR, MOST = 0.02, 0.004, 0.5
"""Relative distance, and share of the steps at which a table is farther from its formula; rounding is far below."""

_FROM: Mapping[str, Callable[[Array], Array]] = {
    "betas": lambda x: np.asarray(np.cumprod(1 - x), np.float64),
    "alphas": lambda x: np.asarray(np.cumprod(x), np.float64),
    "alphascumprod": lambda x: x,
    "sqrtalphascumprod": np.square,
    "sqrtoneminusalphascumprod": lambda x: 1 - x**2,
    "sqrtrecipalphascumprod": lambda x: 1 / x**2,
    "sqrtrecipm1alphascumprod": lambda x: 1 / (x**2 + 1),
    "logoneminusalphascumprod": lambda x: 1 - np.exp(x),
}
"""The product of 1 - beta, of each table; names without separators."""
_TO: Mapping[str, Callable[[Array], Array]] = {
    "betas": lambda bar: 1 - bar / np.append(1.0, bar[:-1]),
    "alphas": lambda bar: bar / np.append(1.0, bar[:-1]),
    "alphascumprod": lambda bar: bar,
    "sqrtalphascumprod": np.sqrt,
    "sqrtoneminusalphascumprod": lambda bar: np.sqrt(1 - bar),
    "sqrtrecipalphascumprod": lambda bar: np.sqrt(1 / bar),
    "sqrtrecipm1alphascumprod": lambda bar: np.sqrt(1 / bar - 1),
    "logoneminusalphascumprod": lambda bar: np.log(1 - bar),
}


def _before(bar: Array) -> Array:
    return np.asarray(np.append(1.0, bar[:-1]), np.float64)


def _posterior(bar: Array) -> Array:
    return np.asarray((1 - bar / _before(bar)) * (1 - _before(bar)) / (1 - bar), np.float64)


_OF_POSTERIOR: Mapping[str, Callable[[Array], Array]] = {
    "alphascumprodprev": _before,
    "sqrtrecipalphas": lambda bar: np.sqrt(_before(bar) / bar),
    "posteriorvariance": _posterior,
    "posteriorlogvarianceclipped": lambda bar: np.log(np.append(_posterior(bar)[1], _posterior(bar)[1:])),
    "posteriormeancoef1": lambda bar: (1 - bar / _before(bar)) * np.sqrt(_before(bar)) / (1 - bar),
    "posteriormeancoef2": lambda bar: (1 - _before(bar)) * np.sqrt(bar / _before(bar)) / (1 - bar),
}
"""Tables of the step back (Ho et al. 2020, equations 6 and 7), from which no product is taken."""
_ALIAS = {"alphabars": "alphascumprod", "alphabar": "alphascumprod", "alphascumprods": "alphascumprod",
          "alphacumprod": "alphascumprod", "beta": "betas", "alpha": "alphas", "sqrtalphabar": "sqrtalphascumprod",
          "sqrtoneminusalphabar": "sqrtoneminusalphascumprod"}


@dataclass(frozen=True)
class Apart:
    """Table `name` that is not `of` the others: `step`, where it is farthest, with what it holds and should."""

    name: str
    others: tuple[str, ...]
    step: int
    held: float
    right: float


def kind_of(name: str) -> str | None:
    """Which function of the schedule a table is called as, None for any other."""
    last = name.replace("/", ".").rpartition(".")[2].lower()
    plain = "".join(c for c in last if c.isalnum())
    plain = _ALIAS.get(plain, plain)
    return plain if plain in _FROM or plain in _OF_POSTERIOR else None


def apart(tables: Mapping[str, Array]) -> Iterator[Apart]:
    """At most one table of a module. `tables`: float64 shape (steps,) each, by names in the file."""
    modules: dict[tuple[str, int], dict[str, Array]] = {}
    for name, table in tables.items():
        if kind_of(name) is not None and table.ndim == 1 and len(table) >= FEWEST:
            head = name.replace("/", ".").rpartition(".")[0]
            modules.setdefault((head, len(table)), {})[name] = table
    for group in modules.values():
        if len(group) > AGREE:
            yield from _of_module(group)


def _of_module(group: Mapping[str, Array]) -> Iterator[Apart]:
    best: tuple[list[str], Array] = ([], np.zeros(0))
    with np.errstate(all="ignore"):
        for name, table in ((n, t) for n, t in group.items() if kind_of(n) in _FROM):
            bar = np.asarray(_FROM[str(kind_of(name))](table), np.float64)
            if not np.isfinite(bar).all() or not ((bar > 0) & (bar < 1)).all() or (np.diff(bar) > 0).any():
                continue
            agree = [n for n, t in group.items() if not _is_far(n, t, _made(n, bar))]
            if len(agree) > len(best[0]):
                best = agree, bar
        odd = [n for n in group if n not in best[0]]
        if len(odd) == 1 and len(best[0]) >= AGREE and kind_of(odd[0]) not in ("betas", "alphas"):
            exact = sum(float(near(group[n], _made(n, best[1])).mean()) >= 1.0 - MOST for n in best[0])
            if exact >= AGREE:
                yield _told(odd[0], best[0], group[odd[0]], _made(odd[0], best[1]))


def _made(name: str, bar: Array) -> Array:
    kind = str(kind_of(name))
    return np.asarray((_TO[kind] if kind in _TO else _OF_POSTERIOR[kind])(bar), np.float64)


def _off(table: Array, made: Array) -> Array:
    return np.asarray(np.nan_to_num(np.abs(table - made) / np.maximum(np.abs(made), 1e-12), nan=0.0, posinf=1e12))


def _is_far(name: str, table: Array, made: Array) -> bool:
    far = FAR if kind_of(name) in _FROM else FAR_OF_POSTERIOR
    return float((_off(table, made) > far).mean()) > MOST


def _told(name: str, others: list[str], table: Array, made: Array) -> Apart:
    step = int(np.argmax(np.abs(table - made)))
    return Apart(name, tuple(others), step, float(table[step]), float(made[step]))
