"""Which plain operation makes a part like all others again: the factor of a unit, a sign, a logarithm."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_data.column import Array
from traindx_tools.on_data.significance import distance

FACTORS = {
    1000.0: "thousandths (mm and m, g and kg, ms and s)", 100.0: "hundredths (cm and m, cents, percent)",
    10.0: "tenths", 60.0: "minutes and hours, or seconds and minutes", 3600.0: "seconds and hours",
    24.0: "hours and days", 7.0: "days and weeks", 12.0: "months and years, or inches and feet",
    255.0: "bytes and 0 to 1",
    3.6: "m/s and km/h", 1.609344: "miles and kilometres", 2.204623: "kilograms and pounds", 2.54: "inches and cm",
    25.4: "inches and mm", 3.28084: "metres and feet", 4.184: "calories and joules", 9.80665: "g and m/s2",
    57.29578: "radians and degrees", 6.894757: "psi and kPa", 1e6: "millionths", 1024.0: "units of 1,024",
    2.0: "halves",
}  # fmt: skip
"""Ratios of units in use; the names are those of the NIST Guide to the SI, appendix B."""
TOTALS = {
    1.0: "a share and its complement", 100.0: "a percentage and its complement",
    90.0: "an elevation and its zenith angle", 180.0: "an angle and its supplement",
    360.0: "clockwise and counter-clockwise", 255.0: "bytes and their negative", 24.0: "hours before and after",
    math.pi / 2: "an angle and its complement, in radians", math.pi: "an angle and its supplement, in radians",
    2 * math.pi: "clockwise and counter-clockwise, in radians",
}  # fmt: skip
"""What a quantity and its contrary add up to, and how both are called."""
WITHIN = 0.03
LEFT = 0.12
"""Distance to the others after the repair, beyond what sampling makes."""


SLACK = 0.02
"""Distance by which a total that is in use may be worse than the one that fits best."""


def contrary(mine: Array, others: Array) -> tuple[float, str]:
    """What values of the part are subtracted from to be as all others (sorted both), and how that is called.

    The lowest and the highest value together are wrong by whatever the part does not reach; a total that is in use is
    taken where it fits as well as the middle of both does.
    """
    best = float(np.median(mine) + np.median(others))
    fits = distance(np.sort(best - mine), others)
    near = [(abs(total - best), total) for total in TOTALS if others[0] >= 0 <= mine[0] and max(
        mine[-1], others[-1]) <= total and distance(np.sort(total - mine), others) <= fits + SLACK]
    return (min(near)[1], TOTALS[min(near)[1]]) if near else (best, "")


@dataclass(frozen=True)
class Repair:
    """An operation on the part after which it is distributed as all others are."""

    name: str
    told: str


def repaired(mine: Array, others: Array) -> Repair | None:
    """The operation that fits, None where none does."""
    mine, others = mine[np.isfinite(mine)], np.sort(others[np.isfinite(others)])
    if len(mine) < 10 or len(others) < 10:
        return None
    noise = 1.36 * math.sqrt(1.0 / len(mine) + 1.0 / len(others))
    found = [(distance(np.sort(made), others), repair) for repair, way in _ways(mine, others)
             if np.isfinite(made := way(mine)).all()]
    best = min(found, key=lambda f: f[0], default=None)
    return best[1] if best is not None and best[0] <= LEFT + noise else None


def is_alike(mine: Array, others: Array, name: str) -> bool:
    """Whether a part is distributed as all others, as it is or after the operation of that name."""
    mine, others = mine[np.isfinite(mine)], np.sort(others[np.isfinite(others)])
    if len(mine) < 10 or len(others) < 10:
        return True
    least = LEFT + 1.36 * math.sqrt(1.0 / len(mine) + 1.0 / len(others))
    made = [mine, *(way(mine) for repair, way in _ways(mine, others) if repair.name == name)]
    return any(bool(np.isfinite(m).all()) and distance(np.sort(m), others) <= least for m in made)


def _ways(mine: Array, others: Array) -> list[tuple[Repair, Callable[[Array], Array]]]:
    ways: list[tuple[Repair, Callable[[Array], Array]]] = [
        (Repair("negate", "with the sign turned it is as all others"), lambda v: -v),
        (Repair("celsius", "from degrees Fahrenheit to Celsius it is as all others"), lambda v: (v - 32) / 1.8),
        (Repair("fahrenheit", "from degrees Celsius to Fahrenheit it is as all others"), lambda v: v * 1.8 + 32),
        (Repair("kelvin", "less 273.15 (kelvin to Celsius) it is as all others"), lambda v: v - 273.15),
        (Repair("exp", "it is the logarithm of what all others are"), np.exp),
    ]
    if mine.min() > 0:
        ways.append((Repair("log", "all others are the logarithm of it"), np.log))
    ratio = abs(float(np.median(mine))) / max(1e-300, abs(float(np.median(others))))
    spread = _spread(mine) / max(1e-300, _spread(others))
    for factor, told in FACTORS.items():
        for exact in (factor, 1.0 / factor):
            if abs(math.log(max(spread, 1e-300) / exact)) < 0.5 or abs(math.log(max(ratio, 1e-300) / exact)) < WITHIN:
                ways.append((Repair(f"divide by {exact:g}", f"divided by {exact:g} it is as all others: {told}"),
                             lambda v, f=exact: v / f))  # type: ignore[misc]
    centre, wide = float(np.mean(others)), float(np.std(others))
    if abs(float(np.mean(mine))) < 0.1 and 0.8 < float(np.std(mine)) < 1.25:
        ways.append((Repair("standardised", "it was standardised (mean 0, spread 1) and all others were not"),
                     lambda v: v * wide + centre))
    shift = float(np.median(mine)) - float(np.median(others))
    if abs(spread - 1.0) < 0.2:
        ways.append((Repair("offset", f"less {shift:.4g} it is as all others"), lambda v: v - shift))
    return ways


def _spread(values: Array) -> float:
    low, high = np.quantile(values, (0.25, 0.75))
    return float(high - low)
