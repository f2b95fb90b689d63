"""Second pass: every call from a given one on is checked in full; the first one that goes wrong is evaluated (J101)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from traindx_tools.live.notice import say
from traindx_tools.on_jax.nonfinite.marks import ARGUMENT
from traindx_tools.on_jax.nonfinite.values import FINITE, INFINITE, kind_of, measurable
from traindx_tools.on_jax.probe import Call, JaxProbe


class NonfiniteOrigin(JaxProbe):
    """Keeps the arguments of armed calls (copies of those that are donated) until the outputs were looked at."""

    name = "nonfinite-origin"
    looks_before = True

    def __init__(self, scene: Any) -> None:
        super().__init__(scene)
        self._arm = max(0, int(scene.options.get("arm", 0)))
        self._kept: tuple[tuple[Any, ...], dict[str, Any]] | None = None
        self._done = False

    def before_call(self, call: Call) -> None:
        """Keeps the arguments, on the host where the call takes them away."""
        if self._done or call.number < self._arm:
            return
        self._kept = (_copied((call.args, call.kwargs)) if call.watched.donates else (call.args, call.kwargs))

    def after_call(self, call: Call) -> None:
        """Looks at every value of the output; evaluates the call where one stopped being finite."""
        kept, self._kept = self._kept, None
        if self._done or kept is None:
            return
        bad = [(i, kind) for i, kind in _odd(call.output)]
        if not bad or not self._newly(kept, call, bad):
            return
        self._evaluate(call, kept)

    def _newly(self, kept: Any, call: Call, bad: list[tuple[int, str]]) -> bool:
        """Whether something is NaN, or infinite where nothing that was passed in is."""
        return any(kind != INFINITE for _, kind in bad) or not any(True for _ in _odd(kept))

    def _evaluate(self, call: Call, kept: Any) -> None:
        from traindx_tools.on_jax.nonfinite.origin import search
        from traindx_tools.on_jax.rules import j101_nonfinite_origin, j502_integer_overflow
        from traindx_tools.on_jax.tracing import trace

        fn = call.watched
        try:
            found = search(trace(fn if fn.kind == "jit" else fn.inner, *kept))
        except Exception as error:  # noqa: BLE001 - what cannot be evaluated by itself costs the origin, not the run
            say(f"call {call.step} of {fn.name} could not be evaluated: {type(error).__name__}: {error}")
            return
        if not found.origins or (self._arm and found.origins[0].candidate.kind == ARGUMENT):
            return  # it went wrong before this pass began to look: the next pass begins earlier
        self._done = True
        for wrapped in found.overflows:
            for finding in j502_integer_overflow.check(wrapped, fn.name):
                self.scene.recorder.finding(finding)
        origin = replace(found.origins[0], call=call.number, step=call.step, rank=self.scene.recorder.rank)
        for finding in j101_nonfinite_origin.check(origin):
            self.scene.recorder.finding(finding)
            say(finding.statement)


def _odd(tree: Any) -> Iterator[tuple[int, str]]:
    import jax

    for i, leaf in enumerate(jax.tree_util.tree_leaves(tree)):
        kind = kind_of(leaf) if hasattr(leaf, "dtype") and measurable(leaf) else FINITE
        if kind:
            yield i, kind


def _copied(tree: Any) -> Any:
    import jax

    return jax.tree_util.tree_map(lambda x: x.copy() if isinstance(x, jax.Array) else x, tree)
