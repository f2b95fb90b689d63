"""The roles of models, from what was done with them. What a role permits is for the checks to know."""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.program.entities import Model, Role
from traindx_tools.program.program import Program
from traindx_tools.program.timeline import Moment

_EVALUATIONS = (Moment.EVALUATION.value, Moment.EVALUATION_IN_TRAIN.value)


def roles_of(program: Program) -> Iterator[tuple[Model, tuple[Role, ...]]]:
    """Each model with its roles, in the order of the program."""
    trained = [m for m in program.models if _is_trained(m)]
    several = len(trained) > 1 and sum(o.steps > 0 for o in program.optimizers) > 1
    for model in program.models:
        roles: list[Role] = []
        if model in trained:
            roles.append(Role.TRAINED)
            if model.held < model.parameters:
                roles.append(Role.PROBED)
            if several:
                roles.append(Role.ADVERSARY)
            if any(model.calls.get(c) for c in _EVALUATIONS):
                roles.append(Role.EVALUATED)
        elif model.parameters and model.moved:
            roles.append(Role.AVERAGE)
        elif trained and not model.reached:
            roles.append(Role.REFERENCE)
        elif any(model.calls.get(c) for c in _EVALUATIONS):
            roles.append(Role.EVALUATED)
        yield model, tuple(roles) or (Role.IDLE,)


def _is_trained(model: Model) -> bool:
    return model.held > 0 and model.reached > 0
