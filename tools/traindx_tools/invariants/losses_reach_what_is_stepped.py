"""A loss has a graph, and it reaches every part that its optimizer steps.

The graph ends at `.item()`, `.detach()`, `.data`, `argmax`, NumPy, `torch.tensor(loss)` and at what is computed under
`no_grad`. Torch refuses backward on such a value unless somebody sets `requires_grad` on it; then it runs, fills the
gradient of that one number and nothing else. A part whose output is cut before any loss sees it (a fake that was
detached for the discriminator and is used again, features that go through `.detach()`) gets no gradient and stays at
its initialisation; everything behind it trains normally.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from traindx_tools.invariants.breach import Breach, pages
from traindx_tools.program.entities import Model
from traindx_tools.program.known import Known
from traindx_tools.program.moments import Section, loops
from traindx_tools.program.program import Program
from traindx_tools.program.timeline import Moment

RULES = pages("torch", ("C145", "C147"))
MOST_TRACES = 55
"""Places from which a loss comes beyond which they are not all known: a reader keeps 60."""


def check(program: Program) -> Iterator[Breach]:
    """Look at every loop that trains."""
    for part in {(p.made, str(p.at)): p for p in program.cut_parts}.values():
        said = (
            f"{part.at.quote} at {part.at} draws from what a model gave without a gradient (rsample() has one), and "
            f"the draw goes into the module called at {part.made}: the loss behind it gives the model no gradient"
        ) if part.drawn else (
            f"The module made at {part.made}, which the optimizer at {part.optimizer} was given, is called at "
            f"{part.at} where autograd records nothing, or is cut off behind it, and nowhere else: its optimizer steps "
            "without a gradient")
        yield Breach("C147", said, part.at, measured={"kind": "drawn" if part.drawn else "cut", "made_at": part.made})
    told: set[str] = set()
    for run in program.runs:
        around = [loops(path)[:1] for _, path in run.acts(Moment.BACKWARD)]
        for loop in {id(one): one for some in around for one in some}.values():
            passes = [a for a, _ in loop.acts(Moment.BACKWARD)]
            yield from _copied(loop, told)
            for act in passes:
                if act.cut is not None:
                    yield Breach(
                        "C145", f"backward() at {act.at} is called on a value without a graph to the model: "
                        f"{act.cut.text}", act.cut.at, act.cut.known, {"kind": "cut", "backward_line": act.at.line})
            if all(a.cut is None and a.graph and len(a.traces) < MOST_TRACES for a in passes):
                yield from _unreached(loop, program.opaque | frozenset(t for a in passes for t in a.traces))


def _copied(loop: Section, told: set[str]) -> Iterator[Breach]:
    """Losses whose numbers alone go into what is sent backward; where their graph does too, they are weights of it."""
    stepped = [m for a, _ in loop.acts(Moment.STEP) for o in a.optimizers for m in o.holds or ()]
    sent = frozenset(t for a, _ in loop.acts(Moment.BACKWARD) for t in a.traces)
    for act, _ in loop.acts(Moment.BACKWARD):
        for at, source, models in act.copies if act.cut is None and len(sent) < MOST_TRACES else ():
            if source not in sent and str(at) not in told and any(m.inside & models for m in stepped):
                told.add(str(at))
                yield Breach(
                    "C147", f"The loss computed at {source} is copied into a new tensor at {at}, which has no graph: "
                    f"it counts in the value that is sent backward at {act.at} and gives the model no gradient", at,
                    act.known, {"kind": "copied", "backward_line": act.at.line})


def _unreached(loop: Section, sent: frozenset[Hashable]) -> Iterator[Breach]:
    called = [a for a, _ in loop.acts(Moment.FORWARD) if a.models]
    steps = [a for a, _ in loop.acts(Moment.STEP) if a.known is not Known.GUESSED]
    held: dict[int, Model] = {id(m): m for a in steps for o in a.optimizers for m in o.holds or ()}
    told = frozenset(i for a, _ in loop.acts(Moment.BACKWARD) for i in a.reached)
    parts = [m for a in called for m in a.models or () if m.learning and not m.set_aside and m.inside & told]
    held.update((id(m), m) for m in parts if any(m.inside < h.inside for h in list(held.values())))
    for model in held.values():
        mine = [a for a in called if a.models == (model,)]
        related = [a for a in called for m in a.models or () if m is model or m.inside & model.inside]
        if model.frozen or not mine or not all(a.traces for a in mine) or any(a.traces & sent for a in related):
            continue
        act = next((a for a in mine if a.gradients), mine[0])
        yield Breach(
            "C147", f"The output of the module made at {model.made}, computed at {act.at}, is cut off (detached or "
            "without gradients) before every loss of the loop: its optimizer steps without a gradient", act.at,
            measured={"kind": "cut", "made_at": model.made})
