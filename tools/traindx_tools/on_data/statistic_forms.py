"""What stored means and spreads are instead of means and spreads: variances, roots, inverses, each other.

One form must fit all channels within what two samples differ by, and the plain one must be far off in most of them:
spreads near one are their own squares.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_data.channel_statistics import AGREES, FAR, Measured
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.view import Statistics

FEWEST, MOST_LIKE = 3, 0.5
"""Channels, and the share of them that the plain form may fit."""


@dataclass(frozen=True)
class Form:
    """`kind` and `told`: what the stored numbers are; `sure`: whether nobody means to store them so."""

    kind: str
    told: str
    sure: bool


def stored_as(said: Statistics, measured: Measured) -> Form | None:
    """The one form other than the plain one that fits all channels."""
    if len(said.means) < FEWEST or not (np.isfinite(measured.margin).all() and (measured.spreads > 0).all()):
        return None
    if float((_off(said, measured.means, measured.spreads) < FAR).mean()) > MOST_LIKE:
        return None
    near = np.maximum(AGREES, measured.margin)
    found = [form for form, means, spreads in _forms(measured)
             if (spreads > 0).all() and (_off(said, means, spreads) < near).all()]
    return found[0] if len(found) == 1 else None


def _off(said: Statistics, means: Array, spreads: Array) -> Array:
    """How far off each channel is: of the mean in spreads, of the spread as a logarithm; the larger one."""
    far = np.abs(said.means - means) / np.maximum(np.maximum(said.spreads, spreads), 1e-30)
    apart = np.abs(np.log(np.maximum(said.spreads, 1e-30) / np.maximum(spreads, 1e-30)))
    return np.asarray(np.maximum(far, apart))


def _forms(measured: Measured) -> Iterator[tuple[Form, Array, Array]]:
    m, s = measured.means, measured.spreads
    for kind, told, sure, means, spreads in (
        ("variances", "variances stand where standard deviations are read (they are the squares)", True, m, s**2),
        ("roots", "standard deviations stand where variances are read (roots are taken twice)", True, m, s**0.5),
        ("inverses", "they are the inverses of the standard deviations", False, m, 1.0 / s),
        ("inverse-variances", "they are the inverses of the variances", False, m, s**-2.0),
        ("negated", "the means have the other sign", False, -m, s),
        ("exchanged", "means and standard deviations have changed places", True, s, np.abs(m)),
        ("moments", "they are roots of mean squares, from which the means were not taken", True, m,
         np.sqrt(m**2 + s**2)),
    ):
        yield Form(kind, told, sure), means, spreads
