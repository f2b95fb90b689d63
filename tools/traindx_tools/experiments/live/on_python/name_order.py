"""Names that are sorted as texts come in the order of the numbers in them: `scan2` before `scan10`."""

from __future__ import annotations

import builtins
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from traindx_tools.experiments.live.intervening import Intervening
from traindx_tools.live.number_order import by_number, texts_of
from traindx_tools.on_variables.roots import is_users


class NamesByNumber(Intervening):
    """`sorted` of the program's own code. `list.sort` belongs to the type and cannot be replaced."""

    def attach(self) -> None:
        self.ledger.unseen = "the program sorts no names whose numbers have another order by a call of sorted"
        self.patches.replace(builtins, "sorted", self._sorted)

    def _sorted(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def ordered(*args: Any, **kwargs: Any) -> Any:
            found = original(*args, **kwargs)
            if not is_users(sys._getframe(1).f_code.co_filename):
                return found
            other = self.guarded(_otherwise, found, kwargs.get("key"), bool(kwargs.get("reverse")))
            if other is None:
                return found
            self.ledger.held()
            return other

        return ordered


def _otherwise(found: Sequence[Any], key: Callable[[Any], Any] | None, reverse: bool) -> list[Any] | None:
    """What was sorted by text, by number; None where that is the same, or no text sorted it."""
    texts = texts_of(found if key in (None, str, os.fspath, os.path.basename) else [])
    if texts is None:
        return None
    if key is os.path.basename:
        texts = [os.path.basename(t) for t in texts]
    order = sorted(range(len(found)), key=lambda i: by_number(texts[i]), reverse=reverse)
    return [found[i] for i in order] if order != list(range(len(found))) else None
