"""Gradients are so small that nothing can be learned, though they are not exactly zero.

Either the whole gradient norm is next to nothing while the loss is still where it began, or one module's norm is next
to nothing while another's is alive (saturated activations, a very deep stack without normalisation, a loss scaled
down by mistake). A small gradient at the end of a run whose loss has fallen is convergence and is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.curves.outcomes import improved, main_loss
from traindx_tools.on_logs.curves.shapes import (
    Track,
    end_words,
    head_level,
    number,
    ratio,
    start_words,
    tail_level,
    track,
)
from traindx_tools.on_logs.run import Run
from traindx_tools.rules import Rule, Threshold

DEAD_MODULE, ALIVE = 1e-8, 1e-4
WHOLE = 1e-6
DEPTH_RATIO, DEPTH_SMALL = 1e-3, 1e-4
COLLAPSE = 1e-4
LEARNED = 0.1
LAYERS, DECADES, ORDERED = 4, 1e3, 0.5

RULE = Rule(
    id="L103",
    name="gradient-vanishing",
    title="Gradients vanish",
    severity=Severity.HIGH,
    sees="Gradient norms that are tiny while the loss is still near its start; modules that are tiny beside others.",
    matters="The weights behind a vanishing gradient stay at their initialisation however long the run lasts.",
    alike=("A norm that shrinks along with a loss that has fallen: convergence.",
           "A norm of exactly 0: a broken graph or a frozen part, see L104.",
           "A very small learning rate: gradients are then of normal size."),
    confirm=("Print the gradient norm of every module after one backward pass and look where it drops.",
             "Print mean, standard deviation and the saturated share of the activations in front of that place."),
    thresholds={
        "dead_module": Threshold(DEAD_MODULE, "norm of a module", "published debugging guides"),
        "whole": Threshold(WHOLE, "norm of all gradients", "mean absolute value below 1e-7 (sagemaker-debugger), times "
                           "the root of a hundred parameters: even a small model lies above"),
        "depth_ratio": Threshold(DEPTH_RATIO, "first module / last module, with the first below 1e-4", "AUTOTRAINER"),
        "collapse": Threshold(COLLAPSE, "end / start of the norm, loss unmoved", "arithmetic: four decades"),
        "layers": Threshold(LAYERS, "layers of one artifact", "four in order are so by chance once in twelve"),
        "decades": Threshold(DECADES, "largest / smallest layer", "three decades: more than parts of a net differ"),
        "ordered": Threshold(ORDERED, "of the steps from layer to layer, up minus down", "three of four go one way"),
        "learned": Threshold(LEARNED, "share of the starting loss", "a run that lost a tenth of its loss is learning"),
    },
)


def check(run: Run) -> Iterator[Finding]:
    """One finding for the whole norm, else one that names the modules."""
    whole = track(run.first("grad_norm", group="train"))
    if whole is not None and (found := _whole(run, whole)) is not None:
        yield found
        return
    yield from _modules(run)


def _whole(run: Run, t: Track) -> Finding | None:
    y = np.abs(t.y)
    loss = track(main_loss(run))
    if len(t) < 3 or loss is None or improved(loss) >= LEARNED or not (y > 0).any():
        return None
    typical, head, tail = float(np.median(y)), head_level(y), tail_level(y)
    small = 0 < typical < WHOLE
    collapsed = head > 0 and 0 < tail < COLLAPSE * head
    if not (small or collapsed) or (y == 0).mean() > 0.5:
        return None
    how = (f"grad_norm is {number(typical)} (median of {len(t)} records)" if small else
           f"grad_norm fell from {number(head)} to {number(tail)}")
    return RULE.finding(
        f"{how} while the {loss.series} stays at {end_words(loss)}, where it began at "
        f"{start_words(loss)}", t.at(0, -1), t.series.source, bearing=Bearing.SIGN,
        measured={"metric": "grad_norm", "median": typical, "first": head, "last": tail,
                  "scope": "whole", "from_start": small and head < WHOLE})


def _modules(run: Run) -> Iterator[Finding]:
    names = dict.fromkeys(s.name for s in run.series if s.name.startswith("grad_norm/"))
    tracks = [t for name in names if (t := track(run.first(name))) is not None and len(t) >= 3]
    if len(tracks) < 2:
        return
    levels = [float(np.median(np.abs(t.y))) for t in tracks]
    loudest = max(levels)
    dead = [(t, v) for t, v in zip(tracks, levels, strict=True) if 0 < v < DEAD_MODULE]
    faint = levels[0] < DEPTH_SMALL and 0 < ratio(levels[0], levels[-1]) < DEPTH_RATIO
    chosen = dead if dead and loudest > ALIVE else [(tracks[0], levels[0])] if faint and levels[0] > 0 else []
    if not chosen:
        return
    t, value = min(chosen, key=lambda pair: pair[1])
    loud = tracks[levels.index(loudest)].series.name
    yield RULE.finding(
        f"{t.series.name} is {number(value)} (median of {len(t)} records) while {loud} is {number(loudest)}; "
        f"{len(chosen)} of {len(tracks)} modules are like that", t.at(0, -1), t.series.source,
        bearing=Bearing.SIGN, severity=Severity.HIGH if dead else Severity.MEDIUM,
        measured={"metric": t.series.name, "module": t.series.name.partition("/")[2], "median": value,
                  "ratio": ratio(value, loudest), "modules": len(chosen), "scope": "module",
                  "by_depth": _by_depth(tracks)})


def _by_depth(tracks: Sequence[Track]) -> bool:
    """Whether the norms of one artifact's layers rise or fall in the order in which they are written, over decades.

    Parts of different scale are of any order; a gradient that vanishes on its way loses a factor a layer.
    """
    sources = [t.series.source for t in tracks]
    main = max(dict.fromkeys(sources), key=sources.count)
    levels = [float(np.median(np.abs(t.y))) for t in tracks if t.series.source == main]
    if len(levels) < LAYERS or min(levels) <= 0 or ratio(max(levels), min(levels)) < DECADES:
        return False
    steps = np.sign(np.diff(np.log(levels)))
    return abs(float(steps.mean())) >= ORDERED and {levels.index(min(levels)), levels.index(max(levels))} == {
        0, len(levels) - 1}
