"""The state of optimizer, schedule and scaler in a training checkpoint: missing, of other parameters, or counting
otherwise.

An optimizer's moments have the shapes of the parameters that it trains. Adam without moments in a checkpoint that has
counted steps was saved before or instead of the one that trained. Parameters without moments are frozen, or never got a
gradient, and only remarked; those that still are to the last digit what an initialiser draws were never loaded either
("frozen-fresh"). Moments of squares cannot be negative; those that are zero after ten steps had no gradient.
"""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_weights.checkpoint import OptimizerState
from traindx_tools.on_weights.initialisers import FEWEST, sharply_drawn
from traindx_tools.on_weights.moment_shapes import by_number, by_path
from traindx_tools.on_weights.networks import networks, parameters, trained_by
from traindx_tools.on_weights.parameter_names import names_of, shaped
from traindx_tools.on_weights.seen import Seen
from traindx_tools.on_weights.single_values import number_of
from traindx_tools.on_weights.statistics import Stats
from traindx_tools.on_weights.step_counts import apart
from traindx_tools.on_weights.tensor import Tensor
from traindx_tools.rules import Rule

RULE = Rule(
    id="W111",
    name="training-state",
    title="The training state does not fit the weights beside it",
    severity=Severity.HIGH,
    sees="Moments, step counts and groups of each optimizer, last rates of the schedule, the scaler's scale.",
    matters="A resumed run starts with moments of zero or of other parameters: the loss jumps.",
    alike=("optimizers without moments (plain SGD)", "parameters frozen on purpose", "layers unfrozen later"),
    confirm=("resume for some steps and look at the loss", "compare len(optimizer.state) with the parameters"),
)
_SQUARES = ("exp_avg_sq", "square_avg", "sum", "v")
_ITERATIONS = frozenset({"iter", "iteration", "it", "iterations", "update", "updates", "round"})
_FROM_ZERO = 1
"""Steps that a run has made more than it says where it counts them from zero."""
_STEP_NAMES = ("global_step", "step", "steps", "iteration", "iter", "num_steps", "trainer_step")
_PLANNED = re.compile(r"(?i)^(?:max|total|num|n|train\w*)_?(?:train\w*_)?(?:steps|iters|iterations|updates)$")
_ENOUGH = 10
_BEHIND, _SKIPPED = 0.95, 20
"""Share of the run's steps that an optimizer has made at least; steps that a scaler skips while it finds its scale."""


def check(seen: Seen) -> Iterator[Finding]:
    """Once a file."""
    if not seen.main:
        return
    for optimizer in seen.checkpoint.optimizers:
        yield from _fits(seen, optimizer)
        yield from _moments(seen, optimizer)
    if not seen.checkpoint.optimizers:
        yield from _paths(seen)
    yield from _absent(seen)
    yield from _counts(seen)
    yield from _behind(seen)
    yield from _schedule_behind(seen)
    yield from _rates(seen)
    yield from _scaler(seen)


def _finding(seen: Seen, where: str, statement: str, kind: str, severity: Severity | None = None,
             bearing: Bearing = Bearing.CAUSE, **measured: Any) -> Finding:
    return RULE.finding(f"{statement} in {seen.path}", Location(file=seen.path, module=where or "optimizer"), seen.path,
                        bearing=bearing, severity=severity, measured={"kind": kind, "name": where, **measured})


def _parameters(optimizer: OptimizerState) -> list[Any]:
    return [p for g in optimizer.groups for p in (g.get("params") or ())]


def _state_of(optimizer: OptimizerState, key: Any) -> Mapping[str, Any]:
    found = optimizer.state.get(key)
    return found if isinstance(found, Mapping) else {}


