"""Always on: is everything that was read from a checkpoint among what the next functions are given (J711)?"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterable
from typing import Any

from traindx_tools.finding import Finding
from traindx_tools.live.import_hook import after_import
from traindx_tools.live.notice import say
from traindx_tools.on_jax.probe import Call, JaxProbe
from traindx_tools.on_jax.rules import j711_restored_in_part
from traindx_tools.on_jax.stale.restored import Restored
from traindx_tools.on_jax.tracing import argument_names
from traindx_tools.on_jax.watched import caller

READERS = {"flax": ("flax.serialization", "", "msgpack_restore"), "pickle": ("pickle", "", "load"),
           "orbax.checkpoint": ("orbax.checkpoint", "Checkpointer", "restore")}
"""What returns a tree of arrays: module, class and name."""


class RestoredProbe(JaxProbe):
    """Samples of what was read, held against the arguments of the calls after it."""

    name = "restored"
    always_on = True
    looks_before = True

    def __init__(self, scene: Any) -> None:
        super().__init__(scene)
        self._restored = Restored()
        self._undo: list[Callable[[], None]] = []
        self._off = False
        for package, (module, owner, name) in READERS.items():
            after_import(package, functools.partial(self._patch, module, owner, name))

    def _patch(self, module: str, owner: str, name: str) -> None:
        home: Any = importlib.import_module(module)
        home = getattr(home, owner, None) if owner else home
        original = getattr(home, name, None)
        if self._off or original is None:
            return

        @functools.wraps(original)
        def reading(*args: Any, **kwargs: Any) -> Any:
            tree = original(*args, **kwargs)
            self._note(tree)
            return tree

        setattr(home, name, reading)
        self._undo.append(lambda: setattr(home, name, original) if getattr(home, name) is reading else None)

    def _note(self, tree: Any) -> None:
        place = caller()
        if self._off or place is None:
            return
        try:
            self._restored.read(tree, place)
        except Exception as error:  # noqa: BLE001 - an odd tree costs this look, and nothing else
            say(f"a tree that was read was not looked at: {type(error).__name__}: {error}")

    def before_call(self, call: Call) -> None:
        """While something waits: what the function is given."""
        if not self._restored.waiting:
            return
        import jax

        leaves = jax.tree_util.tree_leaves((call.args, call.kwargs))
        self._restored.called(call.watched.name, argument_names(call.watched, call.args, call.kwargs), leaves)

    def finish(self) -> Iterable[Finding]:
        """Judges, and takes the patches out."""
        self._off = True
        while self._undo:
            self._undo.pop()()
        yield from j711_restored_in_part.check(self._restored.lost)
