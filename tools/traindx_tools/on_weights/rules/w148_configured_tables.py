"""A stored table is that of another configuration than the one beside it.

Filters, windows, noise schedules, slopes, ranges and weights of classes follow from a few settings. Each is recomputed
from what the configuration says, in all the ways in which libraries make it. Where it is none of these, the value of
one setting is looked for that makes the table to its last digits: a bank of mel filters for 22050 Hz beside a sample
rate of 16000. A table of which most rows are right is told with the others. What no formula gives is learnt, or of a
kind that is not known here, and nothing is said of it; a setting that is left open may have any usual value.
Tables of one noise schedule determine each other: the one that does not follow from the others needs no configuration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set

import numpy as np
from numpy.typing import NDArray

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_weights import signal_searches, value_searches
from traindx_tools.on_weights.noise_tables import FAR, apart, kind_of
from traindx_tools.on_weights.seen import Seen
from traindx_tools.on_weights.statistics import Stats
from traindx_tools.on_weights.table_settings import Settings, settings_of
from traindx_tools.on_weights.told_table import Told
from traindx_tools.rules import Rule, Threshold

_MOST_BYTES, _MOST_TABLES, _SMALL, _LOADED = 2**25, 1200, 64, 2**16
Search = Callable[[NDArray[np.float64], Settings], Told | None]
VECTORS: tuple[Search, ...] = (value_searches.noise, value_searches.slopes, signal_searches.window,
                               value_searches.support, value_searches.listed)
TABLES: tuple[Search, ...] = (signal_searches.mel, signal_searches.cosine, value_searches.base)

RULE = Rule(
    id="W148",
    name="configured-tables",
    title="A stored table is that of other settings",
    severity=Severity.HIGH,
    sees="mel filters, cosine transforms, windows, noise schedules, slopes, ranges, buckets, weights of classes, and "
         "the one value of a setting that makes them",
    matters="The table is loaded over what the code computes: features or noise are not those that the settings say.",
    alike=("tables that were trained", "settings of another part of the program under the same name",
           "a variant of a formula: all that libraries have are tried"),
    confirm=("compute the table from the configuration and compare", "save it with persistent=False"),
    thresholds={
        "near": Threshold(signal_searches.NEAR, "of the largest value", "half precision, frequencies rounded before"),
        "far": Threshold(FAR, "of the value", "at most of the steps, from what follows from the tables beside it"),
        "most": Threshold(0.6, "of the rows", "that follow the formula, before the others are odd"),
    },
)


def check(seen: Seen) -> Iterator[Finding]:
    """Each table of the part, by the first formula that explains it."""
    settings: Settings | None = None
    named: set[str] = set()
    for stats in _candidates(seen):
        if settings is None:
            settings = settings_of(seen.checkpoint)
        if (told := _told(stats, settings)) is not None:
            named.add(stats.name)
            yield _finding(seen, stats, told, settings)
    yield from _apart(seen, named)


def _apart(seen: Seen, named: Set[str]) -> Iterator[Finding]:
    """Of tables of noise that determine each other, the one that is of another schedule."""
    tables = {s.name: s.tensor.load().astype(np.float64).reshape(-1) for s in seen.floats
              if kind_of(s.name) is not None and s.finite == s.size <= _LOADED and max(s.tensor.shape) == s.size}
    for found in apart(tables) if named.isdisjoint(tables) else ():
        stats = seen.stats[found.name]
        yield RULE.finding(
            f"{found.name} in {seen.path} is not of the schedule that {', '.join(found.others)} are of: at step "
            f"{found.step} it is {found.held:.4g}, and {found.right:.4g} follows from them", seen.where(stats.name),
            seen.path, bearing=Bearing.CAUSE, measured={"name": found.name, "kind": "noise", "setting": "",
                                                        "others": len(found.others), "step": found.step})


def _candidates(seen: Seen) -> list[Stats]:
    """What may be such a table: no kernel of a convolution, nothing that is not a number."""
    found = [s for s in seen.stats.values() if s.name in seen.part.tensors and s.finite == s.size >= 4
             and (1 <= sum(n > 1 for n in s.tensor.shape) <= 2 or s.size <= _SMALL) and not s.constant
             and s.tensor.nbytes <= _MOST_BYTES and s.tensor.dtype != "bool"]
    return [s for s in found if not s.tensor.matrix or s.size <= _SMALL or _tabular(s)][:_MOST_TABLES]


def _tabular(stats: Stats) -> bool:
    """Whether a matrix may be filters, cosines, sines or whole numbers: no weights, of both signs and small."""
    shares = stats.zero_share >= 0.4 and stats.low >= 0
    waves = 0.5 < stats.largest <= 2.01 and stats.rms > 0.05
    return stats.size <= _LOADED or shares or waves or not stats.tensor.floating


def _told(stats: Stats, settings: Settings) -> Told | None:
    table = stats.tensor.load().astype(np.float64)
    table = table.reshape([n for n in table.shape if n > 1])
    if not stats.tensor.floating:
        return value_searches.buckets(table, settings) if table.ndim == 2 else None
    searches = VECTORS if table.ndim == 1 else (*TABLES, value_searches.listed) if table.ndim == 2 else (
        value_searches.listed,)
    return next((t for search in searches if (t := search(table, settings)) is not None), None)


def _finding(seen: Seen, stats: Stats, told: Told, settings: Settings) -> Finding:
    where = f" ({', '.join(settings.files[:2])})" if told.setting and settings.files else ""
    return RULE.finding(f"{stats.name} in {seen.path} {told.what}{where}", seen.where(stats.name), seen.path,
                        bearing=Bearing.CAUSE, measured={"name": stats.name, "kind": told.kind, "setting": told.setting,
                                                         "asked": told.asked, "found": told.found,
                                                         "rows": len(told.rows)})
