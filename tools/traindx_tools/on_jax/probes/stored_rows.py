"""Always on: does reading a row of a data set of the program's own change what it keeps of it (J809)?"""

from __future__ import annotations

import functools
import inspect
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from traindx_tools.finding import Finding
from traindx_tools.on_jax.probe import Call, JaxProbe
from traindx_tools.on_jax.rules import j809_reading_writes
from traindx_tools.on_variables.roots import is_users, roots
from traindx_tools.rows.stored_rows import StoredRows

LOOKS_AT = frozenset({1, 2, 4, 8, 16, 32})
"""Calls of compiled functions at which data sets are looked for: some are made late."""
MOST_CLASSES = 8


class StoredRowsProbe(JaxProbe):
    """Stands before `__getitem__` of the program's own classes that have a length, until the end."""

    name = "stored-rows"
    always_on = True

    def __init__(self, scene: Any) -> None:
        super().__init__(scene)
        self._rows = StoredRows()
        self._put_back: list[tuple[type, Callable[..., Any], Callable[..., Any]]] = []
        self._calls = 0

    def after_call(self, call: Call) -> None:
        """Looks for data sets among the program's variables."""
        self._calls = call.number
        if call.number not in LOOKS_AT:
            return
        for kind in {type(v) for v in _held()}:
            if len(self._put_back) < MOST_CLASSES and _is_read_by_number(kind):
                self._stand_before(kind)

    def failed(self, error: BaseException) -> Iterable[Finding]:
        """What was seen may be why."""
        return self.finish()

    def finish(self) -> Iterable[Finding]:
        """Takes itself away, and judges."""
        self._rows.let_go()
        while self._put_back:
            kind, ours, original = self._put_back.pop()
            if kind.__dict__.get("__getitem__") is ours:
                setattr(kind, "__getitem__", original)  # noqa: B010 - of a class that is not known here
        return [f for w in self._rows.written() for f in j809_reading_writes.check(w, self._calls)]

    def _stand_before(self, kind: type) -> None:
        original, rows = kind.__dict__["__getitem__"], self._rows

        @functools.wraps(original)
        def read(dataset: Any, index: Any, *args: Any, **kwargs: Any) -> Any:
            if threading.current_thread() is not threading.main_thread():
                return original(dataset, index, *args, **kwargs)
            told = _told(lambda: rows.asked(dataset, index))
            try:
                return original(dataset, index, *args, **kwargs)
            finally:
                if told:
                    _told(rows.read)

        setattr(kind, "__getitem__", read)  # noqa: B010 - see `finish`
        self._put_back.append((kind, read, original))


def _told(what: Callable[[], None]) -> bool:
    """Whether it went well: a data set of an odd kind costs itself."""
    try:
        what()
    except Exception:  # noqa: BLE001 - whatever a data set of the program's may raise
        return False
    return True


def _held() -> Iterator[Any]:
    """The program's variables, and what its own objects hold."""
    for _, _, _, value in roots():
        yield value
        if is_users(getattr(sys.modules.get(type(value).__module__), "__file__", None) or ""):
            yield from list(getattr(value, "__dict__", {}).values())


def _is_read_by_number(kind: type) -> bool:
    """A class of the program's own with a length, read by number in code of its own; torch watches its own data sets.
    """
    read: Any = inspect.getattr_static(kind, "__getitem__", None)
    torch = sys.modules.get("torch.utils.data")
    code = getattr(read, "__code__", None)
    own = kind.__dict__.get("__getitem__") is read and code is not None and is_users(code.co_filename)
    return own and hasattr(kind, "__len__") and not (torch is not None and issubclass(kind, torch.Dataset))
