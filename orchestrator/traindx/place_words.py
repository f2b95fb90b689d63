"""Several places of one change as a person reads them: one first, the rest behind "also"."""

from __future__ import annotations

from collections.abc import Iterable

MOST = 4
"""Places that are named behind the first."""


def one_and_also(places: Iterable[str], about: str = "") -> str:
    """`train.py:20, also train.py:46 and model.py:7` of places, each once; "" of none.

    `about`: the place that the change is for ("train.py:46"), said behind it where it is another one.
    """
    named = list(dict.fromkeys(places))
    if not named:
        return ""
    first, *more = named
    said = f"{first}, also {_listed(more)}" if more else first
    return f"{said} (for the fault at {about})" if about and about not in named else said


def _listed(names: list[str]) -> str:
    shown, left = names[:MOST], len(names) - MOST
    if left > 0:
        return f"{', '.join(shown)} and {left} more"
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
