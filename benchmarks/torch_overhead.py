"""What the live instruments cost: the step time against no instrument, in one process, in turns.

    python benchmarks/torch_overhead.py [--pairs N] [--block N] [--device cpu|cuda] [--model mlp|transformer]

A transformer (6 layers, width 256, sequence 128, batch 8) and an MLP (256-512-512-256, batch 256), AdamW, one thread on
a CPU. Beside the always-on set and the norm of every parameter's gradient in every step: autograd's anomaly mode,
transformers' DebugUnderflowOverflow and the norm that `clip_grad_norm_(...).item()` reads in every step.

Short blocks of steps with and without an instrument take turns (bare, instrument, instrument, bare), so that what else
the machine does falls on both; the median of the pairs' ratios is printed, with the quarter and three-quarter points,
and beside it the ratio of all time spent, which holds the few steps that are looked at more closely. An instrument is
attached from its first to its last block and is only taken out of the way in between; the block after it comes or
goes is not measured, and glibc keeps the memory that it has, so that neither side pays for pages. On a CPU the clock
is the time that this process computed. On a CUDA device the loop also runs under
`torch.cuda.set_sync_debug_mode("error")`: an instrument that waited for the device would fail. Two
models take about four minutes on a quiet machine.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

TARGETS = {"traindx always on": 1.03, "traindx gradient norms": 1.10}
SETTLE = {"traindx snapshot": 10}
"""Blocks that are not measured after an instrument came or went: its copies move where the program's memory lies."""
WARM_UP, SETTLED = 16, 500
"""Steps with an instrument that are not measured: the first dozen are looked at more closely than the first 500, and
those more often than what follows."""
EARLY = "traindx always on, early"
SHORT, AGAIN = 16, 32
"""Steps of a block, and not measured before it, where steps are short: putting an instrument in or out changes
`nn.Module`, and the interpreter needs some steps before it has adapted to that."""


@dataclass
class Work:
    """A model with its optimizer and a step."""

    name: str
    model: nn.Module
    loss: Callable[[], Tensor]
    settles: bool = False
    """Its steps are short enough to measure it after `SETTLED` of them."""

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
    return Work("mlp", model, lambda: nn.functional.mse_loss(model(x), y), settles=True)


Variant = tuple[AbstractContextManager["Toggle"], Callable[[nn.Module], None]]


class Toggle:
    """An instrument that is there from the beginning and is put in and out of the way."""

    def on(self) -> None:
        """It sees the steps that follow."""

    def off(self) -> None:
        """It sees none."""


class Probes(Toggle):
    """Our probes, attached to this process."""

    def __init__(self, names: tuple[str, ...], options: Mapping[str, object]) -> None:
        self._names, self._options = names, options

    def __enter__(self) -> Probes:
        from traindx_tools.live.session import open_session
        from traindx_tools.live.settings import Settings
        from traindx_tools.on_torch.attachment import attach

        self._folder = tempfile.TemporaryDirectory()
        made = attach(open_session(Settings(self._folder.name, self._names, options=self._options)))
        assert made is not None
        self._made = made
        return self

    def __exit__(self, *_: object) -> None:
        from traindx_tools.live.session import close_session
        from traindx_tools.on_torch.attachment import detach

        close_session()
        detach()
        self._folder.cleanup()

    def on(self) -> None:
        self._made.patch()

    def off(self) -> None:
        self._made.unpatch()


class Anomaly(Toggle):
    def on(self) -> None:
        torch.autograd.set_detect_anomaly(True)

    def off(self) -> None:
        torch.autograd.set_detect_anomaly(False)


class UnderflowOverflow(Toggle):
    def __init__(self, model: nn.Module) -> None:
        self._model = model

    def on(self) -> None:
        from transformers.debug_utils import DebugUnderflowOverflow

        self._watcher = DebugUnderflowOverflow(self._model)

    def off(self) -> None:
        for module in self._model.modules():
            module._forward_hooks.clear()


def instruments(*names: str, **options: object) -> Probes:
    """Our probes by name."""
    return Probes(names, options)


def nothing(_: nn.Module) -> None:
    return


def clipped(model: nn.Module) -> None:
    nn.utils.clip_grad_norm_(model.parameters(), 1e9).item()


