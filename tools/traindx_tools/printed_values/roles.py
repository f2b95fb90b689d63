"""Roles of values in training, and the names of calls and attributes that give or keep them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from traindx_tools.knowledge.tables import words

LOSS, TERM, RATE, NORM, SCALE = "loss", "loss_term", "learning_rate", "grad_norm", "loss_scale"
ACCURACY, HITS, STEP, EPOCH = "accuracy", "hits", "step", "epoch"
BACKENDS = frozenset({"accelerator", "fabric", "self", "engine", "model_engine", "booster", "strategy", "trainer"})
"""Receivers whose `backward` takes the loss as its argument."""
CARRY = words("roles.toml", "carry")
"""Methods and attributes that give the same quantity in another form."""
WRAP = words("roles.toml", "wrap")
"""Functions whose first argument keeps its meaning."""
LOSS_CALL = re.compile(r"(?:\w*cross_?entropy\w*|\w*_loss|nll_loss|kl_div|l1_loss|ctc_loss)(?:_with_logits)?\w*")
RATE_CALLS = frozenset({"get_last_lr", "get_lr", "current_lr"})
NORM_CALLS = words("roles.toml", "norms")
SCHEDULES = re.compile(r"\w*_schedule|join_schedules|\w*ExponentialDecay|CosineDecay\w*")
EVALUATES = re.compile(r"(?:^|_)(?:eval\w*|valid\w*|val|test|dev|held_?out)(?:_|$)", re.IGNORECASE)
TRAINING_DATA = re.compile(r"(?:^|[^a-z])(?:train\w*|trn|tr)(?:[^a-z]|$)", re.IGNORECASE)
WITHOUT_GRADIENTS = frozenset({"no_grad", "inference_mode"})
GATHERS = frozenset({"append", "update", "add", "update_state", "add_", "extend"})
COUNT = frozenset({STEP, EPOCH})
MEASURED = frozenset({LOSS, TERM, ACCURACY, HITS})
"""Meanings that differ between training and held-out data."""


@dataclass(frozen=True)
class Meaning:
    """What a value is, and whether it was measured on held-out data."""

    role: str
    held_out: bool = False
