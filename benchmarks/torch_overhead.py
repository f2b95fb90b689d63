"""What the live instruments cost: the median step time against no instrument, in one process, in turns.

    python benchmarks/torch_overhead.py [--rounds N] [--steps N] [--device cpu|cuda] [--model mlp|transformer]

A transformer (6 layers, width 256, sequence 128, batch 8) and an MLP (256-512-512-256, batch 256), AdamW, one thread on
a CPU. Beside the always-on set: autograd's anomaly mode, transformers' DebugUnderflowOverflow and the norm that
`clip_grad_norm_(...).item()` reads in every step. The variants take turns round by round; each round gives the ratio of
its median step to that of the bare steps around it, and the median of the rounds is printed. On a CUDA device the loop
also runs under `torch.cuda.set_sync_debug_mode("error")`: an instrument that waited for the device would fail.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

TARGET = 1.03
WARM_UP = 3


@dataclass
class Work:
    """A model with its optimizer and a step."""

    name: str
    model: nn.Module
    loss: Callable[[], Tensor]

    def __post_init__(self) -> None:
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4)

    def step(self, after_backward: Callable[[nn.Module], None]) -> None:
        self.optimizer.zero_grad()
        self.loss().backward()
        after_backward(self.model)
        self.optimizer.step()


def transformer(device: str) -> Work:
    layer = nn.TransformerEncoderLayer(256, 8, 1024, dropout=0.0, batch_first=True)
    model = nn.Sequential(nn.Embedding(1000, 256), nn.TransformerEncoder(layer, 6, enable_nested_tensor=False),
                          nn.Linear(256, 1000)).to(device)
    ids = torch.randint(0, 1000, (8, 128), device=device)
    return Work("transformer", model, lambda: nn.functional.cross_entropy(model(ids).flatten(0, 1), ids.flatten()))


def mlp(device: str) -> Work:
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 256))
    model = model.to(device)
    x, y = torch.randn(256, 256, device=device), torch.randn(256, 256, device=device)
    return Work("mlp", model, lambda: nn.functional.mse_loss(model(x), y))


@contextlib.contextmanager
def instruments(*names: str) -> Iterator[None]:
    """Our probes, attached to this process."""
    from traindx_tools.live.session import close_session, open_session
    from traindx_tools.live.settings import Settings
    from traindx_tools.on_torch.attachment import attach, detach

    with tempfile.TemporaryDirectory() as folder:
        attach(open_session(Settings(folder, names)))
        try:
            yield
        finally:
            close_session()
            detach()


@contextlib.contextmanager
def underflow_overflow(model: nn.Module) -> Iterator[None]:
    from transformers.debug_utils import DebugUnderflowOverflow

    watcher = DebugUnderflowOverflow(model)
    try:
        yield
    finally:
        for module in model.modules():
            module._forward_hooks.clear()
        del watcher


def nothing(_: nn.Module) -> None:
    return


def clipped(model: nn.Module) -> None:
    nn.utils.clip_grad_norm_(model.parameters(), 1e9).item()


def variants(work: Work) -> dict[str, tuple[Callable[[], AbstractContextManager[object]], Callable[[nn.Module], None]]]:
    bare = contextlib.nullcontext
    return {
        "none (again)": (bare, nothing),
        "traindx sentinel": (lambda: instruments("nonfinite"), nothing),
        "traindx always on": (lambda: instruments("always"), nothing),
        "clip_grad_norm_().item()": (bare, clipped),
        "anomaly mode": (lambda: torch.autograd.set_detect_anomaly(True), nothing),
        "DebugUnderflowOverflow": (lambda: underflow_overflow(work.model), nothing),
    }


def median_step(work: Work, steps: int, after: Callable[[nn.Module], None]) -> float:
    """Seconds; on a CPU those that this process computed, so that a busy machine does not count."""
    on_device = next(work.model.parameters()).is_cuda
    clock = time.perf_counter if on_device else time.process_time
    times = []
    for index in range(steps + WARM_UP):
        start = clock()
        work.step(after)
        if on_device:
            torch.cuda.synchronize()
        if index >= WARM_UP:
            times.append(clock() - start)
    return statistics.median(times)


def no_synchronisation(work: Work) -> None:
    """Raises RuntimeError where an instrument waits for the device. Reads only what was computed a step before."""
    with instruments("always"):
        for _ in range(WARM_UP):
            work.step(nothing)
        torch.cuda.synchronize()
        torch.cuda.set_sync_debug_mode("error")
        try:
            for _ in range(20):
                work.step(nothing)
        finally:
            torch.cuda.set_sync_debug_mode("default")


def measure(work: Work, rounds: int, steps: int) -> dict[str, float]:
    ratios: dict[str, list[float]] = {name: [] for name in variants(work)}
    for _ in range(rounds):
        for name, (context, after) in variants(work).items():
            before = median_step(work, steps, nothing)
            with context():
                here = median_step(work, steps, after)
            later = median_step(work, steps, nothing)
            ratios[name].append(2 * here / (before + later))
    return {name: statistics.median(found) for name, found in ratios.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--model", choices=["mlp", "transformer"], action="append")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    missed = False
    name = torch.cuda.get_device_name() if options.device == "cuda" else "CPU, one thread"
    print(f"{name}, torch {torch.__version__}")
    for make in (mlp, transformer):
        if options.model and make.__name__ not in options.model:
            continue
        work = make(options.device)
        if options.device == "cuda":
            no_synchronisation(work)
            print("no synchronisation with the device")
        bare = median_step(work, options.steps, nothing)
        print(f"{work.name}: bare step {1e3 * bare:.2f} ms")
        for variant, ratio in measure(work, options.rounds, options.steps).items():
            print(f"  {variant:26} {ratio:.3f}")
            missed |= variant == "traindx always on" and ratio > TARGET
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