def _fits(seen: Seen, optimizer: OptimizerState) -> Iterator[Finding]:
    """Numbers and shapes of what the optimizer trains, against the weights."""
    given, weights = _parameters(optimizer), seen.parameters
    shapes = Counter(t.shape for t in weights)
    moments = {k: t for k in given if (t := shaped(_state_of(optimizer, k))) is not None}
    if not weights or not given:
        return
    if any(p is not seen.part for p in trained_by(seen, optimizer)):  # of another network in the file
        return
    held_there = Counter(t.shape for p in networks(seen) for t in parameters(p))
    strange = Counter(t.shape for t in moments.values()) - (held_there | Counter(
        {s: max(n, sum(x.shape == s for x in seen.checkpoint.tensors)) for s, n in shapes.items()}))
    kept = {t.shape for p in seen.checkpoint.parts if p.auxiliary for t in p.tensors.values() if t.floating}
    flat = any(len(t.shape) == 1 and (t.size > sum(w.size for w in weights) / 3 or t.shape in kept)
               for t in moments.values())
    if strange and not flat:  # ZeRO and fused optimizers keep one flat vector
        yield _of_other_shapes(seen, optimizer, moments, strange)
    elif len(optimizer.groups) == 1 and len(moments) == len(given) == len(weights):
        order = [k for k, w in zip(given, weights, strict=True) if moments[k].shape != w.shape]
        if order and len(order) <= len(given) // 2:
            weight = weights[given.index(order[0])]
            yield _finding(seen, optimizer.key, f"{len(order)} of the {len(given)} moments have another shape than "
                           f"the weight at their place: the first is {list(moments[order[0]].shape)} (parameter "
                           f"{order[0]}) for {weight.name} {list(weight.shape)}", "order", count=len(order))
    if len(given) > len(weights) + 2 and len(seen.checkpoint.parts) == 1 and not flat:
        yield _finding(seen, optimizer.key, f"the optimizer holds {len(given)} parameters and the file {len(weights)} "
                                            "weights",
                       "count", Severity.MEDIUM, Bearing.SIGN, given=len(given), weights=len(weights))


def _of_other_shapes(seen: Seen, optimizer: OptimizerState, moments: Mapping[Any, Tensor],
                     strange: Mapping[tuple[int, ...], int]) -> Finding:
    """The first such moment with its weight, where it can be told which that is."""
    count, of = sum(strange.values()), len(moments)
    named = by_number(optimizer, moments, seen.parameters)
    if not named:
        return _finding(seen, optimizer.key, f"{count} of the {of} moments of {optimizer.key or 'the optimizer'} are "
                        f"of shapes that the weights lack (such as {list(next(iter(strange)))})", "shapes", count=count,
                        moments=of)
    more = f"; {count} of the {of} moments are of shapes that the weights lack" if count > 1 else ""
    return _finding(seen, optimizer.key, f"{named[0].said()}{more}", "shapes", count=count, moments=of,
                    parameter=named[0].name)


def _paths(seen: Seen) -> Iterator[Finding]:
    """Moments in a tree beside the weights."""
    named, of = by_path(seen.checkpoint)
    if named:
        more = f"; so are those of {', '.join(m.name for m in named[1:4])} ({len(named)} of {of})" if named[1:] else ""
        yield _finding(seen, named[0].parameter, f"{named[0].said()}{more}", "shapes", count=len(named), moments=of,
                       parameter=named[0].name)


def _moments(seen: Seen, optimizer: OptimizerState) -> Iterator[Finding]:
    """Values and presence of the moments."""
    given = _parameters(optimizer)
    having = [k for k in given if _state_of(optimizer, k)]
    adaptive = any("betas" in g or "alpha" in g for g in optimizer.groups) or any(
        (g.get("momentum") or 0) for g in optimizer.groups)
    counted = _steps_told(seen)
    if adaptive and given and not having and counted is not None and counted[1] > 0:
        yield _finding(seen, optimizer.key, f"the optimizer keeps moments and has none, though {counted[0]} is "
                       f"{counted[1]:g}: it never stepped, or another one was saved", "empty")
    elif adaptive and having and len(having) < len(given) and (fresh := _fresh(seen, optimizer, having)):
        first = ", ".join(f"{s.name} ({why})" for s, why in fresh[:3])
        more = f" and {len(fresh) - 3} more" if len(fresh) > 3 else ""
        yield _finding(seen, optimizer.key, f"{len(given) - len(having)} of the {len(given)} parameters of the "
                       f"optimizer have no moments, and all weights among them still are what their initialiser "
                       f"draws: {first}{more}; {sum(s.size for s, _ in fresh):,} values were neither trained nor "
                       "loaded", "frozen-fresh", Severity.LOW, Bearing.SIGN, count=len(fresh))
    elif adaptive and having and len(having) < len(given):
        yield _finding(seen, optimizer.key, f"{len(given) - len(having)} of the {len(given)} parameters of the "
                                            "optimizer "
                       "have no moments: frozen, or never reached by a gradient", "partly", Severity.INFO, Bearing.SIGN)
    for one in seen.moments:
        if one.optimizer is optimizer:
            for name, stats in one.stats.items():
                if not (one.second is stats and one.first is not None and one.first.largest > 0 == stats.largest):
                    yield from _moment(seen, optimizer, one.key, name, stats)  # the others are told by W124


