"""The learning rate: scaled, or without its schedule."""

from __future__ import annotations

from traindx_tools.experiments.interventions.intervention import JAX, NUMBER, TORCH, Intervention, Setting

_LIVE = "traindx_tools.experiments.live.on_torch.groups"
_FIXED = "traindx_tools.experiments.live.on_torch.fixed_schedule"
_JAX = "traindx_tools.experiments.live.on_jax.updates"

INTERVENTIONS = (
    Intervention(
        "learning-rate", "each step with so many times its learning rate",
        changes="Each optimizer step is made with `times` the rate that program and schedule set for each group. In "
                "JAX `optax.apply_updates` (and that of equinox) adds `times` the updates.",
        keeps="The schedule and what it holds between steps: nothing is scaled twice, and logged rates are the "
              "program's own. Data, seeds, betas, and decay coefficients (a decay that is multiplied by the rate, as "
              "AdamW's, is scaled with it).",
        shows="Where a divergence goes at 0.1, steps were too large for this loss: the rate itself, or what makes "
              "gradients too large. Where a flat curve moves at 10, steps were too small.",
        cannot_tell="Whether the rate is wrong or the gradients are: a loss that is summed instead of averaged is "
                    "cured by a smaller rate as well. Weights that no torch optimizer moves are not reached.",
        frameworks=(TORCH, JAX), horizon=30,
        options=(Setting("times", "the factor", NUMBER, 0.1, least=0.0, most=1e6),),
        live={"torch": f"{_LIVE}:LearningRate", "jax": f"{_JAX}:LearningRate"}),
    Intervention(
        "schedule-fixed", "every step with one learning rate",
        changes="Each step is made with one rate: `value`, or else the peak of the schedule where it says one "
                "(OneCycleLR, LambdaLR, any of optax), its base (`initial_lr`), what the optimizer was made with, or "
                "the first rate; which of these is said. A schedule by hand that begins at 0 is held at its highest "
                "rate so far.",
        keeps="The schedule itself goes on and can be read by the program; it only has no effect.",
        shows="Where the symptom goes, the schedule did it: a warmup that never ends, a decay that comes too early, "
              "steps counted in another unit, a restart.",
        cannot_tell="Whether the rate is right: without a warmup the peak may be too large for the first steps; "
                    "`value` sets another one.",
        frameworks=(TORCH, JAX), horizon=50,
        options=(Setting("value", "the rate", NUMBER, least=0.0, most=1e6),),
        live={"torch": f"{_FIXED}:ScheduleFixed", "jax": f"{_JAX}:ScheduleFixed"}),
)
