"""Whose fault it is where a BatchNorm's running statistics and its batches differ: the statistics' or the batches'.

In an evaluation two things can be wrong: the running statistics describe no batch at all, or they describe the training
batches and what is evaluated is another kind of input. The training batches tell them apart: where the statistics fit
those, they are right, and a layer that the same batch reaches in both modes sees other inputs in evaluation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traindx_tools.on_torch.rules.activations import Courses, Floats, NormCourse

FAR, LOG_RATIO, STEPS, VALUES, AFTER, AFTER_EVALUATED = 2.0, float(np.log(10.0)), 4, 32, 50, 8
FITS, APART, FEWEST = 0.5, 3.0, 2
GIVEN_FAR, GIVEN_RATIO, GIVEN_VALUES = 4.0, float(np.log(25.0)), 256
"""Of statistics that were loaded and stay: standard deviations, logarithm of the ratio of variances (5 times the
spread), and values a channel that one look is enough of. Another domain moves them by less."""


@dataclass(frozen=True)
class Unfit:
    """A BatchNorm whose running statistics do not describe what it was given.

    `fits_training`: whether they describe the training batches of the same time; None where too few were looked at.
    """

    course: NormCourse
    distance: float
    log_ratio: float
    fits_training: bool | None = None
    training_distance: float | None = None

    @property
    def of_inputs(self) -> bool:
        """Whether the inputs are another kind: statistics that fit training, in a layer that no mode reaches before."""
        return self.course.evaluated and self.fits_training is True and self.course.same_input


def unfit(seen: Courses) -> tuple[Unfit, ...]:
    """The layers that do not fit, in the order of the calls; those seen in training first."""
    trained = {c.path: c for c in seen.norms if not c.evaluated and not c.given}
    return tuple(_judged(c, trained.get(c.path)) for c in seen.norms if not c.given and _bad(c))


def given_unfit(seen: Courses) -> tuple[Unfit, tuple[NormCourse, ...]] | None:
    """The first layer, in the order of the calls, whose loaded statistics are not those of what it gets; and the
    layers that are like it. What follows it gets what it makes, and may be right."""
    given = [c for c in seen.norms if c.given and (len(c.steps) >= STEPS or c.values >= GIVEN_VALUES)]
    bad = [c for c in given if c.values * len(c.steps) >= GIVEN_VALUES
           and (np.median(c.distance) > GIVEN_FAR or np.median(c.log_ratio) > GIVEN_RATIO)]
    if not bad:
        return None
    c = bad[0]
    return Unfit(c, float(np.median(c.distance)), float(np.median(c.log_ratio))), tuple(given)


def late(c: NormCourse) -> np.ndarray:
    """Which of the looks count: the running statistics start anywhere."""
    return np.array(c.steps) > (AFTER_EVALUATED if c.evaluated else AFTER)


def _bad(c: NormCourse) -> bool:
    counted = late(c)
    if counted.sum() < STEPS or c.values < VALUES:
        return False
    return bool(np.median(c.distance[counted]) > FAR or np.median(c.log_ratio[counted]) > LOG_RATIO)


def _judged(c: NormCourse, trained: NormCourse | None) -> Unfit:
    counted = late(c)
    distance, ratio = float(np.median(c.distance[counted])), float(np.median(c.log_ratio[counted]))
    if not c.evaluated:
        return Unfit(c, distance, ratio, False, distance)
    there = np.array(trained.steps) > AFTER_EVALUATED if trained is not None else np.zeros(0, dtype=bool)
    if trained is None or there.sum() < FEWEST:
        return Unfit(c, distance, ratio)
    near, wide = _median(trained.distance, there), _median(trained.log_ratio, there)
    fits = near < FITS * FAR and wide < FITS * LOG_RATIO and (distance > APART * near or ratio > APART * wide)
    same = trained.same_input
    return Unfit(NormCourse(**{**vars(c), "same_input": same}), distance, ratio, fits, near)


def _median(values: Floats, which: np.ndarray) -> float:
    return float(np.median(values[which]))