def _fresh(seen: Seen, optimizer: OptimizerState, having: Sequence[Any]) -> list[tuple[Stats, str]]:
    """The weights without moments with the initialiser that each is a draw of; none where one of them is no draw."""
    moved = set(having)
    names = {n for k, n in names_of(optimizer, seen.parameters).items() if k not in moved}
    still = [s for s in seen.weights if s.name in names and s.size >= FEWEST]
    drawn = [(s, told.name) for s in still if (told := sharply_drawn(s)) is not None]
    return drawn if len(drawn) == len(still) else []


def _moment(seen: Seen, optimizer: OptimizerState, key: Any, name: str, stats: Stats) -> Iterator[Finding]:
    where = f"{optimizer.key}.state.{key}.{name}".lstrip(".")
    step = number_of(_state_of(optimizer, key).get("step"))
    if stats.nan or stats.inf:
        yield _finding(seen, where, f"{name} of parameter {key} holds {stats.nan + stats.inf:,} values that are not "
                                    "finite",
                       "nonfinite")
    elif name in _SQUARES and stats.low < 0:
        yield _finding(seen, where, f"{name} of parameter {key}, a mean of squares, is {stats.low:.3g}", "negative")
    elif name == "exp_avg_sq" and stats.tensor.matrix and stats.constant and stats.low == 0 and (step or 0) >= _ENOUGH:
        yield _finding(seen, where, f"{name} of parameter {key} is zero after {step:g} steps: it never had a gradient",
                       "no-gradient", Severity.MEDIUM, Bearing.SIGN, step=step)


def _steps_told(seen: Seen) -> tuple[str, float] | None:
    """What the checkpoint itself counts: its step, else its epoch."""
    for wanted in (_STEP_NAMES, ("epoch", "last_epoch", "current_epoch")):
        for key, value in seen.checkpoint.values.items():
            number = number_of(value)
            if key.rpartition(".")[2] in wanted and number is not None:
                return key, number
    return None


def _optimizer_beside(path: str) -> bool:
    """Whether a file in the same folder is called as that of an optimizer."""
    try:
        names = os.listdir(os.path.dirname(path) or ".")
    except OSError:
        return False
    return any("optim" in n.lower() and n != os.path.basename(path) for n in names)


def _absent(seen: Seen) -> Iterator[Finding]:
    """A schedule or a scaler without the optimizer that they belong to, in a file that holds weights.

    Trainers write each part of a state to a file of its own.
    """
    if not seen.checkpoint.weights.tensors or _optimizer_beside(seen.path):
        return
    values = seen.checkpoint.values
    companions = [k for k in values if k.rpartition(".")[2] in ("last_epoch", "_last_lr", "growth_factor")]
    named = [k for k, v in values.items() if "optim" in k.lower() and v is None]
    if (companions or named) and not seen.checkpoint.optimizers and not any(p.auxiliary for p in seen.checkpoint.parts):
        why = f"{named[0]} is None" if named else f"{companions[0]} is there"
        yield _finding(seen, (named or companions)[0], f"no state of an optimizer is saved, though {why}", "absent",
                       Severity.MEDIUM, Bearing.SIGN)


