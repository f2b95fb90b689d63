"""What is trained is in training mode while it is trained.

After `eval()` Dropout is off and BatchNorm uses, and no longer updates, its running statistics, for all training that
follows until `train()` is called. An evaluation in the loop that trains has to be undone there; one before the loop
too. A network that is put into eval mode at the start of each epoch and trained at once is left as it is on purpose
(a probe, frozen statistics), and so is a part that an overridden `train()` keeps in eval mode. A model of which every
layer is known and none acts by mode is only remarked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traindx_tools.finding import Severity
from traindx_tools.invariants.breach import Breach, Remedy, pages
from traindx_tools.invariants.scenarios import weakest
from traindx_tools.program.courses import Called, calls, is_trained, passes_of
from traindx_tools.program.entities import Model
from traindx_tools.program.known import Known
from traindx_tools.program.moments import Act, Section, training_loop
from traindx_tools.program.program import Program
from traindx_tools.program.timeline import Moment

RULES = pages("modes", ("C104", "C166"))


def check(program: Program) -> Iterator[Breach]:
    """Look at every module that is called with gradients where something trains."""
    for one in program.unused_results:
        if one.kind == "inference":
            yield Breach(
                "C104", f"{one.call} at {one.at} takes the name {one.name}, with which the next turn of the loop "
                "trains: from then on it trains in inference mode", one.at, one.known, {"kind": "inference copy"})
    for run in program.runs:
        if run.framework or not {Moment.BACKWARD, Moment.FORWARD, Moment.MODE} <= run.has:
            continue
        told = calls(program, run)
        seen: set[int] = set()
        for act, path in run.acts(Moment.FORWARD):
            if act.gradients is False or training_loop(path) is None:
                continue
            for these in ([c[at] for c in passes_of(program, run, act)] for at in (-1, 0)):
                by = these[0].by if these and all(c.modes == {False} for c in these) else None
                if by is None or these[0].model is None:
                    break  # what is trained at last in training mode is none of this invariant's
                if id(by) not in seen:
                    seen.add(id(by))
                    yield from _breaches(run, told, act, by, these[0].model)


def _breaches(run: Section, told: Sequence[Sequence[Called]], act: Act, by: Act, model: Model) -> Iterator[Breach]:
    held = [is_trained(m, run) for m in by.models or () if m.inside & model.inside]
    trained = True if True in held else None if None in held else False
    around = training_loop(run.path_to(by))
    within = around is not None and around in run.path_to(act)
    evaluates = _evaluates(told, by, model)
    if trained is True and within and not evaluates and not by.restores:
        yield from _never_in_training_mode(run, by, model)
    if trained is False or (within and not evaluates and not by.restores) or not (within or evaluates or model.by_mode):
        return
    harmless = model.layers_known and not model.by_mode
    layers = sorted({text.partition(" ")[0] for text in model.by_mode.values()})
    if harmless and not within:
        return
    loop = around if within else training_loop(run.path_to(act))
    assert loop is not None
    known = weakest(by.known, Known.GUESSED if trained is None else Known.DERIVED)
    measured = {"kind": "in the loop" if within else "before the loop", "model": by.owner or model.name,
                "loop_line": loop.at.line, "layers": tuple(layers)}
    what = f"from then on {', '.join(layers)} stay in eval mode" if layers else "from then on it trains in eval mode"
    if harmless:
        what = "no layer of it depends on the mode"
    if within and by.restores:
        yield Breach(
            "C104", f"{by.owner or model.name}.train() at {by.at} sets the mode that was read at {by.restores}, after "
            f"eval(): it restores eval mode in the training loop at {loop.at}; {what}", by.at, known,
            {**measured, "kind": "restored"}, Severity.LOW if harmless else None)
    elif within:
        yield Breach(
            "C104",
            f"{by.owner or model.name}.eval() at {by.at} is not undone: no train() is called on the model in the "
            f"training loop at {loop.at}; {what}", by.at, known, measured, Severity.LOW if harmless else None,
            None if harmless else Remedy("train in the loop", by, act, str(loop.at.line)))
    else:
        layer = next(iter(model.by_mode.values()), "what acts by mode in it")
        yield Breach(
            "C166",
            f"eval() at {by.at} puts the model into eval mode before the training loop at line {loop.at.line}, and "
            f"train() is not called again: its {layer} never trains", by.at, known, measured,
            remedy=Remedy("train before the loop", by, act, str(loop.at.line)))


def _never_in_training_mode(run: Section, by: Act, model: Model) -> Iterator[Breach]:
    """It is put into eval mode for the very loop that trains it, perhaps on purpose: a remark where nothing in the
    program asks for training mode."""
    asked = any(a.training is not False for a, _ in run.acts(Moment.MODE))
    if not asked and (model.by_mode or model.set_aside == "pretrained"):
        yield Breach(
            "C104", f"{by.owner or model.name}.eval() at {by.at} puts the model into eval mode for the loop that "
            "trains it, and train() is called nowhere: Dropout is off while it trains", by.at, Known.GUESSED,
            {"kind": "on purpose", "model": by.owner or model.name}, Severity.LOW)


def _evaluates(told: Sequence[Sequence[Called]], by: Act, model: Model) -> bool:
    """Whether what is called next after a change to eval mode is an evaluation, in some scenario."""
    for scenario in told:
        for at, call in enumerate(scenario):
            if call.act is by:
                after = (c for c in scenario[at + 1:] if c.model is not None and c.model.inside & model.inside)
                first = next(after, None)
                if first is not None and first.act.gradients is False:
                    return True
    return False
