"""What a run loses has one origin: the slow, skipped or growing records are those of one host, file or worker.

Of what goes along with slow records, pauses, skipped steps and growing memory (L801) some takes its time on purpose: an
evaluation, a checkpoint, a program that is compiled, a long batch. One value of a variable (`node-17` among all
`node-*`) is compared with the others of its kind: they are alike among themselves, it is not, nearly all that is slow
has it and nearly all that has it is slow. What is told is the share of the run that its records take beyond the usual.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.curves.shapes import number
from traindx_tools.on_logs.events.anomalous import AnomalySet
from traindx_tools.on_logs.events.origins import ALIKE, APART, CONTROLS, WHOLE, Loss, loss_of
from traindx_tools.on_logs.events.rules.l801_goes_along import evidence
from traindx_tools.on_logs.events.seen import Seen
from traindx_tools.on_logs.events.slow import RATES
from traindx_tools.rules import Rule, Threshold

LITTLE, MUCH, MOST = 0.01, 0.05, 0.3

RULE = Rule(
    id="L803",
    name="one-origin",
    title="What the run loses has one origin",
    severity=Severity.MEDIUM,
    sees="the records of each host, file, worker or bucket beside those of the others of its kind",
    matters="The time, updates or memory come back once that one is left out, moved or repaired.",
    alike=("Evaluations, checkpoints and compiled programs: lines of their own, and no values of a variable (L801).",
           "Buckets by length: the others differ as well, or the longest takes no more than in proportion.",
           "Something that stands only beside it: a host that alone reads one file. The experiment tells."),
    confirm=("Leave it out and run again: traindx experiment PATH --run CMD --change 'files-left-out:files=*NAME*' (or "
             "set:KEY=VALUE).",
             "Read the same file from another host, and another file on the same host: with which of them does it go?"),
    thresholds={
        "whole": Threshold(WHOLE, "of the slow records, and of those with the origin", "one explains the other"),
        "controls": Threshold(CONTROLS, "other values of the variable", "with fewer nothing says what is usual"),
        "alike": Threshold(ALIKE, "ratio among the others", "beyond, time goes with what the variable counts"),
        "apart": Threshold(APART, "times the slowest of the others", "within, hosts differ"),
        "little": Threshold(LITTLE, "of the run", "below, a remark"),
        "much": Threshold(MUCH, "of the run", "below, a minor finding"),
        "most": Threshold(MOST, "of the run", "from here on severe"),
    },
)


def check(seen: Seen) -> Iterator[Finding]:
    """One finding for each set of anomalies that has one origin; of several sets with one origin the costliest."""
    found = [(along, loss) for along in seen.along if (loss := loss_of(along)) is not None]
    found.sort(key=lambda pair: -pair[1].share)
    told: set[tuple[str, str]] = set()
    for along, loss in found:
        key = (loss.kind, loss.event.event.text)
        if key not in told:
            told.add(key)
            yield RULE.finding(
                _said(loss, along.anomalies), along.anomalies.series.at(int(along.anomalies.at[0])),
                along.anomalies.series.source, bearing=Bearing.CAUSE, severity=_severity(loss),
                measured={**evidence(along), "loses": loss.kind, "share": round(loss.share, 4), "with_it": loss.with_it,
                          "usual": loss.usual, "records": loss.records, "undone": round(loss.sure, 4),
                          "p": loss.event.chance, "lost": f"{100 * loss.share:.0f} %",
                          "origin": loss.event.event.value, "origins": (loss.event.event.value, *loss.others)})


def _severity(loss: Loss) -> Severity:
    if loss.kind == "memory" or (loss.kind == "updates" and loss.share < MOST):
        return Severity.MEDIUM  # a file that is never trained on is lost, however little it is
    return (Severity.INFO if loss.share < LITTLE else Severity.LOW if loss.share < MUCH else
            Severity.MEDIUM if loss.share < MOST else Severity.HIGH)


def _said(loss: Loss, anomalies: AnomalySet) -> str:
    text, all_of = loss.event.event.text, f"{loss.having} of {loss.slow}"
    text += f" (and {', '.join(f'`{o}`' for o in loss.others)})" if loss.others else ""
    return _plainly(loss, anomalies, text, all_of) + (
        f"; {', '.join(loss.instead[:2])} {'stands' if len(loss.instead) == 1 else 'stand'} at the same records: which "
        "of them it is, an experiment tells" if loss.instead else "")


def _plainly(loss: Loss, anomalies: AnomalySet, text: str, all_of: str) -> str:
    if loss.kind == "updates":
        return (f"{text} stands at {all_of} {anomalies.what}, and {loss.bad} of {loss.records} steps with it are "
                f"skipped: {_share(loss)} of the run's steps are lost with it")
    if loss.kind == "memory":
        return (f"memory grows by about {number(loss.with_it)} MiB each time that {text} comes, and hardly otherwise: "
                f"{all_of} rises have it, {_share(loss)} of the growth")
    mine, usual = loss.with_it, loss.usual
    if anomalies.series.name.startswith(RATES):
        taken = f"have a {anomalies.series} of {number(1 / mine)}, all others of {number(1 / usual)}"
    else:
        taken = f"take {number(mine)} s, all others {number(usual)} s"
    return (f"records with {text} {taken} (medians): {_share(loss)} of the run's time is lost with it; {all_of} slow "
            f"records have it, and {loss.bad} of its {loss.records} are slow")


def _share(loss: Loss) -> str:
    return f"{100 * loss.share:.0f} %" if loss.share >= 0.01 else f"{100 * loss.share:.1f} %"
