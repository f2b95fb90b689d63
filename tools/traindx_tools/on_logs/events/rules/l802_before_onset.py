"""Something in the log itself goes ahead of the place where the run goes wrong, or stands exactly there.

Where loss, gradients, accuracy or speed break towards worse, or the loss turns NaN, the log often holds what came just
before: a learning rate that left its level, a scale, another metric; or a line that stands there and nowhere else (a
cache that is full, another file, a worker that was started again). What comes before may be the cause and what comes
after cannot; how long the run had been well before says as much: a missing warm-up does not wait for 1,200 good steps.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.anomalies.breaks import ALONE, CLEAR
from traindx_tools.on_logs.curves.shapes import number, place, ratio
from traindx_tools.on_logs.events.line_beside import CHANCE, OF_WARNINGS
from traindx_tools.on_logs.events.onsets import LEAD, Lead, Onset
from traindx_tools.on_logs.events.seen import Seen
from traindx_tools.rules import Rule, Threshold

MOST_LEADS = 3

RULE = Rule(
    id="L802",
    name="before-onset",
    title="Something in the log goes ahead of the trouble",
    severity=Severity.MEDIUM,
    sees="every series and every line of the log around the first break towards worse or the first NaN",
    matters="What changed just before is the first thing to change back.",
    alike=("Two effects of one cause, of which one shows earlier.",
           "A line that reports the trouble: it stands behind it, and tells nothing of why."),
    confirm=("Keep the series that went ahead at its former level (the schedule constant, the file left out) and run "
             "on from a checkpoint before the place.",),
    thresholds={
        "lead": Threshold(LEAD, "records before", "further apart two breaks meet by chance"),
        "clear": Threshold(CLEAR, "times the scatter before a break", "beyond chance in a log of any length"),
        "alone": Threshold(ALONE, "times every other move of the series", "what moves by nature has its like"),
        "chance": Threshold(CHANCE, "that a line which comes once or twice stands there", "a twentieth"),
        "of_warnings": Threshold(OF_WARNINGS, "that a warning does", "a warning says something by itself"),
    },
)


def check(seen: Seen) -> Iterator[Finding]:
    """At most one finding: of the first trouble."""
    for onset in seen.onsets:
        yield _finding(onset)


def _finding(onset: Onset) -> Finding:
    first = onset.leads[0] if onset.leads else None
    said = [_of_lead(x).removesuffix(" at which" if i else "") for i, x in enumerate(onset.leads[:MOST_LEADS])]
    if onset.beside:
        lines = " and ".join(f"`{b.text}` ({b.source}:{b.line})" for b in onset.beside)
        stand = "stands" if len(onset.beside) == 1 else "stand"
        said.append(f"{lines} {stand} where {_trouble(onset)}, and hardly anywhere else" if first is None else
                    f"there {stand} {lines}, as hardly anywhere else")
    series, position = onset.series, float(onset.series.position[onset.at])
    worst = onset.nonfinite is not None or onset.found is None or onset.found.stays
    return RULE.finding(
        "; ".join(said) if first is None else f"{said[0]} {_trouble(onset)}{''.join(f'; {x}' for x in said[1:])}",
        series.at(first.start) if first is not None and first.series.source == series.source else series.at(onset.at),
        series.source,
        bearing=Bearing.SIGN if first is not None and first.is_set else Bearing.COMPANION,
        severity=_severity(onset, first, worst),
        measured={"metric": series.name, "lead": _name(first) if first else None,
                  "is_set": first.is_set if first else None, "up": first.found.up if first else None,
                  "before": first.found.before if first else None, "after": first.found.after if first else None,
                  "ratio": ratio(first.found.after, first.found.before) if first else None,
                  "lag": first.lag if first else None,
                  "event": onset.beside[0].text if onset.beside else None,
                  "event_line": onset.beside[0].line if onset.beside else None,
                  "warns": onset.beside[0].warns if onset.beside else None,
                  "chance": onset.beside[0].chance if onset.beside else None,
                  "nonfinite": onset.nonfinite is not None, "good_records": onset.at,
                  "position": position})


def _name(lead: Lead) -> str:
    return lead.series.original if lead.series.name.startswith("other") else lead.series.name


def _trouble(onset: Onset) -> str:
    names = ", ".join(dict.fromkeys(str(s) for s in (onset.series, *onset.also)))
    where = place(onset.series, onset.at)
    if onset.found is None:
        return f"{onset.series} stops being finite ({where}, after {onset.at:,} records that were)"
    way = "rises" if onset.found.up else "falls"
    way = way.removesuffix("s") if onset.also else way
    text = f"{names} {way}"
    if not onset.also:
        text += f" from {number(onset.found.before)} to {number(onset.found.after)}"
    text += f" ({where}, after {onset.at:,} records)"
    if onset.nonfinite is not None:
        text += f", and {onset.nonfinite[0]} is not finite from {place(*onset.nonfinite)} on"
    return text


def _severity(onset: Onset, first: Lead | None, worst: bool) -> Severity:
    """Of a setting that moved before values that are not finite as of these; of what came back by itself low."""
    if first is not None and first.is_set and onset.nonfinite is not None:
        return Severity.HIGH
    return Severity.MEDIUM if worst else Severity.LOW


def _of_lead(lead: Lead) -> str:
    """The move, up to the words after which the trouble is told (of the first lead)."""
    s = lead.series
    until = f" to {place(s, lead.end)}" if lead.end > lead.start else ""
    ahead = "at the same record at which" if lead.lag == 0 else f"{lead.lag} record{'s' if lead.lag > 1 else ''} before"
    return (f"{_name(lead)} goes from {number(lead.found.before)} to {number(lead.found.after)} at "
            f"{place(s, lead.start)}{until}, {ahead}")
