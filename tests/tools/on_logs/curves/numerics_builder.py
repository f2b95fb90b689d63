"""Runs built by hand: `series("loss", [...])` and `run(...)` with as little ceremony as a log line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_logs.run import Note, Run, Series

RULES = (
    "l101_nonfinite", "l102_gradient_explosion", "l103_gradient_vanishing", "l104_gradient_zero",
    "l105_loss_scale_collapse", "l106_divergence", "l107_spike", "l108_loss_magnitude", "l109_zero_count_at_onset",
    "l110_gradient_imbalance",
    "l111_impossible_value", "l112_brief_spike", "l113_relation_breaks", "l114_counter_goes_back", "l115_unknown_names",
    "l116_updates_skipped",
    "l301_lr_zero", "l302_lr_restart", "l303_lr_geometric_decay", "l304_lr_per_epoch_step_confusion",
    "l305_lr_no_warmup", "l306_lr_wrong_pace", "l307_lr_extreme", "l308_lr_constant_though_scheduled",
    "l309_lr_warmup_never_ends", "l310_lr_turns_again", "l311_lr_not_as_configured", "l312_lr_zero_stretch",
    "l401_memory_growth", "l402_data_bound", "l403_stalled", "l404_throughput_decay", "l405_pauses",
    "l701_rank_disagreement", "l702_rank_missing",
)


def series(name: str, values: Iterable[float], *, step: Sequence[float] | str | None = "auto", every: int = 1,
           epoch: Sequence[float] | None = None, time: Sequence[float] | None = None, group: str = "train",
           rank: int | None = None, source: str = "log.txt", first_line: int = 1) -> Series:
    """A series; `step="auto"` counts every, 2 * every, ...; `step=None` numbers nothing."""
    y = np.asarray(list(values), dtype=np.float64)
    n = len(y)
    nothing = np.full(n, np.nan)
    steps = np.arange(1, n + 1) * float(every) if isinstance(step, str) else nothing if step is None else np.asarray(
        step, dtype=np.float64)
    return Series(name=name, original=name, group=group, source=source, values=y, step=steps,
                  epoch=nothing if epoch is None else np.asarray(epoch, dtype=np.float64),
                  time=nothing if time is None else np.asarray(time, dtype=np.float64),
                  line=np.arange(first_line, first_line + n, dtype=np.int64), rank=rank)


def run(*found: Series, **kw: Any) -> Run:
    """A run of these series."""
    return Run(series=found, **kw)


def note(kind: str, text: str, line: int, *, source: str = "log.txt", rank: int | None = None) -> Note:
    return Note(kind, text, source, line, rank=rank)


def check_of(module: str) -> Callable[[Run], Iterator[Finding]]:
    check: Callable[[Run], Iterator[Finding]] = import_module(f"traindx_tools.on_logs.curves.{module}").check
    return check


def findings(r: Run, *modules: str) -> list[Finding]:
    """What these rules (all of the numerics, learning-rate, resource and rank rules by default) find."""
    return [f for m in modules or RULES for f in check_of(m)(r)]


def serious(r: Run, *modules: str) -> list[Finding]:
    """The findings above INFO."""
    return [f for f in findings(r, *modules) if f.severity is not Severity.INFO]
