"""What operations give a loss, and what follows where it wants something else, read from `domains.toml`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from traindx_tools.knowledge.contracts import Contract, optax_losses, torch_losses
from traindx_tools.knowledge.tables import table


@dataclass(frozen=True)
class Clash:
    """One row: an argument of a loss that wants one domain is given another."""

    id: str
    severity: str
    why: str
    losses: tuple[str, ...] = ()
    """The only losses of which it is true; () for all."""


def given_by(operation: str) -> str:
    """The domain of what an operation gives: "softmax" gives "probabilities"; "" where that is not known."""
    return str(table("domains.toml")["gives"].get(operation, [""])[0])


def written(operation: str) -> str:
    """What an operation gives, in words."""
    return str(table("domains.toml")["gives"][operation][1])


@cache
def clashes() -> Mapping[tuple[str, str], Clash]:
    """The rows by (wanted, given)."""
    return {(wanted, given): Clash(row[0], row[1], row[2], tuple(row[3:]))
            for wanted, rows in table("domains.toml")["clash"].items() for given, row in rows.items()}


@cache
def passing() -> frozenset[str]:
    """Methods whose result is the same thing in another form."""
    return frozenset(table("domains.toml")["passes"]["methods"])


def contract_of(loss: str, qualified: str = "") -> Contract | None:
    """The contract of a loss of torch or optax, by the name of its function. `qualified`: its whole name where that is
    known: optax has losses of the names of torch's that take something else (`ctc_loss`)."""
    if qualified.split(".")[0] == "optax":
        return optax_losses().get(loss)
    return torch_losses().get(loss) or optax_losses().get(loss)


@cache
def losses() -> tuple[str, ...]:
    """The losses of which a contract is known."""
    return tuple({**torch_losses(), **optax_losses()})
