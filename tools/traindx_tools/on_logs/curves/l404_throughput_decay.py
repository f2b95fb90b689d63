"""Steps take longer and longer.

The step time rises, or the throughput falls, along the whole log: something grows with the number of steps (kept
graphs, a list that is walked, a replay buffer, logged media, a lengthening rollout) or the machine slows down (heat, a
neighbour, swapping). Where the log gives the phases of a step, the one that grows is named: a slow machine slows all of
them. Scatter alone is no decay: the trend must run through the log and not only sit in the first records, where
compilation and cold caches are. `abrupt` in the measured values: the speed has two levels and changes between two
records; then nothing grew, something changed there.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.curves.onsets import step_at
from traindx_tools.on_logs.curves.shapes import Track, number, rank_correlation, ratio, track
from traindx_tools.on_logs.run import Floats, Run
from traindx_tools.rules import Rule, Threshold

SLOWER, TREND = 1.4, 0.6
ENOUGH = 8
EXPLAINS = 0.7
LITTLE = 0.1
BEYOND = 1.25
BRIEF = 60.0
SAME_PACE, SAME_STAGE = 0.9, 1.2
MOST_STAGES = 32
NOT_PHASES = frozenset({"step_time", "epoch_time", "time/total", "time/eta", "time/elapsed"})
OF_EPOCHS = ("epoch_time", "time/epoch", "time/train", "time/training")
"""How long an epoch, or its training, took."""
SPEEDS = ("throughput", "tokens_per_second", "mfu", "samples_per_second", "steps_per_second", "it_per_second")

RULE = Rule(
    id="L404",
    name="throughput-decay",
    title="Steps take longer and longer",
    severity=Severity.MEDIUM,
    sees="Time of a step or epoch, or throughput, after the first tenth of the log: early against late median, trend.",
    matters="A run planned for a day takes three; the cause often ends in an out-of-memory error.",
    alike=("Slow first steps.", "A single slow stretch: a shared file system.",
           "Longer sequences or larger batches by plan: a remark where the log tells the size at the same record.",
           "Longer rollouts by a policy that learns to talk."),
    confirm=("Profile ten steps at the beginning and ten later on, and compare which call has grown.",
             "Log the resident and the device memory beside the step time: do both grow?"),
    thresholds={
        "slower": Threshold(SLOWER, "late / early step time", "beyond the scatter of shared machines"),
        "explains": Threshold(EXPLAINS, "of the growth of all phases", "one of them, not the machine"),
        "little": Threshold(LITTLE, "of a step at the end", "a wait that is shorter explains no slower step"),
        "beyond": Threshold(BEYOND, "times the square of a size", "that grows at the same record: explained by it"),
        "same pace": Threshold(SAME_PACE, "of the tokens a second at first", "then a step does more, none is slower"),
        "same stage": Threshold(SAME_STAGE, "times, over all stages", "below, steps of a size take as long as before"),
        "brief": Threshold(BRIEF, "seconds", "a shared machine changes its pace for that long: low"),
        "trend": Threshold(TREND, "rank correlation with the step", "a quarter of the scatter or more is trend"),
    },
)


def check(run: Run) -> Iterator[Finding]:
    """At most one finding: step time first, then that of epochs, else a throughput."""
    for name in ("step_time", *OF_EPOCHS, *SPEEDS):
        t = track(run.first(name, group="train") or run.first(name))
        if t is None or len(t) < ENOUGH or not bool((t.y > 0).all()) or (name in OF_EPOCHS and _adds_up(t.y)):
            continue
        times = 1 / np.maximum(t.y, 1e-150) if name in SPEEDS else t.y
        if (slow := _slower(t, times)) is not None:
            start, slower = slow
            turn = step_at(times[start:])
            yield _report(run, t, start, slower) if turn is None else _one_step(run, t, start + turn, times)
        return


def _adds_up(seconds: Floats) -> bool:
    """Whether a clock goes on from the start of the run: its gains are alike, and the first value is one of them."""
    gains = np.diff(seconds)
    usual = float(np.median(gains))
    return usual > 0 and bool((gains > 0).all()) and 0.5 * usual <= seconds[0] <= 2 * usual


def _what(t: Track) -> str:
    return "epochs" if t.series.name in OF_EPOCHS else "steps"


def _slower(t: Track, times: Floats) -> tuple[int, float] | None:
    """Where the judged part starts and how many times slower its end is."""
    start = max(1, len(t) // 10)
    y = times[start:]
    third = max(2, len(y) // 3)
    early, middle, late = (float(np.median(part)) for part in (y[:third], y[third:-third], y[-third:])) \
        if len(y) > 2 * third else (float(np.median(y[:third])), float(np.median(y)), float(np.median(y[-third:])))
    trend = rank_correlation(t.x[start:], y)
    chance = min(0.9, 3 / (len(y) - 1) ** 0.5)  # three standard deviations of rho without a trend
    if ratio(late, early) < SLOWER or trend < max(TREND, chance) or not early <= middle <= late:
        return None
    return start, ratio(late, early)


def _report(run: Run, t: Track, start: int, slower: float) -> Finding:
    third = max(2, (len(t) - start) // 3)
    early, late = float(np.median(t.y[start: start + third])), float(np.median(t.y[-third:]))
    memory = track(run.first("memory"))
    grows = memory is not None and len(memory) >= 4 and float(memory.y[-1]) > 1.1 * float(memory.y[len(memory) // 5])
    phase, grown = _phase(run)
    waits, said = _waits(run, t)
    work = _same_pace(run) or _by_plan(run, t)
    short = _within_seconds(run, t)
    grown += said + work + short
    return RULE.finding(
        f"{t.series} goes from {number(early)} (median of {third} records from {t.place(start)} on) to {number(late)} "
        f"at the end ({t.place(-1)}): {_what(t)} take {number(slower)} times as long{grown}",
        t.at(start, -1), t.series.source,
        bearing=Bearing.COMPANION,
        severity=_severity(work, short, slower),
        measured={"metric": t.series.name, "early": early, "late": late, "slower": slower, "memory_grows": grows,
                  "phase": phase, "work": bool(work), "data_share": waits, "abrupt": False,
                  "position": float(t.series.position[t.index[start]])})


def _severity(work: str, short: str, slower: float) -> Severity:
    if work:
        return Severity.INFO
    return Severity.LOW if short else Severity.HIGH if slower >= 3 else Severity.MEDIUM


def _within_seconds(run: Run, t: Track) -> str:
    """Words for a run whose own clock says that it took less than a minute; "" for a longer one, or without a clock."""
    elapsed = run.first("elapsed", group="train")
    clocks = [t.series.time] + ([elapsed.values] if elapsed is not None and len(elapsed) >= ENOUGH else [])
    spans = [float(np.ptp(c)) for c in clocks if len(c) and np.isfinite(c).all()]
    whole = max(spans, default=0.0)
    return f"; all within {number(whole)} s: other programs on the machine can do that" if 0 < whole < BRIEF else ""


def _waits(run: Run, t: Track) -> tuple[float | None, str]:
    """The share of a step that waits for data, and the words for one that is too small to matter."""
    share = data_share(run, t)
    little = share is not None and share < LITTLE
    return share, f"; the wait for data that the log measures is {100 * (share or 0.0):.2g} % of a step there" * little


def data_share(run: Run, t: Track) -> float | None:
    """Which part of a step at the end of the run waits for data, by the log; None where it does not measure both."""
    data = track(run.first("data_time"))
    if data is None or len(data) < ENOUGH:
        return None
    step = _seconds_a_step(run, t)
    wait = float(np.median(data.y[-max(3, len(data) // 4):]))
    return None if step is None or step <= 0 or wait < 0 else ratio(wait, step)


def _seconds_a_step(run: Run, t: Track) -> float | None:
    """The time of a step in the last quarter, as it was logged, else from the times of the records and their steps."""
    timed = track(run.first("step_time"))
    if timed is not None:
        return float(np.median(timed.y[-max(3, len(timed) // 4):]))
    if t.unit != "step" or t.wrapped or t.series.thinned:
        return None
    last = slice(-max(3, len(t) // 4) - 1, None)
    passed, done = np.diff(t.series.time[t.index][last]), np.diff(t.x[last])
    if not np.isfinite(passed).all() or not bool((done > 0).all()):
        return None
    return float(np.median(passed / done))


def _one_step(run: Run, t: Track, turn: int, times: Floats) -> Finding:
    """Two levels of speed: the last value of the one and the first of the other stand in the log."""
    early, late = float(np.median(t.y[:turn])), float(np.median(t.y[turn:]))
    slower = ratio(float(np.median(times[turn:])), float(np.median(times[:turn])))
    phase, grown = _phase(run)
    waits, said = _waits(run, t)
    work = _more_work(run, t, turn, slower) or _same_pace(run) or _by_plan(run, t)
    short = _within_seconds(run, t)
    grown += said + work + short
    return RULE.finding(
        f"{t.series} goes from {number(float(t.y[turn - 1]))} at {t.place(turn - 1)} to {number(float(t.y[turn]))} at "
        f"{t.place(turn)} and stays there (medians before and after {number(early)} and {number(late)}): {_what(t)} "
        f"take {number(slower)} times as long from there on{grown}",
        t.at(turn - 1, turn), t.series.source, title="Steps take longer from one step on",
        bearing=Bearing.COMPANION,
        severity=_severity(work, short, slower),
        measured={"metric": t.series.name, "early": early, "late": late, "slower": slower, "memory_grows": False,
                  "phase": phase, "work": bool(work), "data_share": waits, "abrupt": True,
                  "position": float(t.series.position[t.index[turn]])})


def _more_work(run: Run, t: Track, turn: int, slower: float) -> str:
    """The words for a size that grows at the same record and stays: longer sequences, larger batches. "" for none.

    It explains as much as its square, which is what attention costs."""
    before, after = (float(t.series.position[t.index[i]]) for i in (turn - 1, turn))
    for series in run.series:
        low, high = (series.values[m] for m in (series.position <= before, series.position >= after))
        levels = [np.unique(part) for part in (low, high)]
        if not all(len(part) >= 3 and len(u) == 1 and float(u[0]).is_integer() and u[0] > 0
                   for part, u in zip((low, high), levels, strict=True)):
            continue
        size, larger = (float(u[0]) for u in levels)
        if larger > size and slower <= BEYOND * (larger / size) ** 2:
            return f"; {series.original} goes from {number(size)} to {number(larger)} there: each step does more"
    return ""


def _same_pace(run: Run) -> str:
    """The words for tokens a second that stay as they were while steps take longer; "" for none."""
    t = track(run.first("tokens_per_second", group="train") or run.first("tokens_per_second"))
    if t is None or len(t) < ENOUGH or not bool((t.y > 0).all()):
        return ""
    y = t.y[max(1, len(t) // 10):]
    third = max(2, len(y) // 3)
    early, late = float(np.median(y[:third])), float(np.median(y[-third:]))
    if late < SAME_PACE * early:
        return ""
    return f"; {t.series.original} goes from {number(early)} to {number(late)}: each step does more"


def _by_plan(run: Run, t: Track) -> str:
    """The words for a size that grows by stages, in each of which steps take as long as at its beginning."""
    times = 1 / np.maximum(t.y, 1e-150) if t.series.name in SPEEDS else t.y
    at = t.series.position[t.index]
    for series in run.series:
        sizes = series.values
        if series is t.series or len(series) < ENOUGH or not bool(np.isfinite(sizes).all()) or sizes[0] <= 0:
            continue
        turns = np.flatnonzero(np.diff(sizes)) + 1
        if not 1 <= len(turns) <= MOST_STAGES or (np.diff(sizes) < 0).any() or (sizes != np.round(sizes)).any():
            continue
        cuts = np.searchsorted(at, series.position[turns])
        parts = [part for part in np.split(times, cuts) if len(part) >= 3]
        levels = sizes[[0, *turns.tolist()]]
        if len(parts) < len(levels) or np.prod([_slower_in(part) for part in parts]) >= SAME_STAGE:
            continue
        usual = np.array([np.median(part) for part in parts])
        if bool((usual[1:] / usual[:-1] <= BEYOND * (levels[1:] / levels[:-1]) ** 2).all()):
            return (f"; {series.original} goes from {number(float(levels[0]))} to {number(float(levels[-1]))} in "
                    f"{len(turns)} steps, where they take longer: each step does more")
    return ""


def _slower_in(times: Floats) -> float:
    """How many times longer steps take at the end of a stage than at its beginning."""
    third = max(1, len(times) // 3)
    return ratio(float(np.median(times[-third:])), float(np.median(times[:third])))


def _phase(run: Run) -> tuple[str | None, str]:
    """The phase of a step (forward, fetching, ...) that grows while the others do not, and the words for it."""
    rises: dict[str, tuple[float, float]] = {}
    for series in run.series:
        known = series.name.startswith("time/") or series.name.endswith("_time")
        t = track(series) if known and series.name not in NOT_PHASES else None
        if t is not None and len(t) >= ENOUGH and bool((t.y >= 0).all()):
            third = max(2, len(t) // 3)
            rises[series.original] = float(np.median(t.y[:third])), float(np.median(t.y[-third:]))
    growth = {name: max(0.0, late - early) for name, (early, late) in rises.items()}
    if len(growth) < 2:
        return None, ""
    most = max(growth, key=lambda n: growth[n])
    early, late = rises[most]
    if not growth[most] or growth[most] < EXPLAINS * sum(growth.values()) or late < SLOWER * early:
        return None, ""
    return most, f"; of its phases it is {most!r} that grows, from {number(early)} s to {number(late)} s"
