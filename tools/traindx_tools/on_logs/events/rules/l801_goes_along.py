"""An event of the log goes ahead of what stands out in a series, more often than chance explains.

Every line of the log is an event of a template with variables (file, shard, host, worker, request). For anomalies that
come at least five times, each template, each value of a variable and each high or low value of a number beside is
compared: how often it occurs within 200 records before, against how often it does near other records of the same
stretch. What is told holds after all comparisons, by a bound and by displacing the anomalies; what seemed to go along
and does not is told as ruled out. It is an association: what it means is decided by leaving that file, host or bucket
out of a run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity, Value
from traindx_tools.on_logs.anomalies import Kind
from traindx_tools.on_logs.events.anomalous import AnomalySet
from traindx_tools.on_logs.events.associating import LEVEL, Along, Association
from traindx_tools.on_logs.events.chance import followed
from traindx_tools.on_logs.events.collecting import Lines
from traindx_tools.on_logs.events.origins import loss_of
from traindx_tools.on_logs.events.seen import Seen
from traindx_tools.on_logs.run import Ints, Series
from traindx_tools.rules import Rule, Threshold

STRONG, EXACT = 0.7, 0.5
MOST_PLACES = 128
"""Lines of anomalies and of events that a finding holds, over the whole run: what its picture is drawn from."""
_COSTS = ("step_time", "throughput", "tokens_per_second", "time between records", "data_time", "epoch_time", "memory",
          "gpu_", "cpu_")
"""Canonical names of what costs time or memory: evaluations and checkpoints rightly go along with it."""

RULE = Rule(
    id="L801",
    name="goes-along",
    title="An event goes along with the anomalies",
    severity=Severity.MEDIUM,
    sees="every line of the log as an event, and the places at which a series leaves its own scatter",
    matters="It names the file, host, worker or bucket with which it happens: the shortest way to the cause.",
    alike=("Two things with one period: an evaluation and a shard that both come once an epoch.",
           "A message that reports the anomaly itself, or what is done about it: it stands at anomalies only, always "
           "in the same record. Then it is a remark, and behind anything else that goes along.",
           "What is only more frequent while anomalies are: compared with its own stretch, and ruled out."),
    confirm=("Leave that file, host, worker or bucket out and run again: traindx experiment PATH --run CMD --change "
             "'files-left-out:files=*NAME*' (or set:KEY=VALUE).",
             "Look at what was read there: traindx data PATH names odd shards and rows."),
    thresholds={
        "level": Threshold(LEVEL, "chance of any association in a log without one", "after all comparisons"),
        "strong": Threshold(STRONG, "of the anomalies", "below, most of them have another reason"),
        "exact": Threshold(EXACT, "of the occurrences followed by an anomaly", "below, it needs something besides"),
    },
)


def check(seen: Seen) -> Iterator[Finding]:
    """One finding for each set of anomalies with an association, with what was ruled out. One origin: L803."""
    losses = {loss.event.event.text for along in seen.along if (loss := loss_of(along)) is not None}
    for along in seen.along:
        if along.told and along.told[0].event.text not in losses:
            yield _finding(along)


def _finding(along: Along) -> Finding:
    anomalies = along.anomalies
    said = [sentence(along, a) for a in along.told]
    return RULE.finding(
        ". ".join(said), anomalies.series.at(int(anomalies.at[0])), anomalies.series.source,
        bearing=Bearing.COMPANION, severity=_severity(anomalies, along.told), measured=evidence(along))


def evidence(along: Along) -> dict[str, Value]:
    """What a finding on an association holds: the event, its lag and counts, what was ruled out, where both stand."""
    first, anomalies = along.told[0], along.anomalies
    lines = np.asarray(anomalies.series.line[anomalies.at], np.int64)
    shown = lines[np.linspace(0, len(lines) - 1, min(len(lines), MOST_PLACES)).astype(int)]
    return {"metric": anomalies.series.name, "anomalies": anomalies.what, "event": first.event.text,
            "kind": first.event.kind, "file": file_in(first.event.text), "near": first.near, "far": first.far,
            "hits": first.hits, "count": len(anomalies.at), "otherwise": first.otherwise,
            "expected": round(first.expected, 2), "chance": first.chance, "comparisons": along.comparisons,
            "also": tuple(a.event.text for a in along.told[1:]),
            "ruled_out": tuple(text for text, _ in along.ruled_out),
            "ruled_out_why": tuple(why for _, why in along.ruled_out),
            "anomaly_lines": tuple(shown.tolist()), "event_lines": _drawn(first.event.lines, shown)}


def _drawn(events: Lines, anomalies: Ints) -> tuple[int, ...]:
    """Lines of the event: of very many those nearest ahead of the anomalies, and others evenly over the run."""
    if len(events) > MOST_PLACES:
        ahead = np.unique(np.maximum(np.searchsorted(events, anomalies, side="right") - 1, 0))
        rest = np.linspace(0, len(events) - 1, max(2, MOST_PLACES - len(ahead))).astype(int)
        events = events[np.unique([*ahead[:MOST_PLACES - 2], *rest])]
    return tuple(int(i) for i in events)


def file_in(text: str) -> str | None:
    """The file that an event names, by its last part."""
    named = re.search(r"[\w./:-]*[\w-]*\d[\w-]*\.(?!\d+\b)\w{2,10}\b|[\w.:-]*/[\w./-]*\d[\w.-]*", text)
    return named.group().rpartition("/")[2] if named else None


def sentence(along: Along, one: Association) -> str:
    """What goes along, with how often, how often otherwise, and how sure it is."""
    anomalies = along.anomalies
    also = f" (and {', '.join(anomalies.also[:3])})" if anomalies.also else ""
    sure = (f"({one.expected:.1f} expected by chance; p = {one.chance:.1g} after "
            f"{along.comparisons * one.event.tried:,} comparisons)")
    if one.event.series is not None:
        others = one.rows - len(anomalies.all_places)
        return (f"{one.event.text} occurs {_lag(anomalies, one)} {one.hits} of {len(anomalies.at)} {anomalies.what}"
                f"{also} and in {one.otherwise:,} of {others:,} other rows {sure}")
    unknown = ", never without one and never earlier: it may be a message about them" if one.echo else ""
    return (f"{one.event.text} occurs {_lag(anomalies, one)} {one.hits} of {len(anomalies.at)} {anomalies.what}{also} "
            f"and {one.otherwise} times otherwise {sure}{unknown}")


def _lag(anomalies: AnomalySet, one: Association) -> str:
    if one.far == 0:
        return "at the same record as"
    stride = anomalies.stride
    stride, unit = (stride, "steps") if stride > 0 and anomalies.series.unit == "step" else (1.0, "records")
    near, far = f"{one.near * stride:g}", f"{one.far * stride:g}"
    return f"{near if near == far else f'{near}-{far}'} {unit if far != '1' else unit[:-1]} before"


def _severity(anomalies: AnomalySet, told: Sequence[Association]) -> Severity:
    one = told[0]
    if anomalies.series.name.startswith(_COSTS) or (anomalies.kind is Kind.SPIKE and not anomalies.up):
        return Severity.INFO
    if one.echo:
        return Severity.INFO
    if one.event.series is not None and not _whole(one.event.series):
        return Severity.LOW
    alike = [a for a in told if a.event.template == one.event.template and a.event.kind == one.event.kind]
    at = anomalies.places
    hits = int(np.any([followed(at, a.times, a.near, a.far) for a in alike], axis=0).sum())  # two buckets, two hosts
    precision = 1.0 - sum(a.otherwise for a in alike) / max(1, sum(len(a.times) for a in alike))
    strong = hits >= STRONG * len(at) and precision >= EXACT
    return Severity.MEDIUM if strong else Severity.LOW


def _whole(series: Series) -> bool:
    """Whether it counts (a length, a size, a number of something): what is measured may show the anomaly itself."""
    values = series.values[series.finite]
    return bool((values == np.round(values)).all())
