"""Out of memory, explained: what the memory was made of when the allocation failed.

The message of an OOM names the allocation that failed, which is rarely the one at fault. What matters is the sum: do
parameters, gradients and optimizer state alone nearly fill the device (no batch size helps), do activations (a smaller
batch, checkpointing), or did memory grow step by step up to here (something is kept)?
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING

from traindx_tools.finding import Bearing, Finding, Location, Severity, Value
from traindx_tools.rules import Rule, Threshold

if TYPE_CHECKING:
    from traindx_tools.on_torch.memory.breakdown import MemoryBreakdown

MIB = 2**20

FIXED_SHARE = 0.8
GREW = 1.1

RULE = Rule(
    id="T804",
    name="out-of-memory",
    title="Out of memory: what it was made of",
    severity=Severity.CRITICAL,
    sees="the error that ends the program, with parameters, gradients, optimizer state and the allocator's figures",
    matters="the fix depends on which kind fills the device; the failing line does not tell",
    alike=("a variable that keeps graphs (T801): memory grows each step",
           "another process on the same device: reserved by this one is far below the device's size"),
    confirm=("`nvidia-smi` while it runs: which processes hold the device",
             "`torch.cuda.memory_summary()` before the failing step"),
    thresholds={
        "fixed share": Threshold(FIXED_SHARE, "of the peak", "beyond it no batch size helps"),
        "growth": Threshold(GREW, "x over the run", "sagemaker-debugger: GPU memory growth 10 %"),
    },
)


def check(message: str, breakdown: MemoryBreakdown, step: int, history: Mapping[int, float], saved: str, source: str,
          rank: int) -> Iterator[Finding]:
    """`history`: memory in MiB by step. `saved`: the largest activations by module, or ""."""
    kind = _kind(breakdown, history)
    values = list(history.values())
    grown = f"; memory went from {values[0]:,.0f} to {values[-1]:,.0f} MiB" if kind == "grew" else ""
    largest = f"; saved for backward: {saved}" if saved else ""
    statement = (f"out of memory at step {step}: {_KINDS[kind]} ({breakdown.in_words()}{grown}{largest}). "
                 f"The error: {' '.join(message.split())[:160]}")
    measured: dict[str, Value] = {
        "kind": kind, "parameters_mib": round(breakdown.parameters / MIB, 1),
        "gradients_mib": round(breakdown.gradients / MIB, 1), "optimizer_mib": round(breakdown.optimizer / MIB, 1)}
    if breakdown.peak is not None:
        measured["peak_mib"] = round(breakdown.peak / MIB, 1)
    yield RULE.finding(statement, Location(step=step, rank=rank), source, measured=measured,
                       bearing=Bearing.SIGN if kind == "unknown" else Bearing.CAUSE)


_KINDS = {
    "grew": "memory grew step by step up to it, so something is kept",
    "fixed": "parameters, gradients and optimizer state alone fill it, so no batch size helps",
    "activations": "activations and temporaries are most of it, so a smaller batch or checkpointing helps",
    "unknown": "the allocator's figures are not known on this device",
}


def _kind(breakdown: MemoryBreakdown, history: Mapping[int, float]) -> str:
    values = list(history.values())
    if len(values) >= 4 and values[-1] >= GREW * values[1] and all(b >= a for a, b in pairwise(values[1:])):
        return "grew"
    if breakdown.peak is None or breakdown.other is None:
        return "unknown"
    return "fixed" if breakdown.counted >= FIXED_SHARE * breakdown.peak else "activations"
