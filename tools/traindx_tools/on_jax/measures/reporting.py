"""`report`: scalars of a compiled step go to the run's record, one unordered transfer an interval.

All values are stacked into one array on the device; `io_callback(ordered=False)` under a `cond` sends it in one step of
an interval and the step does not wait for it. The callback only puts numbers into a queue: the probe `reports` writes
them and judges codebooks (J801) between two calls.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from traindx_tools.live.session import current_session

Report = tuple[tuple[str, ...], Any, Any]
"""Names, the step and the stacked values as the runtime gave them: arrays that may still be on their way."""
WAITING: deque[Report] = deque(maxlen=4096)
"""Reports that the probe has not read yet, of any thread of the runtime."""
TRACED: list[tuple[str, ...]] = []
"""The names of each report that was compiled in."""


def report(step: Any, values: Mapping[str, Any], *, every: int = 100) -> None:
    """Sends scalars to the run's record in each step that `every` divides. `step`: an integer scalar of the trace.

    Works under jit, scan and inside a loss that is differentiated: gradients do not see it. Without `traindx run`
    nothing is compiled in. Under vmap the interval cannot be kept (a cond becomes a select): report outside of it.
    Raises ValueError for an interval below 1 and for values that are no scalars.
    """
    if every < 1:
        raise ValueError(f"every is a number of steps of at least 1, got {every}")
    if not values or current_session() is None:
        return
    import jax.numpy as jnp
    from jax import lax
    from jax.experimental import io_callback

    names = tuple(values)
    odd = [n for n in names if jnp.shape(values[n]) != ()]
    if odd:
        raise ValueError(f"report takes scalars, got {odd[0]} of shape {jnp.shape(values[odd[0]])}: reduce it first")
    TRACED.append(names)
    stacked = lax.stop_gradient(jnp.stack([jnp.asarray(values[n], jnp.float32) for n in names]))
    number = lax.stop_gradient(jnp.asarray(step))

    def arrived(at: Any, numbers: Any) -> None:
        WAITING.append((names, at, numbers))  # not read here: on a CPU with few threads that would wait for itself

    def send(at: Any, numbers: Any) -> None:
        io_callback(arrived, None, at, numbers, ordered=False)

    lax.cond(number % every == 0, send, lambda at, numbers: None, number, stacked)
