"""Watches joins of tables by time: `merge`, `merge_asof` and `join` of pandas, `searchsorted` and `interp` of numpy.

Each call is made as it is and looked at afterwards. Where local times are made of a zone's (`tz_localize(None)`), the
zone is kept beside the ends of the times, to be known again in a join.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from traindx_tools.live.import_hook import after_import
from traindx_tools.live.notice import say
from traindx_tools.live.session import Session, current_session
from traindx_tools.on_variables.clocks import (
    MOST,
    Clocks,
    Columns,
    shift_of_partners,
    shift_of_values,
    units_differ,
    zones_differ,
)
from traindx_tools.on_variables.roots import is_users
from traindx_tools.on_variables.rules import v104_clocks_differ
from traindx_tools.on_variables.rules.v104_clocks_differ import Join

MOST_JOINS, MOST_ZONES = 32, 256
_attached: list[Joins] = []


def attach(session: Session | None = None) -> Joins | None:
    """Watches the joins of this process, where there is a session. A second call changes nothing."""
    session = session or current_session()
    if _attached or session is None:
        return _attached[0] if _attached else None
    made = Joins(session)
    made.patch()
    session.at_end.append(made.finish)
    _attached.append(made)
    return made


def detach() -> None:
    """Takes every patch out again."""
    while _attached:
        _attached.pop().unpatch()


class Joins:
    """The patches, and what was seen."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._seen: list[Join] = []
        self._zones: dict[tuple[int, int, int], str] = {}
        self._undo: list[Callable[[], None]] = []
        self._busy = self._off = False
        self._looks = 0

    def patch(self) -> None:
        """Puts the patches in: those of numpy now, those of pandas once it is imported."""
        for name in ("searchsorted", "interp"):
            self._replace(np, name, self._watched(name, self._searched))
        after_import("pandas", self._patch_pandas)

    def _patch_pandas(self) -> None:
        if self._off:
            return
        pandas, home, dates = (importlib.import_module(n) for n in (
            "pandas", "pandas.core.reshape.merge", "pandas.core.arrays.datetimes"))
        for name in ("merge", "merge_asof"):
            original = getattr(home, name)
            for owner in (home, pandas):
                if getattr(owner, name, None) is original:
                    self._replace(owner, name, self._watched(name, self._merged))
        self._replace(dates.DatetimeArray, "tz_localize", self._localized)

    def unpatch(self) -> None:
        """Takes the patches out again; what was patched over ours by others stays."""
        self._off = True
        while self._undo:
            self._undo.pop()()

    def finish(self) -> None:
        """Writes what was seen, where the process trained."""
        if self._session.recorder.began:
            for finding in v104_clocks_differ.check(self._seen, self._session.recorder.rank):
                self._session.recorder.finding(finding)

    def _replace(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        original = getattr(owner, name)
        ours = make(original)
        setattr(owner, name, ours)
        self._undo.append(lambda: setattr(owner, name, original) if getattr(owner, name) is ours else None)

    def _watched(self, name: str, look: Callable[..., Iterator[Clocks]]) -> Callable[[Any], Any]:
        def make(original: Any) -> Any:
            @functools.wraps(original)
            def call(*args: Any, **kwargs: Any) -> Any:
                result = original(*args, **kwargs)
                self._note(name, look, args, kwargs)
                return result

            return call

        return make

    def _note(self, name: str, look: Callable[..., Iterator[Clocks]], args: Any, kwargs: Any) -> None:
        if self._busy or self._off or self._looks >= MOST_JOINS:
            return
        place = _caller(direct=name in ("searchsorted", "interp"))
        if place is None:
            return
        self._busy = True
        try:
            self._looks += 1
            clocks = next(look(name, *args, **kwargs), None)
            if clocks is not None:
                self._seen.append(Join(name, clocks, *place))
        except Exception as error:  # noqa: BLE001 - an odd table costs this look, and nothing else
            say(f"a join was not looked at: {type(error).__name__}: {error}")
        finally:
            self._busy = False

    def _localized(self, original: Any) -> Any:
        @functools.wraps(original)
        def localize(array: Any, tz: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(array, tz, *args, **kwargs)
            if tz is None and array.tz is not None and len(array) and len(self._zones) < MOST_ZONES:
                self._zones[_ends(result)] = str(array.tz)
            return result

        return localize

    # ---- what is looked at

    def _merged(self, name: str, left: Any, right: Any, *args: Any, **kwargs: Any) -> Iterator[Clocks]:
        for one, other in _keys(left, right, args, kwargs, name):
            a, b = (t.dropna() for t in (one, other))
            if not len(a) or not len(b):
                continue
            if a.dtype.kind in "fiu" and b.dtype.kind in "fiu":
                found = units_differ(a.to_numpy(np.float64), b.to_numpy(np.float64))
                yield from [found] if found is not None else []
            if a.dtype.kind == b.dtype.kind == "M":
                yield from self._of_dates(one, other, left, right, exact=name == "merge")

    def _of_dates(self, one: Any, other: Any, left: Any, right: Any, *, exact: bool) -> Iterator[Clocks]:
        zones = tuple(self._zones.get(_ends(t.array)) for t in (one, other))
        first = one.dropna().iloc[0]
        offsets = tuple(_offset(z, first) for z in zones)
        steps = (zones_differ(zones[0], zones[1], (offsets[0], offsets[1])),)
        yield from (s for s in steps if s is not None)
        a, b = one.notna().to_numpy(), other.notna().to_numpy()
        times = [t.to_numpy("datetime64[ns]").astype(np.int64)[good] for t, good in ((_naive(one), a),
                                                                                     (_naive(other), b))]
        found = shift_of_partners(times[0], times[1]) if exact else None
        found = found or shift_of_values(times[0], times[1], _columns(left, a), _columns(right, b))
        yield from [found] if found is not None else []

    def _searched(self, name: str, *args: Any, **kwargs: Any) -> Iterator[Clocks]:
        if len(args) < 2:
            return
        one, other = (args[1], args[0]) if name == "searchsorted" else (args[0], args[1])
        arrays = [np.asarray(v) for v in (one, other)]
        if all(v.ndim == 1 and v.dtype.kind in "fiu" and v.size for v in arrays):
            found = units_differ(*(v[:MOST].astype(np.float64) for v in arrays))
            yield from [found] if found is not None else []


def _keys(left: Any, right: Any, args: tuple[Any, ...], kwargs: dict[str, Any], name: str) -> Iterator[tuple[Any, Any]]:
    """Pairs of columns by which two tables are joined; what is given in another way than by names is left out."""
    order = ("how", "on", "left_on", "right_on", "left_index", "right_index")
    given = {**dict(zip(order if name == "merge" else order[1:], args, strict=False)), **kwargs}
    on = given.get("on")
    if on is None and not any(given.get(k) is not None for k in order[2:4]) and not given.get("left_index"):
        on = [c for c in left.columns if c in right.columns] if hasattr(right, "columns") else None
    one = _chosen(left, on if on is not None else given.get("left_on"), given.get("left_index"))
    other = _chosen(right, on if on is not None else given.get("right_on"), given.get("right_index"))
    yield from zip(one, other, strict=False)


def _chosen(table: Any, names: Any, index: Any) -> list[Any]:
    if index:
        return [table.index.to_series()] if getattr(table.index, "nlevels", 1) == 1 else []
    several = list(names) if isinstance(names, (list, tuple)) else [names] if names is not None else []
    return [table[n] for n in several if isinstance(n, str) and n in getattr(table, "columns", ())]


def _columns(table: Any, good: Any) -> Columns:
    kinds = getattr(table, "dtypes", None)
    names = [n for n in getattr(table, "columns", ()) if kinds is not None and getattr(kinds[n], "kind", "") == "f"]
    return {str(n): table[n].to_numpy(np.float64)[good] for n in names[:8]}


def _naive(times: Any) -> Any:
    return times.dt.tz_convert("UTC").dt.tz_localize(None) if getattr(times.dt, "tz", None) is not None else times


def _ends(array: Any) -> tuple[int, int, int]:
    """How often, the first and the last one, in nanoseconds: by this local times are known again."""
    raw = np.asarray(getattr(array, "_ndarray", array)).astype("datetime64[ns]").astype(np.int64)
    return len(raw), int(raw[0]), int(raw[-1])


def _offset(zone: str | None, at: Any) -> float:
    if zone is None:
        return 0.0
    local = at.tz_localize(zone, ambiguous=True, nonexistent="shift_forward")
    return float(local.utcoffset().total_seconds()) / 3600


def _caller(*, direct: bool) -> tuple[str, int] | None:
    """The line of the program that joins; where `direct`, only one that makes the call itself."""
    frame: Any = sys._getframe(3)
    while frame is not None:
        if is_users(frame.f_code.co_filename):
            return frame.f_code.co_filename, frame.f_lineno
        if direct:
            return None
        frame = frame.f_back
    return None
