"""What an optimizer makes smaller rises with what is to be small and falls with what is to be large.

Optimizers minimise. `-cross_entropy(...)` makes predictions worse with every step; a log-probability without a minus (a
policy gradient, a likelihood) lowers the probability of what was good. A bonus for entropy is subtracted from a loss;
the ratio of new to old probabilities, weighted by advantages, enters it with a minus, and not upside down. The
divergence from a reference policy is a penalty: subtracted from a reward, added to a loss. The entropy of average
probabilities keeps experts and codes in use, so a loss subtracts it. `maximize=True` turns all of these round. A sum in
which a quantity has both signs says nothing. A gradient by data (a penalty on the slope, the residual of a differential
equation, a force) that was taken without a graph changes the value of a loss and no weight.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from traindx_tools.invariants.breach import Breach, pages
from traindx_tools.knowledge.tables import table
from traindx_tools.program.entities import Objective
from traindx_tools.program.known import Known
from traindx_tools.program.program import Program

RULES = pages("signs", ("C148", "C182", "C248", "C261", "C291"))


def check(program: Program) -> Iterator[Breach]:
    """Look at every objective; once for each place."""
    told: set[tuple[str, str]] = set()
    for objective in program.objectives:
        for breach in (*_whole(objective), *_parts(objective)):
            if (breach.id, str(breach.at)) not in told:
                told.add((breach.id, str(breach.at)))
                yield breach


def _whole(objective: Objective) -> Iterator[Breach]:
    """A loss of a library turned round, by a minus or by the optimizer; a log-probability as it is."""
    if not objective.alone or objective.optimizers > 1:
        return
    if objective.maximized_by:
        plain = objective.form == "loss" and objective.against_data and not objective.meant
        if plain and objective.maximized_by != "?":
            yield Breach("C148", f"{objective.maximized_by} is made with maximize=True, and backward() at "
                         f"{objective.at} is called on a loss (computed at {objective.made}): every step makes it "
                         "larger", objective.at, Known.GUESSED,
                         {"kind": "maximised", "backward_line": objective.at.line})
        return
    why = {"negated": "a loss with a minus before it: minimising it maximises the loss",
           "log_prob": "a log-probability without a minus: minimising it makes what was sampled or observed less "
                       "likely"}.get(objective.form)
    if why:
        yield Breach("C148", f"backward() at {objective.at} is called on {why} (computed at {objective.made})",
                     objective.made, Known.GUESSED, {"kind": objective.form, "backward_line": objective.at.line})


def _parts(objective: Objective) -> Iterator[Breach]:
    """Each quantity that has one sign, against the sign that it may not have."""
    row: dict[str, Any]
    for row in table("quantities.toml")["wanted"]:
        signs = objective.quantities.get(row["quantity"], ())
        beside = row.get("beside")
        if not signs or objective.maximized_by or set(signs) != {row.get("wrong", signs[0])}:
            continue
        if beside is None or any(b in objective.quantities for b in beside):
            where = objective.places.get(row["quantity"], objective.made)
            end = "the sign is wrong " if row.get("wrong") else ""
            said = f"the loss at {objective.made} {row['why']}; {end}({where.quote})"
            yield Breach(row["id"], said, where,
                         measured={"kind": row["quantity"], "sign": signs[0], "term": where.quote})