def _several_each(told: tuple[str, float], steps: Iterable[float]) -> bool:
    """Whether every parameter made the same whole number of steps in each iteration, as PPO and GAN critics do."""
    made = set(steps)
    return told[0].rpartition(".")[2] in _ITERATIONS and len(made) == 1 and made.pop() % told[1] == 0


def _counts(seen: Seen) -> Iterator[Finding]:
    """Steps of the parameters, against each other and against what the file counts."""
    told = _steps_told(seen)
    for optimizer in seen.checkpoint.optimizers:
        found = {k: number_of(_state_of(optimizer, k).get("step")) for k in _parameters(optimizer)}
        steps = {k: s for k, s in found.items() if s is not None}
        if not steps:
            continue
        usual, count = Counter(steps.values()).most_common(1)[0]
        more = [k for k, s in steps.items() if told and told[0].rpartition(".")[2] in _STEP_NAMES
                and s > told[1] + _FROM_ZERO > 1]
        if more and told and not _several_each(told, steps.values()):
            yield _finding(seen, optimizer.key, f"parameter {more[0]} has made {steps[more[0]]:g} steps and {told[0]} "
                                                "is "
                           f"{told[1]:g}: {len(more)} of {len(steps)} count more than the run has made", "steps-beyond",
                           Severity.MEDIUM)
        others = [k for k, s in steps.items() if s != usual]
        if others and not more:
            single = len(others) == 1 and steps[others[0]] > usual
            modules = _modules_apart(seen, optimizer, steps, told)
            yield modules or _finding(
                seen, optimizer.key, f"{len(others)} of the {len(steps)} parameters have made another number of steps "
                f"than {usual:g} (parameter {others[0]}: {steps[others[0]]:g})", "steps-apart",
                Severity.MEDIUM if single and count > 2 else Severity.INFO, Bearing.SIGN)


def _modules_apart(seen: Seen, optimizer: OptimizerState, steps: Mapping[Any, float],
                   told: tuple[str, float] | None) -> Finding | None:
    """Whole modules with another count, by name: beside a step that the file names, a fault, but for what is design."""
    weights = seen.parameters
    names = names_of(optimizer, weights)
    found = apart({names[k]: s for k, s in steps.items() if k in names}, [w.name for w in weights],
                  frozenset(w.name for w in weights if w.matrix))
    if found is None:
        return None
    of_run = told is not None and told[0].rpartition(".")[2] in _STEP_NAMES
    own = ", ".join(found.modules[:4]) + (f" and {len(found.modules) - 4} more" if len(found.modules) > 4 else "")
    counts = f"{found.counts[0]:g}" + (f" to {found.counts[-1]:g}" if len(found.counts) > 1 else "")
    run = f", and {told[0]} is {told[1]:g}" if of_run and told is not None else ""
    what = f"all {len(found.names)} parameters of {own}" if own else f"{len(found.names)} parameters"
    why = f": {found.design}" if found.design else ": their moments are of another step, or the optimizer lacked them"
    serious = of_run and not found.design
    return _finding(
        seen, f"{optimizer.key}: {found.names[0]}".removeprefix(": "),
        f"{what} ({found.names[0]} first) have made {counts} steps and the other {found.of - len(found.names)} "
        f"{found.usual:g}{run}{why}", "steps-of-modules", Severity.MEDIUM if serious else Severity.INFO, Bearing.SIGN,
        modules=found.modules, tensors=len(found.names), steps=found.counts[0], usual=found.usual)


