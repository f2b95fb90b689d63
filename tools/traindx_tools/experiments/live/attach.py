"""Starts the changes of this process: those of each framework once it is imported, before the instruments that watch.

So the instruments see the run as it is with the change.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from traindx_tools.experiments.change import Change
from traindx_tools.experiments.interventions import check, intervention
from traindx_tools.experiments.live.intervening import Intervening
from traindx_tools.experiments.live.ledger import Ledger
from traindx_tools.live.notice import say
from traindx_tools.live.session import Session, current_session

PYTHON = "python"
"""Stands for what needs no framework."""

_books: dict[str, Ledger] = {}
_parts: list[Intervening] = []
_steps = [0]


def changes_of(session: Session) -> tuple[Change, ...]:
    """The changes that the settings ask for; one that cannot be read costs itself and one line."""
    told = session.settings.options.get("changes", ())
    found = []
    for data in told if isinstance(told, (list, tuple)) else ():
        try:
            found.append(check(Change.from_json(data)))
        except Exception as error:  # noqa: BLE001 - settings come from outside
            say(f"a change is off: {type(error).__name__}: {error}; the training goes on")
    return tuple(c for c in found if not c.is_control)


def attach(framework: str, session: Session | None = None) -> None:
    """Attaches what the changes do in this framework ("python", "torch", "jax")."""
    session = session or current_session()
    if session is None:
        return
    for change in changes_of(session):
        book = _book(change, session)
        place = intervention(change.name).live.get(framework)
        if place is None:
            if framework != PYTHON:
                book.foreign = f"{change.name} is not for {framework}, and the program uses nothing that it is for"
            continue
        _start(place, change, book)


def detach() -> None:
    """Takes every change out again, and forgets what they did."""
    while _parts:
        _parts.pop().detach()
    _books.clear()
    _steps[0] = 0
    stage = sys.modules.get("traindx_tools.experiments.live.on_torch.stage")
    if stage is not None:
        stage.close()


def books() -> Sequence[Ledger]:
    """What the changes of this process did so far."""
    return tuple(_books.values())


def _start(place: str, change: Change, book: Ledger) -> None:
    module, _, name = place.partition(":")
    try:
        part: Intervening = getattr(importlib.import_module(module), name)(change, book)
        _parts.append(part)
        part.attach()
    except Exception as error:  # noqa: BLE001 - an unknown version of a framework costs the change, not the training
        book.failed(error)


def _book(change: Change, session: Session) -> Ledger:
    key = str(change)
    if key not in _books:
        if not _books:
            session.at_step.append(_stepped)
            session.at_end.append(lambda: _ended(session))
        _books[key] = Ledger(key, session)
    return _books[key]


def _stepped() -> None:
    """A step was made: what this process does is a training, and its books may be written."""
    _steps[0] += 1
    if _steps[0] & (_steps[0] - 1) == 0:  # 1, 2, 4, 8, ...
        for book in books():
            book.awake = True
            book.write()


def _ended(session: Session) -> None:
    for part in _parts:
        part.guarded(part.finish)
    for book in books():
        if book.awake or session.recorder.began:
            book.write()
