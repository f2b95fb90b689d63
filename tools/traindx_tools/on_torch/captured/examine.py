"""Asks a kept call every question, within a bound of time and memory, and says which could not be asked and why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from traindx_tools.on_torch.captured.call import KeptCall, NotKept
from traindx_tools.on_torch.captured.modes import modes_differ
from traindx_tools.on_torch.captured.owned import samples_of_rows
from traindx_tools.on_torch.captured.padding import padding
from traindx_tools.on_torch.captured.questions import affine, future, samples, unused
from traindx_tools.on_torch.captured.randomness import random_in_evaluation
from traindx_tools.on_torch.captured.sandbox import unnoticed
from traindx_tools.on_torch.captured.trial import Trial
from traindx_tools.on_torch.captured.twice import twice
from traindx_tools.on_torch.captured.unsaved import plain_state, unsaved

MOST_BYTES = 2**30
"""Of the parameters and buffers that are copied."""

QUESTIONS: dict[str, Callable[[Trial], Any]] = {
    "later positions": future, "other samples": samples, "arguments": unused, "padding": padding, "affine": affine,
    "dropout in evaluation": random_in_evaluation,
    "state outside of the checkpoint": lambda trial: unsaved(trial, trial.call.initial, plain_state(trial.model)),
    "the mode": modes_differ, "one batch twice": twice,
}

_OF_SAMPLES = frozenset({"later positions", "arguments", "padding", "affine"})


@dataclass
class Answers:
    """By question: what was found, or None where all is well; why others could not be asked."""

    path: str
    found: dict[str, Any] = field(default_factory=dict)
    not_asked: dict[str, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """One line for the facts of the program."""
        good = [q for q, a in self.found.items() if a is None]
        parts = [f"checked on a copy of one call of {self.path}: nothing wrong with {', '.join(good)}"] if good else []
        parts += [f"not checked: {', '.join(self.not_asked)} ({next(iter(self.not_asked.values()))})"] \
            if self.not_asked else []
        return "; ".join(parts)


def examine(call: KeptCall) -> Answers:
    """Runs a copy of the model some ten times on a few samples. The program cannot tell afterwards."""
    answers = Answers(call.path)
    try:
        small_enough(call.model)
        with unnoticed(call.model) as set_back:
            trial = Trial(call, set_back)
            for question, ask in QUESTIONS.items():
                try:
                    answers.found[question] = ask(trial) if call.owner is None else _of_parts(question, trial)
                except NotKept as why:
                    answers.not_asked[question] = str(why)
    except NotKept as why:
        answers.not_asked.update((q, str(why)) for q in QUESTIONS if q not in answers.found)
    return answers


def _of_parts(question: str, trial: Trial) -> Any:
    """Rows that are parts of samples: what exchanges or shifts samples is not asked of them."""
    if question in _OF_SAMPLES:
        raise NotKept("its rows are parts of samples")
    return samples_of_rows(trial) if question == "other samples" else QUESTIONS[question](trial)


def small_enough(model: torch.nn.Module) -> None:
    """Raises NotKept for a model that cannot be copied, or not without filling its device."""
    tensors = [*model.parameters(), *model.buffers()]
    size = sum(t.numel() * t.element_size() for t in tensors)
    if size > MOST_BYTES:
        raise NotKept("the model is too large to be copied")
    devices = {t.device for t in tensors}
    if any(d.type not in ("cpu", "cuda") for d in devices):
        raise NotKept("the model is on a device that cannot be measured")
    if any(type(t) not in (torch.Tensor, torch.nn.Parameter) for t in tensors):
        raise NotKept("the model is sharded or quantised")
    for device in devices:
        if device.type == "cuda" and torch.cuda.mem_get_info(device)[0] < 4 * size + 2**29:
            raise NotKept("the device has too little free memory")
