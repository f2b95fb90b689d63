"""Repeats of one error: across ranks, workers and iterations they are one event with a count."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from traindx_tools.on_logs.run import ErrorEvent

MOST_EVENTS = 500
"""Distinct errors kept of one log; further ones are counted under the last of their type."""
_MOST_OF_A_SHAPE = 20

_VARYING = re.compile(r"0x[0-9a-fA-F]+|\b(?:pid|PID|[Rr]ank|GPU|process|replica|device|worker process)[ :=]*\d+")
_DIGITS = re.compile(r"\d+")


class Repeats:
    """Collects events in the order of the log; equal ones are merged as they come."""

    def __init__(self) -> None:
        self.ordinary_lines = 0
        """Lines of no error so far: whoever reads the log counts them here."""
        self._ordinary_before: dict[tuple[object, ...], int] = {}
        self._events: dict[tuple[object, ...], ErrorEvent] = {}
        self._of_shape: dict[tuple[object, ...], list[tuple[object, ...]]] = {}

    def add(self, event: ErrorEvent) -> None:
        """Take in an event, as a new one or as a repeat."""
        place = event.user_frame or (event.frames[-1] if event.frames else None)
        where = (place.file, place.line) if place else None
        key: tuple[object, ...] = (event.kind, event.type, where, _VARYING.sub("#", event.message))
        if key not in self._events:
            shape = (event.kind, event.type, where, _DIGITS.sub("#", event.message))
            alike = self._of_shape.setdefault(shape, [])
            if len(alike) < _MOST_OF_A_SHAPE and len(self._events) < MOST_EVENTS:
                alike.append(key)
                self._events[key] = replace(event, ranks=_ranks(event), last_line=event.last_line or event.end_line)
                self._ordinary_before[key] = self.ordinary_lines
                return
            if not alike:
                return
            key = alike[-1]
        self._merge(key, event)

    def _merge(self, key: tuple[object, ...], event: ErrorEvent) -> None:
        known = self._events[key]
        self._ordinary_before[key] = self.ordinary_lines
        self._events[key] = replace(
            known,
            count=known.count + event.count,
            ranks=tuple(sorted({*known.ranks, *_ranks(event)})),
            last_line=max(known.last_line, event.last_line or event.end_line),
            cause=known.cause or event.cause,
        )

    def events(self) -> tuple[ErrorEvent, ...]:
        """What was collected, by the line of its first occurrence."""
        total, before = self.ordinary_lines, self._ordinary_before
        events = (replace(e, lines_after=total - before[key]) for key, e in self._events.items())
        return tuple(sorted(events, key=lambda e: (e.line, e.end_line)))


def merged(events: Iterable[ErrorEvent]) -> tuple[ErrorEvent, ...]:
    """The same events with repeats merged."""
    repeats = Repeats()
    for event in events:
        repeats.add(event)
    return repeats.events()


def _ranks(event: ErrorEvent) -> tuple[int, ...]:
    return event.ranks or (() if event.rank is None else (event.rank,))
