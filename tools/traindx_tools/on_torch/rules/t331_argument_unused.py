"""The output of a model does not depend on an argument that differs between samples.

One training call is repeated on a copy, with an argument's rows exchanged: the output stays the same to the last bit,
in evaluation and in training mode. `kind`: "input" where this is so for all arguments together, so that the model says
the same of every sample; "argument" where others matter (a condition, a mask or a class label that is passed and not
used). Arguments that are equal for all samples are not judged.

A whole step on copies is asked the same of its loss: `kind` "loss" where the output depends on an argument and neither
the loss nor a gradient does, "elements" where that is so for some columns of an argument, or a quarter of the elements
of an image or a sequence. These are facts, and often meant.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_torch.rules.dependence import SOURCE, Where
from traindx_tools.rules import Rule, Threshold

if TYPE_CHECKING:
    from traindx_tools.on_torch.captured.loss_inputs import LossIgnores
    from traindx_tools.on_torch.captured.questions import Unused

RULE = Rule(
    id="T331",
    name="argument-unused",
    title="The output does not depend on an argument",
    severity=Severity.HIGH,
    sees="the output of a copy of the model with one argument's rows exchanged between samples",
    matters="what is passed in is not learned from",
    alike=("an argument that is used by a later call alone", "an identifier that is passed through for a log",
           "an output that is returned for a log or for evaluation and enters no loss",
           "columns that are cut off or masked on purpose; borders that a strided convolution leaves out"),
    confirm=("torch.equal(model(x, c), model(x, c.roll(1, 0)))",),
    thresholds={"change": Threshold(0.0, "of any value of the output", "an argument that is used changes some value")},
)


def check(seen: Unused | None, where: Where) -> Iterator[Finding]:
    """At most one finding."""
    if seen is None:
        return
    names = ", ".join(seen.arguments[:4])
    if seen.whole:
        yield RULE.finding(
            f"the output of {where.model} is the same to the last bit when all of its inputs ({names}) are exchanged "
            "between samples: it does not depend on them", where.at(), SOURCE, bearing=Bearing.CAUSE,
            severity=Severity.CRITICAL, measured={"kind": "input", "arguments": names, "module": where.model})
    else:
        yield RULE.finding(
            f"the output of {where.model} is the same to the last bit when the argument {names} is exchanged between "
            f"samples ({seen.of} arguments differ between them)", where.at(), SOURCE, bearing=Bearing.SIGN,
            severity=Severity.MEDIUM, measured={"kind": "argument", "arguments": names, "module": where.model})


def check_loss(seen: Sequence[LossIgnores], where: Where) -> Iterator[Finding]:
    """One finding an argument."""
    for one in seen:
        at = Where(f"{one.model}({one.argument})", where.step, where.rank).at()
        what = f"the argument {one.argument} of {one.model}" if one.whole else (
            f"{one.elements} of {one.of} elements of the argument {one.argument} of {one.model} ({one.examples})")
        also = ", though the output does" if one.whole else ""
        yield RULE.finding(
            f"loss and gradients of a step stay the same to the last bit when {what} {'is' if one.whole else 'are'} "
            f"exchanged between samples: they do not depend on {'it' if one.whole else 'them'}{also}", at, SOURCE,
            bearing=Bearing.COMPANION, severity=Severity.LOW if one.whole else Severity.INFO,
            measured={"kind": "loss" if one.whole else "elements", "arguments": one.argument, "module": one.model,
                      "elements": one.elements, "of": one.of})
