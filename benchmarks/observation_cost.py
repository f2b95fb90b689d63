"""What observing a training costs: ratios of step times with the default probes to bare ones, all in one run.

    python benchmarks/observation_cost.py [--pairs N] [--only NAME] [--snapshot]

Small models (an MLP, a flax step of a millisecond) and larger ones: a residual CNN on images of 32x32, a transformer of
51 million parameters, a flax transformer. "early": every probe is told every moment, as in the first 500 steps after
a dozen that are looked at more closely; the small torch model is measured after these 500 as well. Blocks with and
without the probes take turns, and on a CPU the clock is the time that this process computed, so that a busy machine
counts little; "none" is the bare step against itself: the noise. `--snapshot` adds the probe that keeps each step. The
larger ones may cost 10 % a step: exit code 1 where one costs more (its lower quartile, so that noise alone does not say
so).
"""

from __future__ import annotations

import argparse
import signal
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import torch
from torch import nn
from torch_overhead import (
    SETTLED,
    WARM_UP,
    Cost,
    Toggle,
    Variant,
    Work,
    cost,
    instruments,
    keep_memory,
    nothing,
    seconds,
)

LIMIT = 1.10
SMALL_BLOCK = 16
JAX_STEPS = 10
LARGE = 1_000_000
"""Parameters from which a model counts as larger."""


class Block(nn.Module):
    """Two convolutions with batch norm, and what came in."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
                                  nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x + self.body(x))


def mlp() -> Work:
    """0.5 million parameters; about 15 ms a step."""
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 256))
    x, y = torch.randn(256, 256), torch.randn(256, 256)
    return Work("mlp", model, lambda: nn.functional.mse_loss(model(x), y), settles=True)


def cnn() -> Work:
    """1.2 million parameters, 8 blocks, 4 images."""
    parts: list[nn.Module] = [nn.Conv2d(3, 64, 3, padding=1), *(Block(64) for _ in range(8)), nn.MaxPool2d(2),
                              nn.Conv2d(64, 256, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                              nn.Linear(256, 1600)]
    model = nn.Sequential(*parts)
    x, y = torch.randn(4, 3, 32, 32), torch.randint(0, 1600, (4,))
    return Work("cnn", model, lambda: nn.functional.cross_entropy(model(x), y))


def transformer() -> Work:
    """51 million parameters: 12 layers of width 512, 12,500 tokens; 2 sequences of 32."""
    layer = nn.TransformerEncoderLayer(512, 8, 2048, dropout=0.1, batch_first=True)
    model = nn.Sequential(nn.Embedding(12_500, 512), nn.TransformerEncoder(layer, 12, enable_nested_tensor=False),
                          nn.Linear(512, 12_500))
    ids = torch.randint(0, 12_500, (2, 32))
    return Work("transformer", model, lambda: nn.functional.cross_entropy(
        model(ids)[:, :-1].flatten(0, 1), ids[:, 1:].flatten()))


MODELS = {"mlp": mlp, "cnn": cnn, "transformer": transformer}


def variants(work: Work, snapshot: bool) -> dict[str, tuple[AbstractContextManager[Toggle], int]]:
    """What is measured of a model, and the steps before it."""
    found: dict[str, tuple[AbstractContextManager[Toggle], int]] = {
        "none": (nullcontext(Toggle()), 1), "default probes, early": (instruments("always"), WARM_UP)}
    if work.settles:
        found["default probes"] = instruments("always"), SETTLED
    if snapshot:
        found["--snapshot"] = instruments("always", "snapshot"), WARM_UP
    return found


def torch_costs(make: Callable[[], Work], pairs: int, snapshot: bool) -> bool:
    """Prints the rows of one model; whether one costs too much."""
    missed = False
    work = make()
    count = sum(p.numel() for p in work.model.parameters())
    block = SMALL_BLOCK if work.settles else 1
    seconds(work, block, nothing)
    bare = seconds(work, 2 * block, nothing) / (2 * block)
    for label, (context, warm_up) in variants(work, snapshot).items():
        variant: Variant = context, nothing
        found = cost(work, variant, pairs, block, 2 * block if work.settles else 1, warm_up)
        low, middle, high = statistics.quantiles(found.pairs, n=4)
        print(row(work.name, count, bare, label, middle, low, high, found), flush=True)
        missed |= label.startswith("default") and count >= LARGE and low > LIMIT
    return missed


def row(name: str, count: int, bare: float, label: str, middle: float, low: float, high: float, found: Cost) -> str:
    """One line of the table."""
    return (f"| {name} | {count / 1e6:.1f} | {1e3 * bare:.1f} | {label} | {middle:.3f} | {low:.3f} to {high:.3f} | "
            f"{found.with_it / found.bare:.3f} |")


def jax_costs(pairs: int, snapshot: bool) -> bool:
    """The same of two flax steps, which wait for their loss; blocks of ten."""
    import jax
    import jax.numpy as jnp
    import jax_overhead as flax
    import numpy as np

    rng = np.random.default_rng(0)
    ids = jnp.asarray(rng.integers(0, 200, (8, 32)), jnp.int32)
    works = {"flax transformer": flax.training(flax.Transformer(layers=2, width=256), ids, ids),
             "flax mlp": flax.training(flax.Mlp(), jnp.asarray(rng.normal(size=(64, 64)), jnp.float32),
                                       jnp.asarray(rng.integers(0, 10, 64), jnp.int32))}
    missed = False
    for name, (step, first, batch) in works.items():
        count = sum(x.size for x in jax.tree_util.tree_leaves(first[0]))
        bare = jax.jit(step)
        jax_seconds(bare, first, batch)
        probes = {"none": (), "default probes": ("always",), **({"--snapshot": ("always", "snapshot")} if snapshot
                                                                else {})}
        for label, names in probes.items():
            with flax.instruments(*names) if names else nullcontext():
                other = jax.jit(step) if names else bare
                jax_seconds(other, first, batch)
                spent = [(jax_seconds(bare, first, batch), jax_seconds(other, first, batch)) for _ in range(pairs)]
            found = Cost([b / a for a, b in spent], sum(b for _, b in spent), sum(a for a, _ in spent))
            low, middle, high = statistics.quantiles(found.pairs, n=4)
            print(row(name, count, found.bare / pairs / JAX_STEPS, label, middle, low, high, found), flush=True)
            missed |= label.startswith("default") and count >= LARGE and low > LIMIT
    return missed


def jax_seconds(call: Callable[..., Any], first: Any, batch: Any) -> float:
    """Of a block of steps, as this process computed them."""
    params, opt = first
    start = time.process_time()
    for _ in range(JAX_STEPS):
        params, opt, loss = call(params, opt, *batch)
        float(loss)
    return time.process_time() - start


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=12)
    parser.add_argument("--only", choices=[*MODELS, "jax"], action="append")
    parser.add_argument("--snapshot", action="store_true")
    options = parser.parse_args()
    keep_memory()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    print(f"CPU, one thread, torch {torch.__version__}\n\n| model | million parameters | bare step, ms | probes "
          "| ratio | quartiles | of all time |\n|---|---|---|---|---|---|---|", flush=True)
    missed = False
    for name, make in MODELS.items():
        if options.only is None or name in options.only:
            missed |= torch_costs(make, options.pairs, options.snapshot)
    if options.only is None or "jax" in options.only:
        try:
            missed |= jax_costs(options.pairs, options.snapshot)
        except ImportError as error:
            print(f"jax: {error}", file=sys.stderr)
    return int(missed)


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends it without a word
    raise SystemExit(main())
