"""`load_state_dict` skipped keys, and what it skipped belongs to the model.

`kind`: "prefix" where the keys of the state are the model's with something in front ("module.") or without it: with
`strict=False` none of them is loaded; "none" where no key fits at all; "part" where keys of both sides are left over;
"statistics" where normalisation layers got their weights without their running statistics and are called in evaluation.
A new head, a backbone that is loaded into a larger model, adapters and a file that holds more than the model are meant:
there keys are left over on one side only, or few.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_torch.rules.state import SOURCE, LoadedKeys
from traindx_tools.rules import Rule, Threshold

SKIPPED = 0.5

RULE = Rule(
    id="T322",
    name="keys-do-not-fit",
    title="Weights were skipped while a state was loaded",
    severity=Severity.CRITICAL,
    sees="missing and unexpected keys that load_state_dict returned",
    matters="these weights stay as they were made, and nothing says so",
    alike=("a new head on an old backbone: few keys on both sides", "a backbone alone, adapters: one side only"),
    confirm=("print(model.load_state_dict(state, strict=False))",),
    thresholds={"skipped": Threshold(SKIPPED, "of the model's keys are missing", "a new head is less")},
)


def check(loads: Sequence[LoadedKeys]) -> Iterator[Finding]:
    """One finding a call that skipped what belongs to the model."""
    for load in loads:
        yield from _statistics(load)
        if not load.missing or not load.unexpected:
            continue
        taken = load.own - len(load.missing)
        kind = "prefix" if load.prefix else "none" if not taken else "part"
        loud = kind != "part" or len(load.missing) >= SKIPPED * load.own
        if kind == "prefix":
            side = "are the model's without" if load.prefix[0] == "-" else "have in front"
            how = f": the state's keys {side} \"{load.prefix.lstrip('-')}\""
        else:
            how = ""
        yield RULE.finding(
            f"load_state_dict of {load.model} took {taken} of its {load.own} keys; {len(load.missing)} are missing "
            f"({load.missing[0]}, ...) and {len(load.unexpected)} of the state's are not the model's "
            f"({load.unexpected[0]}, ...){how}", load.at.where(), SOURCE,
            bearing=Bearing.CAUSE if kind != "part" else Bearing.SIGN,
            severity=RULE.severity if kind != "part" else Severity.MEDIUM if loud else Severity.LOW,
            measured={"kind": kind, "module": load.model, "missing": len(load.missing), "own": load.own,
                      "unexpected": len(load.unexpected), "prefix": load.prefix})


def _statistics(load: LoadedKeys) -> Iterator[Finding]:
    """Running statistics that did not come along and were used: the layers were trained with others."""
    if not load.used:
        return
    yield RULE.finding(
        f"load_state_dict of {load.model} got the weights of {len(load.fresh)} BatchNorm layers ({load.fresh[0]}, ...) "
        f"and no running_mean and running_var for them, and {len(load.used)} were then called in evaluation mode: they "
        "normalise with mean 0 and variance 1, as before the first batch", load.at.where(), SOURCE,
        bearing=Bearing.CAUSE, measured={"kind": "statistics", "module": load.model, "missing": len(load.missing),
                                         "own": load.own, "unexpected": len(load.unexpected), "prefix": load.prefix})
