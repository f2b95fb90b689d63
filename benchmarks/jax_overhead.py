"""What the live instruments cost a JAX program: the median step time against no instrument, in one process, in turns.

    python benchmarks/jax_overhead.py [--rounds N] [--steps N] [--model NAME]

A flax transformer (2 layers, width 64, sequence 32, batch 8) with AdamW of optax, and an MLP whose step takes about a
millisecond; one thread. Beside the always-on set: `jax_debug_nans` and `checkify` with float checks. Each variant takes
turns with the bare step in blocks; a block gives the ratio of its median step to that of the bare blocks around it,
and the median of the blocks is printed. Steps wait for their loss, as training loops that print do.
"""

from __future__ import annotations

import os

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import argparse
import contextlib
import signal
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


def block(call: Callable[..., Any], first: Any, batch: Any, steps: int) -> float:
    """The median seconds of a step, of some in a row."""
    params, opt = first
    times = []
    for _ in range(steps):
        start = time.perf_counter()
        params, opt, loss = call(params, opt, *batch)
        float(loss)
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


def ratio(bare: Callable[..., Any], other: Callable[..., Any], first: Any, batch: Any, rounds: int,
          steps: int) -> tuple[float, float]:
    """The bare step in seconds, and how much longer the other one takes: the median over blocks beside bare ones."""
    block(other, first, batch, WARM_UP)
    before, found, base = block(bare, first, batch, steps), [], []
    for _ in range(rounds):
        here = block(other, first, batch, steps)
        after = block(bare, first, batch, steps)
        found.append(2 * here / (before + after))
        base.append(after)
        before = after
    return statistics.median(base), statistics.median(found)


def variants(step: Callable[..., Any], bare: Callable[..., Any]) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Each variant's step; the instruments are attached while theirs is measured."""
    yield "none (again)", bare
    for name, probe in (("traindx sentinel", "nonfinite"), ("traindx always on", "always")):
        with instruments(probe):
            yield name, jax.jit(step)
    yield "jax_debug_nans", with_debug_nans(bare)
    yield "checkify", checked(step)


def with_debug_nans(bare: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        with jax.debug_nans(True):
            return bare(*args)

    return call


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--model", choices=["mlp", "flax transformer"], action="append")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    ids = jnp.asarray(rng.integers(0, 200, (8, 32)), jnp.int32)
    works = {"flax transformer": training(Transformer(), ids, ids),
             "mlp": training(Mlp(), jnp.asarray(rng.normal(size=(64, 64)), jnp.float32),
                             jnp.asarray(rng.integers(0, 10, 64), jnp.int32))}
    print(f"jax {jax.__version__}, {jax.devices()[0].device_kind}, one thread")
    missed = False
    for name in options.model or works:
        step, first, batch = works[name]
        bare = jax.jit(step)
        block(bare, first, batch, WARM_UP)
        for variant, call in variants(step, bare):
            base, found = ratio(bare, call, first, batch, options.rounds, options.steps)
            print(f"{name:18} {variant:18} {found:.3f}   (bare step {1e3 * base:.2f} ms)")
            missed |= variant == "traindx always on" and name == "flax transformer" and found > TARGET
    return 1 if missed else 0


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends it without a word
    raise SystemExit(main())
