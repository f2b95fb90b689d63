"""What was seen and is no fault: courses that a run of this kind has, told by what the run itself recorded.

Each reason asks for a fact of the recording, not for a name in the person's words. Where none holds, "".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import numpy as np

from traindx_tools.on_logs.curves.learning import is_adversarial, is_reinforcement, main_loss
from traindx_tools.on_logs.curves.shapes import number, track
from traindx_tools.on_logs.run import Run
from traindx_tools.symptom import measure
from traindx_tools.symptom.answer import SymptomAnswer

_UNBOUNDED = re.compile(
    r"nll|elbo|likelihood|density|log_?prob|critic|wgan|wasserstein|cosine|sim|siam|byol|policy|actor|"
    r"entropy|ctc"
)


def reason_for(answer: SymptomAnswer, run: Run) -> str:
    """Why what was seen is to be expected in this run, in one clause; "" where nothing recorded says so."""
    for reason in _REASONS.get(answer.symptom.direction, ()):
        told = reason(answer, run)
        if told:
            return told
    return ""


def _adversaries(answer: SymptomAnswer, run: Run) -> str:
    if not is_adversarial(run):
        return ""
    subject = answer.symptom.subject
    if subject is not None and subject.family not in ("adversary", "loss", "run"):
        return ""
    last = [run.first(n) for n in ("discriminator_loss", "generator_loss")]
    finite = [s for s in last if s is not None and s.finite.all()]
    balanced = len(finite) == 2 and all(abs(float(np.median(s.values[-max(len(s) // 5, 1) :]))) > 0.05 for s in finite)
    return (
        (
            "two adversaries pull their losses against each other, so neither falls; neither has won here "
            f"({number(float(finite[0].values[-1]))} and {number(float(finite[1].values[-1]))} at the end)"
        )
        if balanced
        else ""
    )


def _schedule_restarts(answer: SymptomAnswer, run: Run) -> str:
    """The learning rate goes up where the loss does."""
    rate, place = run.first("learning_rate"), answer.symptom.place
    step = answer.values.get("step", place.low if place.kind == "at" and place.unit == "step" else None)
    t = track(rate)
    if t is None or not isinstance(step, (int, float)) or len(t) < 4:
        return ""
    ups = np.flatnonzero(np.diff(t.y) > 0.2 * np.abs(t.y[:-1])) + 1
    near = [i for i in ups if i > 1 and abs(float(t.x[i]) - step) <= max(0.03 * float(t.x[-1] - t.x[0]), 2.0)]
    if not near or t.y[near[0] - 1] > 0.5 * float(t.y.max()):
        return ""
    i = near[0]
    return (
        (
            f"the learning rate restarts there, from {number(float(t.y[i - 1]))} to {number(float(t.y[i]))}: a warm "
            "restart raises the loss for a while"
        )
        if len(ups) <= 0.2 * len(t) and _recovers(run, float(t.x[i]))
        else ""
    )


def _recovers(run: Run, step: float) -> bool:
    """Whether the loss ends below where it was before that step: its best there, or its level in the tenth before."""
    t = track(main_loss(run))
    if t is None:
        return False
    before, after = t.y[t.x < step], t.y[t.x >= step]
    if not len(before) or not len(after):
        return False
    usual = float(np.median(before[-max(len(before) // 10, 1) :]))
    return float(np.median(after[-max(len(after) // 10, 1) :])) <= max(1.05 * float(before.min()), usual)


def _converged(answer: SymptomAnswer, run: Run) -> str:
    """It moved before, it stays at its best, and the learning rate has come down or the score is near its top."""
    loss = main_loss(run)
    whole = track(loss)
    if whole is None or len(whole) < 8 or "since" not in answer.values:
        return ""
    first, last, spread = measure.ends(whole.y)
    best = float(np.min(whole.y))
    if not (first > 0 and last < 0.7 * first and last <= best + 4 * spread + 0.05 * abs(best)):
        return ""
    rate = track(run.first("learning_rate"))
    if rate is not None and float(rate.y[-1]) < 0.05 * float(rate.y.max()):
        return (
            f"it fell from {number(first)} to {number(last)}, and the learning rate has come down to "
            f"{number(float(rate.y[-1]))}: what has converged moves no more"
        )
    return ""


def _reinforced(answer: SymptomAnswer, run: Run) -> str:
    """Losses of a policy or a critic have no level that means anything, where the reward rises."""
    subject = answer.symptom.subject
    reward = track(run.first("reward"))
    if (
        not is_reinforcement(run)
        or reward is None
        or (subject is not None and subject.family not in ("loss", "number", "run"))
    ):
        return ""
    first, last, spread = measure.ends(reward.y)
    if last <= first + 2 * spread:
        return ""
    return (
        f"the loss of a policy or a critic has no level that means anything, and the reward rises from {number(first)} "
        f"to {number(last)}"
    )


def _brief(answer: SymptomAnswer, run: Run) -> str:
    """A spike that is back at once, once or twice in a run that goes on to its best."""
    t = track(main_loss(run))
    z, step = answer.values.get("times_scatter"), answer.values.get("step")
    if t is None or not answer.symptom.asked or not isinstance(z, float) or not isinstance(step, float):
        return ""
    return "it is back at once and the run goes on to its best" if _recovers(run, step) and z < 60 else ""


def _warm_up(answer: SymptomAnswer, run: Run) -> str:
    """A learning rate that rises and then falls to its end is a schedule."""
    subject, t = answer.symptom.subject, track(run.first("learning_rate"))
    if subject is None or subject.key != "learning_rate" or t is None or len(t) < 8:
        return ""
    peak = int(np.argmax(t.y))
    up, down = np.diff(t.y[: peak + 1]), np.diff(t.y[peak:])
    loss = track(main_loss(run))
    learns = loss is not None and measure.ends(loss.y)[1] < 0.7 * measure.ends(loss.y)[0]
    smooth = bool((up >= -1e-15).all() and (down <= 1e-15).all()) and 0 < peak < 0.5 * len(t)
    return (
        (
            f"the rate rises to {number(float(t.y[peak]))} at {measure.at(t, peak)} and falls to "
            f"{number(float(t.y[-1]))}: "
            "a warm-up and a decay"
        )
        if smooth and learns
        else ""
    )


def _unbounded(answer: SymptomAnswer, run: Run) -> str:
    """A loss that is a density, a similarity or a difference may be negative, where it is that by its name."""
    loss = next((s for s in run.series if s.original == answer.metric.split(" ")[-1]), None)
    if loss is None or not _UNBOUNDED.search(f"{loss.name} {loss.original}".lower()):
        return ""
    return f"{loss.original} is no distance: a density, a similarity or a difference of scores may be below 0"


def _scale_search(answer: SymptomAnswer, run: Run) -> str:
    """A gradient norm that is not finite in skipped steps, where every loss is finite and the scale is no ruin."""
    skipped = [n for n in run.notes if n.kind == "step_skipped"]
    scale, loss = run.first("loss_scale"), track(main_loss(run))
    losses = [s for s in run.series if "loss" in s.name and s.name != "loss_scale"]
    if not (skipped or scale is not None) or loss is None or not all(s.finite.all() for s in losses):
        return ""
    first, last, _ = measure.ends(loss.y)
    kept = scale is None or float(scale.values[-1]) >= 1.0
    if not kept or last >= 0.7 * first:
        return ""
    return (
        f"a dynamic loss scale is found by raising it until a step overflows; that step is skipped, every loss "
        f"is finite and the loss falls from {number(first)} to {number(last)}"
    )


def _levels_off(answer: SymptomAnswer, run: Run) -> str:
    """Memory that grows at first and stays for the second half of the record."""
    since = answer.values.get("levels_off")
    if answer.symptom.subject is None or answer.symptom.subject.family != "memory" or not isinstance(since, float):
        return ""
    return "caches, workers and the allocator fill at first; for the second half of the record it does not grow"


def _grad_only(answer: SymptomAnswer, run: Run) -> str:
    return _scale_search(answer, run) if "grad" in answer.metric or "norm" in answer.metric else ""


_Reason = Callable[[SymptomAnswer, Run], str]
_REASONS: Mapping[str, tuple[_Reason, ...]] = {
    "still": (_adversaries, _converged), "stays": (_adversaries, _converged), "oscillates": (_adversaries, _reinforced),
    "unsettled": (_adversaries,), "rises": (_schedule_restarts, _levels_off, _warm_up, _adversaries, _reinforced),
    "falls": (_warm_up,),
    "jumps": (_schedule_restarts,), "spikes": (_schedule_restarts, _brief, _reinforced),
    "negative": (_unbounded, _adversaries),
    "is": (_adversaries,), "high": (_adversaries, _reinforced), "explodes": (_reinforced,),
    "overflow": (_scale_search,), "nonfinite": (_grad_only,),
}  # fmt: skip
