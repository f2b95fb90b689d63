"""Counts of steps in one checkpoint that disagree, though they agreed in the checkpoint before it or with its own name.

A training state counts its steps several times: the run, Adam for its bias correction, the schedule for its rate. Where
they were one number in an earlier checkpoint of the same run and one of them is not any more, that one was started anew
or left out when the run was resumed: a schedule warms up again, Adam corrects as at its first step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_weights.counters import counters_of, named_step
from traindx_tools.on_weights.logged_epochs import APART, FEWEST, epochs_apart
from traindx_tools.on_weights.logged_rates import goes_on, logged_rates
from traindx_tools.on_weights.moments_of_units import HELD, passed_back
from traindx_tools.on_weights.planned_steps import planned_steps
from traindx_tools.on_weights.rules.w128_moments_exchanged import moments_by_name
from traindx_tools.on_weights.schedules import on_plan, schedules_of
from traindx_tools.on_weights.seen import Seen
from traindx_tools.rules import Rule, Threshold

_LEAST = 5
_STEPS, _BEHIND, _EARLY = 20, 0.5, 0.01

RULE = Rule(
    id="W140",
    name="counts-apart",
    title="A count of steps does not go on with the others",
    severity=Severity.HIGH,
    sees="Whole numbers called count, step or iterations in a checkpoint, in the one before it, and in their paths.",
    matters="The schedule or the optimizer goes on from another step than the run: a second warm-up, a wrong rate.",
    alike=("a schedule that is stepped once an epoch: its rate is the one that was logged",
           "counts of other things, such as of epochs or of small batches: they never agreed", "a new phase with a "
           "schedule of its own, which its configuration says"),
    confirm=("print the counts of both checkpoints side by side",
             "plot the learning rate behind the step at which the run was resumed"),
    thresholds={
        "least": Threshold(_LEAST, "steps", "of the earlier checkpoint: small numbers agree by chance"),
        "epoch": Threshold(APART, "of the epoch", f"that it is off what {FEWEST} entries of its history say"),
        "behind": Threshold(_BEHIND, "of the optimizer's steps", "that a schedule counts at most, with another rate"),
    },
)


def check(seen: Seen) -> Iterator[Finding]:
    """Once a checkpoint, at most one."""
    if not seen.main:
        return
    now = counters_of(seen.checkpoint)
    before = counters_of(seen.other.checkpoint) if seen.other is not None else {}
    yield from (_against_earlier(seen, now, before) or _against_name(seen, now, before) or list(_behind(seen, now))
                or _foreign(seen, now) or _epochs(seen))


def _against_earlier(seen: Seen, now: Mapping[str, int], before: Mapping[str, int]) -> list[Finding]:
    """Counts that were one number before and are several now."""
    groups: dict[int, list[str]] = {}
    for name, count in before.items():
        if name in now and count >= _LEAST:
            groups.setdefault(count, []).append(name)
    for count, names in groups.items():
        usual, odd = _majority({n: now[n] for n in names}, named_step(seen.path))
        if odd and seen.other is not None and usual > count:
            told = ", ".join(f"{n} is {now[n]:,}" for n in odd[:3])
            others = [n for n in names if n not in odd]
            return [_finding(seen, odd, f"{told} in {seen.path}, and {', '.join(others[:3])} "
                             f"{'is' if len(others) == 1 else 'are'} {usual:,}; in {seen.other.path} all {len(names)} "
                             f"were {count:,}: {_why(now[odd[0]], usual, count)}", "earlier", None,
                             usual, now[odd[0]])]
    return []


def _majority(counts: Mapping[str, int], named: int | None) -> tuple[int, list[str]]:
    """The number that most counts are, or of two the one that the path says or the larger, and those that differ."""
    ranked = Counter(counts.values()).most_common()
    if len(ranked) < 2:
        return 0, []
    tied = [value for value, times in ranked if times == ranked[0][1]]
    usual = named if named in tied and named is not None else max(tied)
    return usual, [n for n, c in counts.items() if c != usual]


def _why(odd: int, usual: int, before: int) -> str:
    if odd == usual - before:
        return "it was started anew when the run went on from there"
    return "it stood still since then" if odd == before else "it was not kept with the others"


def _against_name(seen: Seen, now: Mapping[str, int], before: Mapping[str, int]) -> list[Finding]:
    """One count against at least two others that are the step that the path says; or all of them against it."""
    named = named_step(seen.path)
    if named is None or named < _LEAST:
        return []
    same = [n for n, c in now.items() if c == named]
    odd = [n for n, c in now.items() if _LEAST <= c < named and n not in before and named % c]
    if len(same) >= 2 and len(odd) == 1:
        return [_finding(seen, odd, f"{odd[0]} is {now[odd[0]]:,} in {seen.path}, and {', '.join(same[:3])} are "
                         f"{named:,} as its name says", "name", Severity.MEDIUM, named, now[odd[0]])]
    earlier = named_step(seen.other.path) if seen.other is not None else None
    agreed = [n for n, c in before.items() if c == earlier and n in now and now[n] != named]
    if earlier is not None and not same and agreed and earlier < named:
        return [_finding(seen, agreed, f"{agreed[0]} is {now[agreed[0]]:,} in {seen.path}, whose name says {named:,}; "
                         f"in the checkpoint of {earlier:,} it was the same number", "name", Severity.MEDIUM, named,
                         now[agreed[0]])]
    return []


def _behind(seen: Seen, now: Mapping[str, int]) -> list[Finding]:
    """A schedule far behind the steps of the optimizer, whose rate is not the one that the run last logged.

    One that is stepped once an epoch is behind by design: its rate is the logged one. Without a log, a rate that is
    that of the planned steps at the schedule's own count says that it counts steps.
    """
    own = [now[k] for o in seen.checkpoint.optimizers if (k := f"{o.key}.step".lstrip(".")) in now]
    steps = own[0] if len(own) == 1 else 0
    for schedule in schedules_of(seen.checkpoint.values) if steps >= _STEPS else ():
        if schedule.restarts or not 0 < schedule.count <= _BEHIND * steps:
            continue
        logged = logged_rates(seen.path, steps)
        going_on = goes_on(logged, schedule.rates, steps)
        planned = planned_steps(seen.checkpoint) if going_on is None else None
        if going_on or (going_on is None and (planned is None or steps > planned.steps or not on_plan(
                schedule, planned, _EARLY))):
            continue
        rate = f"its rate is {schedule.rates[0]:.4g}"
        why = (f"{rate}, and the run logged {logged[-1][1]:.4g} at step {logged[-1][0]:,}" if planned is None else
               f"{rate}, which is that of the {planned.steps:,} steps that {planned.file} plans, at this count")
        return [_finding(seen, [schedule.key], f"{schedule.key} is {schedule.count:,} in {seen.path}, and the "
                         f"optimizer has made {steps:,} steps: {why}; a run that goes on has another rate",
                         "behind", None, steps, schedule.count)]
    return []


def _foreign(seen: Seen, now: Mapping[str, int]) -> list[Finding]:
    """An optimizer that has counted another number of steps than the run, with moments that are not of these weights.

    The count alone may be meant: a phase with an optimizer of its own, several batches a step, steps of an environment.
    """
    own = [n for n in now if _counted(seen, n) == "optimizer"]
    run = {now[n] for n in now if _counted(seen, n) == "run"}
    if len(run) != 1 or len({now[n] for n in own}) != 1 or (step := run.pop()) == now[own[0]] or step < _STEPS:
        return []
    found = passed_back(seen, moments_by_name(seen))
    if found is None or not found.foreign:
        return []
    return [_finding(seen, own, f"{own[0]} is {now[own[0]]:,} in {seen.path}, where the run is at step {step:,}, and "
                     f"its moments are not of these weights: the squared gradients of {found.units} hidden units have "
                     f"nothing to do with what the weights behind them pass back (correlation {found.own:.2f}, of a "
                     f"network's own {HELD} and more): the optimizer's state is that of another run", "foreign", None,
                     step, now[own[0]])]


def _epochs(seen: Seen) -> list[Finding]:
    """An epoch that is not the one that the history in the same file says for these steps."""
    found = epochs_apart(seen.path)
    if found is None:
        return []
    return [RULE.finding(
        f"{found.file} beside {seen.path} says epoch {found.said:g} at step {found.step:,}, and its own history has "
        f"{found.steps:g} steps an epoch, which makes it {found.expected:.4g}: the sampler goes on from another place",
        Location(file=found.file, module="epoch"), seen.path, bearing=Bearing.SIGN, severity=Severity.MEDIUM,
        measured={"kind": "epoch", "name": "epoch", "what": "run", "names": ("epoch",), "count": round(found.said, 6),
                  "told": round(found.expected, 6)})]


def _counted(seen: Seen, name: str) -> str:
    """What a count is of: "schedule", "optimizer" (moments stand beside it) or "run"."""
    head = name.rpartition(".")[0]
    beside = {t.key.removeprefix(f"{head}.").partition(".")[0] for t in seen.checkpoint.tensors
              if head and t.key.startswith(f"{head}.")}
    if beside & {"mu", "nu", "m", "v", "exp_avg"} or head in {o.key for o in seen.checkpoint.optimizers}:
        return "optimizer"
    return "schedule" if "sched" in name.lower() or "opt" in head.lower() or name.endswith("last_epoch") else "run"


def _finding(seen: Seen, names: list[str], text: str, kind: str, severity: Severity | None, usual: int, odd: int
             ) -> Finding:
    return RULE.finding(text, Location(file=seen.path, module=names[0]), seen.path, bearing=Bearing.CAUSE,
                        severity=severity, measured={"kind": kind, "name": names[0], "what": _counted(seen, names[0]),
                                                     "names": tuple(names[:20]),
                                                     "count": odd, "told": usual})
