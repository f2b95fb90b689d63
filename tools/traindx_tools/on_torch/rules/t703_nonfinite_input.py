"""The data that goes into the model is not finite.

NaN or +inf in an input makes everything after it NaN. A mask of 0 and -inf that is added to attention scores is
legitimate and left alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_torch.rules.batches import SOURCE, TensorSeen, at
from traindx_tools.rules import Rule

RULE = Rule(
    id="T703",
    name="nonfinite-input",
    title="The input holds NaN or inf",
    severity=Severity.CRITICAL,
    sees="floating tensors among the arguments of the model, and targets, in measured steps",
    matters="the loss is NaN from that batch on, whatever the model is",
    alike=("an additive mask of 0 and -inf", "NaN that a layer makes out of finite inputs: see T101"),
    confirm=("print([(n, t.isnan().sum()) for n, t in batch.items()])",),
)


def check(tensors: Sequence[TensorSeen], rank: int = 0) -> Iterator[Finding]:
    """One finding a tensor: the first step in which it is not finite."""
    named: set[str] = set()
    for t in tensors:
        if not t.is_float or t.name in named or not (t.nan or t.inf or _odd(t)):
            continue
        named.add(t.name)
        size = 1
        for n in t.shape:
            size *= n
        bad = int(t.nan + t.inf + t.minus_inf)
        yield RULE.finding(
            f"{t.name} of shape {list(t.shape)} holds {bad} of {size} values that are not finite ({int(t.nan)} nan, "
            f"{int(t.inf)} inf, {int(t.minus_inf)} -inf) at step {t.step}", at(t.step, rank, t.module), SOURCE,
            bearing=Bearing.CAUSE,
            measured={"name": t.name, "nan": int(t.nan), "inf": int(t.inf + t.minus_inf), "share": bad / max(size, 1)})


def _odd(t: TensorSeen) -> bool:
    """-inf among values that are no mask: a mask has no value above 0."""
    return bool(t.minus_inf and t.high > 0 and "mask" not in t.name and "bias" not in t.name)
