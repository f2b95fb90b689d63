"""Each argument of a loss holds what the loss takes.

`CrossEntropyLoss` applies log-softmax, `BCEWithLogitsLoss` a sigmoid. Fed with probabilities they squash twice: the
loss cannot fall below -ln(e / (e + C - 1)) for C classes (0.744 for 4) and gradients are small. Scores that passed a
ReLU or a tanh are cut or bounded: a class cannot be made less likely than any other one that is cut, and with tanh no
probability rises above e / (e + (C - 1) / e). `NLLLoss`, `KLDivLoss` and `CTCLoss` want log-probabilities; raw scores
or probabilities make them negative and meaningless. A target of log-probabilities needs `log_target=True`. With the
trained model as the target and a fixed one as the input, a divergence is the reverse one, which seeks one mode. A
log-softmax in front of CrossEntropyLoss changes nothing (log-softmax of a log-softmax is itself) and is only
remarked.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Severity
from traindx_tools.invariants.breach import Breach, Remedy, pages
from traindx_tools.knowledge.contracts import Argument as Wanted
from traindx_tools.knowledge.contracts import Clash, Contract, clashes, contract_of, given_by, written
from traindx_tools.program.entities import Argument, LossCall
from traindx_tools.program.known import Known
from traindx_tools.program.moments import Act
from traindx_tools.program.program import Program
from traindx_tools.program.timeline import Moment

RULES = pages("losses", ("C102", "C180", "C236", "C242"))


def check(program: Program) -> Iterator[Breach]:
    """Look at every argument of every loss."""
    told: set[tuple[str, str]] = set()
    for call in program.loss_calls:
        contract = contract_of(call.function, call.qualified)
        if contract is None:
            continue
        if contract.directed and _is_exchanged(call, contract):
            yield _exchanged(call, contract)
            continue
        for wanted in contract.arguments:
            given = call.arguments.get(wanted.name)
            if given is None or wanted.switch in call.open:
                continue
            clash = clashes().get((wanted.domain_for(call.settings), given_by(given.made_by)))
            if clash is None or (clash.losses and call.function not in clash.losses):
                continue
            key = clash.id, str(given.made)
            if clash.id != "C242" or key not in told:  # evaluated by the same loss
                told.add(key)
                yield _breach(call, wanted, given, clash)
        if [a.domain for a in contract.arguments] == ["log-probabilities", "probabilities"]:
            yield from _reversed(call, *(call.arguments.get(a.name) for a in contract.arguments))


def _is_exchanged(call: LossCall, contract: Contract) -> bool:
    """Whether the model's output stands in the target's place, alone: what is wrong then is the order."""
    given, target = (call.arguments.get(a.name) for a in contract.arguments[:2])
    return bool(given and given.of_data and target and target.of_a_model and target.gradient)


def _exchanged(call: LossCall, contract: Contract) -> Breach:
    names = [a.name for a in contract.arguments[:2]]
    first, second = (call.arguments[n].text for n in names)
    return Breach(
        "C236", f"{call.name} at {call.at} is called with the target {first} first and the model's output {second} "
        "second: it takes (output, target)", call.at, call.known,
        {"kind": "swapped", "loss": call.name, "given_as_input": first, "given_as_target": second},
        remedy=Remedy("exchange", Act(Moment.LOSS, call.at, origin=call.origin), text=" ".join(names)))


def _breach(call: LossCall, wanted: Wanted, given: Argument, clash: Clash) -> Breach:
    where = f", made at {given.made}" if given.made is not None else ""
    at = call.at
    if clash.id == "C102" and given.made is not None and given_by(given.made_by) != "logits" and (
            call.at.function is None or given.made.function != call.at.function):
        at = given.made  # what squashes, where it stands in another function
    kind = "log target" if clash.id == "C180" else f"{given.made_by} into {call.function}"
    measured = {"kind": kind, "loss": call.name, "input": given.made_by, "argument": wanted.name,
                "made_at": str(given.made) if given.made is not None else None, "training": call.trains,
                "loss_line": call.at.line}
    target = Act(Moment.FORWARD, given.made, given.made_by, origin=given.origin) if given.made is not None else None
    return Breach(clash.id, f"{written(given.made_by)}{where} is fed to {call.name} at {call.at}, which {clash.why}",
        at, call.known, measured, Severity(clash.severity), Remedy("log target" if clash.id == "C180" else "raw scores",
        Act(Moment.LOSS, call.at, origin=call.origin), target, given.made_by))


def _reversed(call: LossCall, given: Argument | None, target: Argument | None) -> Iterator[Breach]:
    if given is not None and target is not None and (
            given.gradient is False or given.of_data) and target.gradient and target.of_a_model:
        yield Breach(
            "C180", f"{call.name} at {call.at} has the trained model as its target and a fixed distribution as its "
            "input: it is KL(model || fixed), not KL(fixed || model)",
            call.at, Known.GUESSED, {"kind": "reversed"}, Severity.MEDIUM)