def variants(work: Work) -> dict[str, Variant]:
    bare = contextlib.nullcontext(Toggle())
    return {
        "none (again)": (bare, nothing),
        "traindx sentinel": (instruments("nonfinite"), nothing),
        EARLY: (instruments("always"), nothing),
        "traindx always on": (instruments("always"), nothing),
        "traindx gradient norms": (instruments("gradients", gradients_every=1), nothing),
        "traindx snapshot": (instruments("snapshot"), nothing),
        "clip_grad_norm_().item()": (bare, clipped),
        "anomaly mode": (contextlib.nullcontext(Anomaly()), nothing),
        "DebugUnderflowOverflow": (contextlib.nullcontext(UnderflowOverflow(work.model)), nothing),
    }


def seconds(work: Work, steps: int, after: Callable[[nn.Module], None]) -> float:
    """Of so many steps; on a CPU those that this process computed, so that a busy machine counts little."""
    on_device = next(work.model.parameters()).is_cuda
    clock = time.perf_counter if on_device else time.process_time
    start = clock()
    for _ in range(steps):
        work.step(after)
    if on_device:
        torch.cuda.synchronize()
    return clock() - start


@dataclass(frozen=True)
class Cost:
    """Ratios of step times to bare ones."""

    pairs: list[float]
    with_it: float
    bare: float

    def __str__(self) -> str:
        low, middle, high = statistics.quantiles(self.pairs, n=4)
        return f"{middle:.3f}   ({low:.3f} to {high:.3f})   all time {self.with_it / self.bare:.3f}"


def cost(work: Work, variant: Variant, pairs: int, block: int, settle: int, warm_up: int) -> Cost:
    """Blocks in turns: bare, with it, with it, bare, and so on; the first steps of a block are not measured."""
    context, after = variant
    spent: dict[bool, list[float]] = {True: [], False: []}
    with context as toggle:
        toggle.on()
        seconds(work, warm_up, after)
        toggle.off()
        for index in range(2 * pairs):
            there = index % 4 in (1, 2)
            if there:
                toggle.on()
            seconds(work, settle, after if there else nothing)
            spent[there].append(seconds(work, block, after if there else nothing))
            if there:
                toggle.off()
        toggle.on()
    toggle.off()
    ratios = [a / b for a, b in zip(spent[True], spent[False], strict=True)]
    return Cost(ratios, sum(spent[True]), sum(spent[False]))


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


KEEP_MEMORY = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(2**32)}
"""Of glibc: freed memory stays with the process. What an instrument holds would otherwise change what is given back."""


def keep_memory() -> None:
    """Starts this program again under KEEP_MEMORY, which is read once, at the start."""
    if sys.platform == "linux" and any(os.environ.get(k) != v for k, v in KEEP_MEMORY.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **KEEP_MEMORY})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--block", type=int, default=1, help="steps of a block, 16 times as many for the MLP")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--model", choices=["mlp", "transformer"], action="append")
    parser.add_argument("--only", help="variants whose names hold this")
    options = parser.parse_args()
    keep_memory()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    missed = False
    name = torch.cuda.get_device_name() if options.device == "cuda" else "CPU, one thread"
    print(f"{name}, torch {torch.__version__}; median ratio of {options.pairs} pairs (quartiles), and of all time")
    for make in (mlp, transformer):
        if options.model and make.__name__ not in options.model:
            continue
        work = make(options.device)
        if options.device == "cuda":
            no_synchronisation(work)
            print("no synchronisation with the device")
        block = options.block * (SHORT if work.settles else 1)
        seconds(work, block, nothing)
        print(f"{work.name}: bare step {1e3 * seconds(work, block, nothing) / block:.2f} ms", flush=True)
        for label, variant in variants(work).items():
            if options.only is None or options.only in label:
                settled = label == "traindx always on" and work.settles
                settle = max(SETTLE.get(label, 1) * block, AGAIN if work.settles else 0)
                found = cost(work, variant, options.pairs, block, settle, SETTLED if settled else WARM_UP)
                missed |= statistics.median(found.pairs) > TARGETS.get(label, 1e9)
                print(f"  {label:26} {found}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends it without a word
    raise SystemExit(main())
