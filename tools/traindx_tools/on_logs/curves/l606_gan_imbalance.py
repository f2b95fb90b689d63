"""Generator and discriminator have lost their balance for good.

At balance the discriminator cannot tell, D(x) is about 0.5, its loss about 2 ln 2 = 1.386 (ln 2 = 0.693 where the two
halves are averaged) and the generator's about ln 2; both swing around these values and never converge. That is what a
healthy run looks like.

"discriminator-wins": its loss stays under 0.05 over the last third while the generator's stays above 4 (or D(G(z))
stays under 0.02): a saturated discriminator passes no gradient on. "generator-wins": the generator's loss stays near
0 and the discriminator's stays above 3 times balance: the discriminator no longer learns. "no-contest": the
discriminator's loss equals 2 ln 2 to a thousandth at every record: it is not trained, or its output does not depend
on its input.

Losses that turn negative are Wasserstein or hinge losses and have no such levels; they are left alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.curves.baselines import Curve, curve, last_part, median
from traindx_tools.on_logs.curves.learning import number, span
from traindx_tools.on_logs.run import Run
from traindx_tools.rules import Rule, Threshold

BALANCE = 2.0 * math.log(2.0)
WINS = 0.05
LOSES = 4.0
FAKE = 0.02
BEATEN = 3.0
EXACT = 1e-3
LAST = 1 / 3
SATURATING = -1.0
RECORDS = 6

RULE = Rule(
    id="L606",
    name="gan-imbalance",
    title="Generator and discriminator have lost their balance",
    severity=Severity.HIGH,
    sees="discriminator and generator loss, D(x), D(G(z))",
    matters="The losing side gets no useful gradient any more; more steps do not bring it back.",
    alike=(
        "Losses that swing around 1.386 and 0.693 and do not converge: a healthy game.",
        "The first steps: the discriminator is ahead at first.",
        "Wasserstein and hinge losses have other levels.",
    ),
    confirm=(
        "Look at 64 samples of now and of before.",
        "Print the mean of D on real and on generated data over 100 batches.",
    ),
    thresholds={
        "wins": Threshold(WINS, "nats", "D is right with a probability above 0.975 on both kinds"),
        "loses": Threshold(LOSES, "nats", "-ln D(G(z)) with D(G(z)) below 0.018"),
        "fake": Threshold(FAKE, "probability", "the same, as D(G(z))"),
        "beaten": Threshold(BEATEN, "times 2 ln 2", "worse than guessing by far"),
        "exact": Threshold(EXACT, "relative", "no training leaves a loss there"),
        "saturating": Threshold(SATURATING, "nats", "log(1 - D(G(z))) starts at ln(1/2) = -0.69 and ends at 0 when D "
                                "wins; below lies a critic (WGAN), whose losses have no level"),
        "last": Threshold(round(LAST, 3), "of the log", "not just a phase"),
    },
)


def check(run: Run) -> Iterator[Finding]:
    """At most one finding."""
    d_series, g_series = run.first("discriminator_loss"), run.first("generator_loss")
    if d_series is None or g_series is None:
        return
    d, g = curve(d_series), curve(g_series)
    if len(d) < RECORDS or len(g) < RECORDS or d.values.min() < 0.0 or g.values.min() < SATURATING:
        return
    kind = _kind(run, d, g)
    if kind is not None:
        yield _finding(kind, d, g)


def _kind(run: Run, d: Curve, g: Curve) -> str | None:
    d_last, g_last = last_part(d.values, LAST), last_part(g.values, LAST)
    fooled = [last_part(curve(s).values, LAST) for s in run.series
              if s.original.lower().replace(" ", "") in ("d(g(z))", "d_g_z", "d_gz", "d_fake", "d(fake)")]
    saturated = bool((g_last <= 0).all()) and float(np.abs(g_last).max()) <= WINS
    never_fooled = any(len(f) and float(f.max()) <= FAKE for f in fooled)
    loses = saturated or never_fooled or float(np.quantile(g_last, 0.1)) >= LOSES
    if float(np.quantile(d_last, 0.9)) <= WINS and loses:
        return "discriminator-wins"
    beaten = float(np.quantile(d_last, 0.1)) >= BEATEN * BALANCE
    if not saturated and beaten and float(np.quantile(g_last, 0.9)) <= WINS:
        return "generator-wins"
    flat = any(np.abs(d.values / level - 1.0).max() <= EXACT for level in (BALANCE, BALANCE / 2))
    return "no-contest" if flat and len(d) >= 2 * RECORDS else None


def _finding(kind: str, d: Curve, g: Curve) -> Finding:
    start, end = d.where(0 if kind == "no-contest" else len(d) - len(last_part(d.values, LAST)), len(d) - 1)
    d_level, g_level = median(last_part(d.values, LAST)), median(last_part(g.values, LAST))
    words = {
        "discriminator-wins": "the discriminator is always right and passes no gradient on",
        "generator-wins": "the discriminator is worse than guessing and no longer learns",
        "no-contest": f"exactly {'2 ln 2' if d_level > 1 else 'ln 2'}: the discriminator's output does not "
                      f"depend on its input",
    }[kind]
    return RULE.finding(
        f"{d.series.original} stays at {number(d_level)} and {g.series.original} at {number(g_level)} "
        f"{span(d.series, start, end)}: {words}",
        d.series.at(start, end), d.series.source, bearing=Bearing.SIGN,
        severity=Severity.MEDIUM if kind == "no-contest" else Severity.HIGH,
        measured={"kind": kind, "discriminator_loss": d_level, "generator_loss": g_level},
    )