def _behind(seen: Seen) -> Iterator[Finding]:
    """An optimizer that has made fewer steps than run and schedule count, both alike.

    Where the schedule steps with the run's own count, so does the optimizer, but for steps that a scaler skipped (some
    at the start, one of two thousand later). Accumulation makes the run's count a multiple of the optimizer's.
    """
    told, values = _steps_told(seen), seen.checkpoint.values
    if told is None or told[0].rpartition(".")[2] not in _STEP_NAMES or len(seen.checkpoint.optimizers) != 1:
        return
    schedule = [(k, n) for k, v in values.items() if k.rpartition(".")[2] == "last_epoch"
                and (n := number_of(v)) is not None]
    optimizer = seen.checkpoint.optimizers[0]
    made = [n for k in _parameters(optimizer) if (n := number_of(_state_of(optimizer, k).get("step"))) is not None]
    if not made or len(schedule) != 1 or abs(schedule[0][1] - told[1]) > 1:
        return
    most = max(made)
    whole = most > 0 and abs(told[1] / most - round(told[1] / most)) * most <= 1
    if most < _BEHIND * told[1] and told[1] - most > _SKIPPED and not (whole and told[1] / most >= 2):
        yield _finding(seen, optimizer.key, f"the optimizer has made {most:g} steps, and {told[0]} is {told[1]:g} as "
                       f"{schedule[0][0]} is ({schedule[0][1]:g}): its state is of an earlier step", "steps-behind",
                       Severity.MEDIUM, steps=most, told=told[1])


def _schedule_behind(seen: Seen) -> Iterator[Finding]:
    """A schedule that has counted neither the run's steps, nor its epochs, where its own length is counted in steps.

    Its length (`T_max`, `total_steps`) is as many as the configuration's steps, and the optimizer has made all of the
    run's: what is stepped once for each of them was started anew, or left out.
    """
    told, values = _steps_told(seen), seen.checkpoint.values
    if told is None or told[0].rpartition(".")[2] not in _STEP_NAMES or len(seen.checkpoint.optimizers) != 1:
        return
    optimizer = seen.checkpoint.optimizers[0]
    made = {n for k in _parameters(optimizer) if (n := number_of(_state_of(optimizer, k).get("step"))) is not None}
    planned = {float(v) for k, v in seen.config.items() if _PLANNED.search(k) and number_of(v) is not None}
    for key, value in values.items():
        before, _, last = key.rpartition(".")
        length = next((number_of(values.get(f"{before}.{n}")) for n in ("T_max", "total_steps", "total_iters")
                       if f"{before}.{n}" in values), None)
        count = number_of(value) if last == "last_epoch" else None
        if count is None or length is None or length not in planned or made != {told[1]}:
            continue
        epochs = [n for k, v in values.items() if "epoch" in k.rpartition(".")[2] and k != key
                  and (n := number_of(v)) is not None]
        if told[1] - count > 1 and not any(abs(n - count) <= 1 for n in epochs):
            yield _finding(seen, key, f"{key} is {count:g}, and {told[0]} is {told[1]:g} as the optimizer's steps are: "
                           f"the schedule, of {length:g} steps as the configuration plans, was started anew or left "
                           "out",
                           "schedule-behind", Severity.MEDIUM, count=count, told=told[1], length=length)


def _rates(seen: Seen) -> Iterator[Finding]:
    """The schedule's last rates, which it wrote into the optimizer."""
    if len(seen.checkpoint.optimizers) != 1:
        return
    own = [g.get("lr") for g in seen.checkpoint.optimizers[0].groups]
    for key, value in seen.checkpoint.values.items():
        if key.rpartition(".")[2] != "_last_lr" or not isinstance(value, (list, tuple)) or len(value) != len(own):
            continue
        pairs = [(number_of(a), number_of(b)) for a, b in zip(own, value, strict=True)]
        apart = [(a, b) for a, b in pairs if a is not None and b is not None and not math.isclose(a, b, rel_tol=1e-6)]
        if apart:
            yield _finding(seen, key, f"the schedule has set a rate of {apart[0][1]:g} and the optimizer holds "
                           f"{apart[0][0]:g}: it drives another optimizer", "rates", Severity.MEDIUM, Bearing.SIGN)


def _scaler(seen: Seen) -> Iterator[Finding]:
    values = seen.checkpoint.values
    for key in (k for k in values if k.rpartition(".")[2] == "growth_factor"):
        scale = number_of(values.get(f"{key.removesuffix('growth_factor')}scale"))
        if scale is not None and not scale >= 1.0:
            yield _finding(seen, key.removesuffix(".growth_factor"), "the loss scale has fallen to "
                                                                     f"{scale:g}", "scaler",
                           Severity.MEDIUM, Bearing.SIGN, scale=scale)
