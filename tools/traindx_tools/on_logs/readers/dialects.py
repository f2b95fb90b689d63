"""By which lines the log of a well-known trainer is recognised, so that the report can name it.

The general line reader reads all of these; what is peculiar to one stands in its tables.
"""

from __future__ import annotations

import re

from traindx_tools.on_logs.readers.names import GROUPS, VALIDATION

_MAX_LOOK = 600
_SIGNATURES: tuple[tuple[str, re.Pattern[str]], ...] = tuple((name, re.compile(pattern)) for name, pattern in (
    ("hf_trainer_log", r"^\{'(?:loss|eval_loss|train_runtime)': .*'epoch': "),
    ("nanogpt", r"^iter \d+: loss [-\d.naif]+, time [\d.]+ms"),
    ("nanogpt", r"^step \d+: train loss [-\d.naif]+, val loss "),
    ("megatron", r"iteration\s+\d+/\s*\d+ \| consumed samples: .*elapsed time per iteration \(ms\): "),
    ("deepspeed", r"step=\d+, skipped=\d+, lr=\[|RunningAvgSamplesPerSec=|steps: \d+ loss: .* iter time \(s\): "),
    ("torchtitan", r"step:\s+\d+\s+loss:\s+[-\d.naif]+\s.*(?:tps|mfu): "),
    ("torchtune", r"^Step \d+ \| \w+:[-\d.naif]+ "),
    ("fairseq", r"epoch \d{3}:\s+\d+ / \d+ .*wps=|epoch \d{3} \| .*\bwps \d"),
    ("keras", r"^\s*\d+/(?:\d+|Unknown)\s+(?:[━╸╺]+|\[[=>.]+\]).* - \w+: "),
    ("keras", r"^\d+/\d+ - \d+m?s - .*?\w+: "),
    ("composer", r"^\[epoch=\d+\](?:\[batch=\d+/\d+\])?:"),
    ("maxtext", r"completed step: \d+, seconds: .*TFLOP/s/device"),
    ("mmengine", r"Epoch\((?:train|val|test)\)\s+\[\s*\d+\]\[\s*\d+/\d+\]|Iter\(train\) \[\s*\d+/\d+\]"),
    ("detectron2", r"eta: .*iter: \d+\s+total_loss: "),
    ("nemo", r"epoch \d+, iteration \d+/\d+ \| "),
    ("tqdm", r"\d+%\s?\|.*\| \d+/\d+ \["),
))


def of_line(text: str) -> str | None:
    """The trainer whose print a line is, None for none in particular."""
    text = text[:_MAX_LOOK]
    return next((name for name, pattern in _SIGNATURES if pattern.search(text)), None)


_EVALUATION = re.compile(r"^\s*\*\s+(?:Acc|Prec)@1\b|^Saving dict for global step \d|^Pseudo dice \[")
"""How an evaluation is told by the ImageNet example of PyTorch and all that grew from it, by TensorFlow's estimators
and by nnU-Net."""


def group_of(logger: str | None, text: str) -> str | None:
    """The group that a logger's name or a peculiar line states."""
    return VALIDATION if _EVALUATION.match(text) else GROUPS.get((logger or "").lower())
