"""What is trained is in eval mode while it is evaluated.

In training mode Dropout removes units in the evaluation too, and BatchNorm normalises with the evaluation's batch and
updates its running statistics with it. A forward pass without gradients that belongs to a training step (a target, a
teacher) is left alone, and so is one that is drawn several times with the same inputs, whose result nobody takes
(statistics are refreshed), or before which the very function asks for training mode, where nothing inside keeps
statistics. A `train()` behind the passes, at the end of the function, is for the training that follows. A teacher whose
weights come from a file, frozen and only read, answers with Dropout too as long as nobody calls its `eval()`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traindx_tools.finding import Severity
from traindx_tools.invariants.breach import Breach, Remedy, pages
from traindx_tools.invariants.scenarios import weakest
from traindx_tools.program.courses import is_trained, passes_of
from traindx_tools.program.entities import Model
from traindx_tools.program.gradients import optimizers_of
from traindx_tools.program.known import Known
from traindx_tools.program.moments import Act, Section, loops, training_loop
from traindx_tools.program.program import Program
from traindx_tools.program.timeline import Moment

RULES = pages("modes", ("C165",))


def check(program: Program) -> Iterator[Breach]:
    """Look at every module that is called without gradients."""
    modes_left_open = any(a.training is not True for r in program.runs for a, _ in r.acts(Moment.MODE))
    training = [r for r in program.runs if {Moment.BACKWARD, Moment.STEP} <= r.has]
    told: set[int] = set()
    for run in program.runs:
        if run.framework or Moment.FORWARD not in run.has or (run not in training and modes_left_open):
            continue
        in_steps = {id(training_loop(path)) for _, path in run.acts(Moment.BACKWARD)}
        for act, path in run.acts(Moment.FORWARD):
            around = loops(path)
            yield from _only_read(program, run, act, told)
            if act.gradients is not False or act.unused or act.again or (around and id(around[-1]) in in_steps):
                continue
            model = act.models[0] if act.models else None
            if model is None or not model.by_mode or id(model) in told or not _in_training_mode(
                    program, run, act, run in training):
                continue
            trained = [is_trained(model, r) for r in training]
            if True in trained or (not _in_each_step(path) and _follows(program, training, model)):
                told.add(id(model))
                yield _breach(act, model, bool(around))


def _in_each_step(path: Sequence[Section]) -> bool:
    """Whether it stands in what steps, and not in what is done there once in many turns: a teacher."""
    at = max((i for i, s in enumerate(path) if s.kind != "arm" and Moment.BACKWARD in s.has), default=None)
    if at is None or any(a.kind == "every" for s in path[at:] if s.kind == "arm" for a in s.condition.atoms()):
        return False
    loops_below = ([s for s in below if s.kind == "loop" and s not in path]
                   for _, below in path[at].acts(Moment.BACKWARD))
    return not all(loops_below)


def _follows(program: Program, training: list[Section], model: Model) -> bool:
    """Whether it is an average of what is trained, copied where nothing puts that into eval mode."""
    held = frozenset(i for r in training for o in optimizers_of(r) for m in o.holds or () for i in m.inside)
    return bool(model.average_of & held) and not any(
        a.training is not True and a.at.function == model.born.function and any(
            m.inside & model.average_of for m in a.models or ()) for r in program.runs for a, _ in r.acts(Moment.MODE))


def _only_read(program: Program, run: Section, act: Act, told: set[int]) -> Iterator[Breach]:
    """A module that is only read, called in training mode in all scenarios where another one trains."""
    model = act.models[0] if act.models else None
    if model is None or not model.only_read or not model.by_mode or id(model) in told or act.unused or act.again or (
            training_loop(run.path_to(act)) is None):
        return
    found = [c for scenario in passes_of(program, run, act) for c in scenario]
    if found and all(c.modes == {True} and c.by is None for c in found):
        told.add(id(model))
        layer = next(iter(model.by_mode.values()))
        yield Breach(
            "C165", f"The frozen module made at {model.made}, whose weights are read from a file, is called in "
            f"training mode at {act.at}: it has {layer} and eval() is not called on it", act.at,
            weakest(act.known, Known.DERIVED), {"kind": "only read", "layer": layer.partition(" ")[0]}, Severity.HIGH)


def _in_training_mode(program: Program, run: Section, act: Act, trains: bool) -> bool:
    """Whether each time, in every scenario, the module is in training mode and not because this function asked for it.
    """
    found = [c for scenario in passes_of(program, run, act) for c in scenario]
    asked = any(c.by is not None and c.model is not None and not c.model.keeps_statistics and _asks_for(run, c.by, act)
                for c in found)
    late = not trains or any(c.after_training for c in found)  # what comes before training asks for a shape
    return bool(found) and late and all(c.modes == {True} for c in found) and not asked


def _asks_for(run: Section, by: Act, act: Act) -> bool:
    """Whether a change of mode is made for a pass: before it, in the same call of the function in which the pass stands
    (or in what that calls). A change behind the pass, which a later call then finds, is made for the training."""
    home = next((s for s in reversed(run.path_to(act)) if s.kind in ("call", "root")), None)
    if home is None or Moment.BACKWARD in home.has:
        return False
    order = [id(a) for a, _ in home.acts(Moment.MODE, Moment.FORWARD)]
    return id(by) in order and id(act) in order and order.index(id(by)) < order.index(id(act))


def _breach(act: Act, model: Model, in_loop: bool) -> Breach:
    layer = next(iter(model.by_mode.values()))
    return Breach(
        "C165",
        f"The {'average of the ' if model.average_of else ''}trained model is evaluated "
        f"in training mode at {act.at}: it has {layer} and eval() was not called before",
        act.at, weakest(act.known, Known.DERIVED), {"kind": "train mode", "layer": layer.partition(" ")[0]},
        Severity.HIGH if in_loop else Severity.MEDIUM, Remedy("evaluate in eval mode", act))
