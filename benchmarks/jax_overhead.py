"""What the live instruments cost a JAX program: the median step time against no instrument, in one process, in turns.

    python benchmarks/jax_overhead.py [--rounds N] [--steps N]

A flax transformer (2 layers, width 64, sequence 32, batch 8) with AdamW of optax, and an MLP whose step takes about a
millisecond; one thread. Beside the always-on set: `jax_debug_nans` and `checkify` with float checks. The variants take
turns round by round; each round gives the ratio of its median step to that of the bare steps around it, and the median
of the rounds is printed. Steps wait for their loss, as training loops that print do.
"""

from __future__ import annotations

import os

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import argparse
import contextlib
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen
from jax.experimental import checkify

TARGET = 1.03
WARM_UP = 10
Loop = Callable[[int], float]


class Transformer(linen.Module):
    """A small decoder."""

    layers: int = 2
    width: int = 64
    vocabulary: int = 200

    @linen.compact
    def __call__(self, ids: Any) -> Any:
        h = linen.Embed(self.vocabulary, self.width)(ids)
        mask = linen.make_causal_mask(ids)
        for _ in range(self.layers):
            h = h + linen.SelfAttention(4)(linen.LayerNorm()(h), mask=mask)
            h = h + linen.Dense(self.width)(jax.nn.gelu(linen.Dense(4 * self.width)(linen.LayerNorm()(h))))
        return linen.Dense(self.vocabulary)(linen.LayerNorm()(h))


class Mlp(linen.Module):
    """Three layers."""

    @linen.compact
    def __call__(self, x: Any) -> Any:
        for width in (128, 128):
            x = jax.nn.relu(linen.Dense(width)(x))
        return linen.Dense(10)(x)


def training(model: Any, x: Any, y: Any) -> tuple[Callable[..., Any], Any, Any]:
    """The train step, not compiled, and its first state."""
    tx = optax.adamw(1e-3)
    params = model.init(jax.random.key(0), x)
    first = (params, tx.init(params))

    def step(params: Any, opt: Any, x: Any, y: Any) -> Any:
        def loss_fn(p: Any) -> Any:
            return optax.softmax_cross_entropy_with_integer_labels(model.apply(p, x), y).mean()

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, opt = tx.update(grads, opt, params)
        return optax.apply_updates(params, updates), opt, loss

    return step, first, (x, y)


def timed(call: Callable[..., Any], first: Any, batch: Any, steps: int) -> float:
    """The median seconds of a step."""
    params, opt = first
    times = []
    for index in range(steps + WARM_UP):
        start = time.perf_counter()
        params, opt, loss = call(params, opt, *batch)
        float(loss)
        if index >= WARM_UP:
            times.append(time.perf_counter() - start)
    return statistics.median(times)


@contextlib.contextmanager
def instruments(*names: str) -> Iterator[None]:
    """Our probes, attached to this process."""
    from traindx_tools.live.session import close_session, open_session
    from traindx_tools.live.settings import Settings
    from traindx_tools.on_jax.attachment import attach, detach

    with tempfile.TemporaryDirectory() as folder:
        attach(open_session(Settings(folder, names)))
        try:
            yield
        finally:
            close_session()
            detach()


def checked(step: Callable[..., Any]) -> Callable[..., Any]:
    """The step under checkify with float checks, its error thrown in each step."""
    inner = jax.jit(checkify.checkify(step, errors=checkify.float_checks))

    def call(*args: Any) -> Any:
        error, out = inner(*args)
        error.throw()
        return out

    return call


def measure(step: Callable[..., Any], first: Any, batch: Any, rounds: int,
            steps: int) -> tuple[float, dict[str, float]]:
    """The bare step in seconds and the ratio of each variant."""
    bare = jax.jit(step)
    with_checks = checked(step)
    ratios: dict[str, list[float]] = {}
    base: list[float] = []
    for _ in range(rounds):
        for name in ("none (again)", "traindx sentinel", "traindx always on", "jax_debug_nans", "checkify"):
            before = timed(bare, first, batch, steps)
            if name.startswith("traindx"):
                with instruments("nonfinite" if name.endswith("sentinel") else "always"):
                    here = timed(jax.jit(step), first, batch, steps)
            elif name == "jax_debug_nans":
                with jax.debug_nans(True):
                    here = timed(bare, first, batch, steps)
            else:
                here = timed(with_checks if name == "checkify" else bare, first, batch, steps)
            after = timed(bare, first, batch, steps)
            ratios.setdefault(name, []).append(2 * here / (before + after))
            base += [before, after]
    return statistics.median(base), {name: statistics.median(found) for name, found in ratios.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=40)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    ids = jnp.asarray(rng.integers(0, 200, (8, 32)), jnp.int32)
    works = {"flax transformer": training(Transformer(), ids, ids),
             "mlp": training(Mlp(), jnp.asarray(rng.normal(size=(64, 64)), jnp.float32),
                             jnp.asarray(rng.integers(0, 10, 64), jnp.int32))}
    print(f"jax {jax.__version__}, {jax.devices()[0].device_kind}, one thread")
    missed = False
    for name, (step, first, batch) in works.items():
        bare, ratios = measure(step, first, batch, options.rounds, options.steps)
        print(f"{name}: bare step {1e3 * bare:.2f} ms")
        for variant, ratio in ratios.items():
            print(f"  {variant:20} {ratio:.3f}")
            missed |= variant == "traindx always on" and name == "flax transformer" and ratio > TARGET
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
