"""Where an optimizer was built over parts of a model, every part that the loss is computed through is in one of them.

`AdamW([{"params": net.trunk.parameters()}, {"params": net.neck.parameters()}])` holds what is named in it and nothing
else: a head that was forgotten, or put there after the optimizer was built, gets gradients and is never updated. The
other parts learn around its random features, so that the loss falls and stops too high. Left alone: what is frozen,
tied, loaded, chosen one by one, held by another optimizer, and a probe (one group behind parts that are all held by
none).
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.invariants.breach import Breach, Remedy, pages
from traindx_tools.program.entities import Optimizer
from traindx_tools.program.known import Known
from traindx_tools.program.moments import Act
from traindx_tools.program.parts import PartCall
from traindx_tools.program.program import Program
from traindx_tools.program.timeline import Moment

RULES = pages("ownership", ("C276",))


def check(program: Program) -> Iterator[Breach]:
    """Compare the parts of every model with what all optimizers hold together."""
    acts = [*(a for run in program.runs for a, _ in run.acts(Moment.MADE)), *program.before]
    made = {id(o): (o, a) for a in acts for o in a.optimizers}
    changes = [a.change for r in program.runs for a, _ in r.acts(Moment.PARAMETERS) if a.change is not None]
    holders = [o for o, _ in made.values()]
    known = all(o.given and not o.by_gradient and not any(g.chosen for g in o.given) for o in holders)
    if not holders or not known or any(c.kind in ("given", "frozen") for c in changes):
        return
    owned = frozenset(i for o in holders for g in o.given for i in g.inside)
    groups = sum(len(o.given) for o in holders)
    where = next((a for o, a in made.values() if o.grouped or len(o.given) > 1), None)
    for whole in {id(c.whole): c.whole for c in program.part_calls}.values():
        parts = [c for c in program.part_calls if c.whole is whole]
        held = [i for i, c in enumerate(parts) if c.part.inside & owned]
        left = [(i, c) for i, c in enumerate(parts) if not c.part.inside & owned and not c.part.set_aside]
        if where is None or not held or not left or whole.set_aside or groups < 2:
            continue
        upstream = all(i < held[0] for i, _ in left)
        yield _breach(where, [c for _, c in left], upstream, holders)


def _breach(made: Act, left: list[PartCall], upstream: bool, holders: list[Optimizer]) -> Breach:
    names = ", ".join(f"`{c.path}`" for c in left[:4]) + (f" and {len(left) - 4} more" if len(left) > 4 else "")
    first, many = left[0], len(left) > 1
    put, later = first.stored if not many else None, ""
    if put is not None:
        how = "replaced" if first.replaced else "put there"
        later = f" was {how} at {put.at}, after the optimizer was built at {made.at}, and"
    return Breach(
        "C276", f"{names} of {first.whole.name} (called at {first.at}){later} {'are' if many else 'is'} in no group of "
        f"the optimizer made at {made.at}, and no other one holds {'them' if many else 'it'}: "
        f"{'they get gradients and stay' if many else 'it gets gradients and stays'} at the initialisation", made.at,
        Known.GUESSED if upstream else Known.DERIVED,
        {"kind": "groups", "module": first.path, "modules": len(left), "made_at": first.part.made or "?"},
        remedy=Remedy("built later", made, put) if put is not None else None)
