"""The few warnings that imply a fault. Healthy runs print many others: those are left out altogether.

One table: name, what the line must contain (cheap), and the pattern where containing is not enough.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from traindx_tools.on_logs.run import Frame
from traindx_tools.on_logs.tracebacks.frames import is_library

_HEAD = re.compile(r"(?P<file>[^\s:][^:\n]{0,500}?\.py|<ipython-input-[^>]{1,100}>|<stdin>):(?P<line>\d{1,9}): "
                   r"(?P<type>\w{0,60}Warning): (?P<message>.*)")


@dataclass(frozen=True)
class WarningSignature:
    """A warning that matters. `name` becomes the event's type."""

    name: str
    needs: str
    pattern: re.Pattern[str] | None = None


def _signature(name: str, needs: str, pattern: str | None = None) -> WarningSignature:
    return WarningSignature(name, needs, re.compile(pattern) if pattern else None)


SIGNATURES = (
    _signature("scheduler-before-optimizer", "Detected call of `lr_scheduler.step()` before `optimizer.step()`"),
    _signature("target-size-broadcast", "Using a target size (", r"different to the input size"),
    _signature("implicit-softmax-dimension", "Implicit dimension choice for"),
    _signature("no-input-requires-grad", "None of the inputs have requires_grad=True"),
    _signature("gradient-size-mismatch", "grad.sizes() != param.sizes()"),
    _signature("gradient-stride-mismatch", "Grad strides do not match bucket view strides"),
    _signature("scalar-gather", "Was asked to gather along dimension 0, but all input tensors were scalars"),
    _signature("sequence-longer-than-limit", "Token indices sequence length is longer than", r"\(\d+ > \d+\)"),
    _signature("weights-newly-initialized", "newly initialized", r"(?:Some weights|weights) of .* newly initialized"),
    _signature("weights-not-used", "were not used when initializing"),
    _signature("non-full-backward-hook", "Using a non-full backward hook"),
    _signature("leaked-semaphores", "resource_tracker: There appear to be", r"leaked \w+ objects"),
    _signature("loss-type-unrecognised", "`loss_type=", r"`loss_type=.*` was set in the config but it is unrecognised"),
    _signature("find-unused-without-need", "find_unused_parameters=True was specified in DDP constructor"),
    _signature("mean-of-empty", "Mean of empty slice"),
    _signature("degrees-of-freedom", "degrees of freedom is <= 0"),
    _signature("numpy-nonfinite", "encountered in", r"\b(?:invalid value|overflow|divide by zero) encountered in \w+"),
    _signature("gradient-overflow", "radient overflow", r"overflow\.? +[Ss]kipping step|skipping step: gradient"),
    _signature("gradient-overflow", "OVERFLOW!", r"OVERFLOW! .*Skipping step"),
    _signature("nonfinite-gradients-skipped", "nonfinite grad", r"(?i)non-?finite grad\w*.*skip"),
    _signature("dataloader-workers-excess", "This DataLoader will create"),
    _signature("no-grad-access", "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed"),
    _signature("undefined-metric", "UndefinedMetricWarning"),
    _signature("int64-truncated", "Explicitly requested dtype", r"Explicitly requested dtype .*int64.* truncated"),
    _signature("scatter-dtype", "scatter inputs have incompatible types"),
    _signature("recompile-limit", "torch._dynamo hit config."),
    _signature("donated-unusable", "Some donated buffers were not usable"),
)
NEEDS = tuple(dict.fromkeys(s.needs for s in SIGNATURES))


def warning_of(text: str) -> tuple[str, str, tuple[Frame, ...]] | None:
    """Name, message and the warned-of place (if the line names one) of a warning that matters, else None."""
    for signature in SIGNATURES:
        if signature.needs in text and (signature.pattern is None or signature.pattern.search(text) is not None):
            head = _HEAD.match(text.lstrip())
            if head is None:
                return signature.name, text.strip(), ()
            frame = Frame(head["file"], int(head["line"]), "", library=is_library(head["file"]))
            return signature.name, head["message"].strip(), (frame,)
    return None
