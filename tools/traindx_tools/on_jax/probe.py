"""What one JAX instrument implements: the moments of a process, each a method that does nothing by default.

The attachment (`attachment.py`) sees every call of a jitted function and of an eager `grad` or `value_and_grad`. A
probe that raises is switched off with one line and never again called. A probe never changes a value, never calls or
traces the user's function, keeps no arguments and no large outputs beyond a call, and reads only what has arrived.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from traindx_tools.finding import Finding
    from traindx_tools.live.recorder import Recorder
    from traindx_tools.on_jax.paths.marked import Marks
    from traindx_tools.on_jax.watched import Watched


@dataclass
class Scene:
    """What is shared by the probes of a process."""

    recorder: Recorder
    options: dict[str, Any] = field(default_factory=dict)
    facts: list[str] = field(default_factory=list)
    """What probes say of the program at its end, a sentence each; nothing of it is judged."""


@dataclass
class Call:
    """One call from outside any trace. `number`: of all such calls in this process; `step`: of this function."""

    watched: Watched
    number: int
    step: int
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    output: Any = None
    leaves: list[Any] = field(default_factory=list)
    """The output's leaves."""


@dataclass(frozen=True)
class Mapped:
    """One call of what `jax.vmap` made, from outside any trace. `in_axes`, `out_axes` as they were given."""

    function: Any
    in_axes: Any
    out_axes: Any
    args: tuple[Any, ...]
    output: Any
    place: tuple[str, int] | None


class JaxProbe:
    """One instrument. `name` is what `--probe` takes; `always_on` ones run unless told otherwise."""

    name: str = ""
    always_on: bool = False
    on_request: bool = False
    """Costs so much time that "all" does not stand for it: it is asked for by its own name."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene

    def made(self, watched: Watched) -> None:
        """A function is jitted."""

    def compiled(self, call: Call, jaxpr: Any) -> None:
        """A call compiled its function for a signature; the closed jaxpr. Its arguments may be gone already."""

    def key_used(self, use: str, key: Any, place: tuple[str, int] | None) -> None:
        """A function of `jax.random` is called from outside any trace."""

    def converted(self, before: Any, after: Any, place: tuple[str, int] | None) -> None:
        """A column or a table of numbers has become an array of jax."""

    def loss_called(self, name: str, shapes: tuple[tuple[int, ...], ...], place: tuple[str, int] | None) -> None:
        """A loss of optax was called with arrays of these shapes, also within a trace."""

    def schedule_made(self, function: Callable[[Any], Any], place: tuple[str, int] | None) -> None:
        """An optimizer of optax was told to scale its updates by a function of their count."""

    def mapped(self, call: Mapped) -> None:
        """An eager `vmap` has returned."""

    def before_call(self, call: Call) -> None:
        """A function is about to be called; only probes with `looks_before` are asked."""

    looks_before = False

    def marked(self, marks: Marks) -> None:
        """A gradient was marked while it was traced; only where a probe with `marks_gradients` is there."""

    marks_gradients = False

    def after_call(self, call: Call) -> None:
        """A function has returned: its outputs may still be on their way."""

    def failed(self, error: BaseException) -> Iterable[Finding]:
        """The program ends with this error: what the probe knows about it."""
        return ()

    def finish(self) -> Iterable[Finding]:
        """The program ends, well or not: what the probe saw and has not written yet."""
        return ()
