"""A line for the training loop that logs what the log of a run lacks."""

from __future__ import annotations

from collections.abc import Container

from traindx.offered import Ground

LOGGED = (("loss", "the loss"), ("grad_norm", "the gradient norm"), ("learning_rate", "the learning rate"))
"""What a log should hold for most faults to be told apart, the most telling first."""


def log_line(ground: Ground, absent: Container[str]) -> str:
    """A print of the step and of what is absent, behind `backward()`; "" where the code has no names for it."""
    names = ground.names
    loss, optimizer = names.name_for("loss"), names.name_for("optimizer")
    step = next((n for n in ("step", "global_step", "it", "iteration") if n in names.names), None)
    if "torch" not in names.modules or None in (loss, optimizer, step):
        return ""
    norm = f"sum(p.grad.norm() ** 2 for g in {optimizer}.param_groups for p in g['params'] if p.grad is not None)"
    parts = {"loss": f"loss {{{loss}.item():.6g}}", "grad_norm": f"grad_norm {{{norm} ** 0.5:.6g}}",
             "learning_rate": f"lr {{{optimizer}.param_groups[0]['lr']:.3g}}"}
    told = " ".join(text for name, text in parts.items() if name in absent)
    return f'print(f"step {{{step}}} {told}", flush=True)'
