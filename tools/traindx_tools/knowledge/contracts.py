"""What a loss asks of its arguments, what operations give, and where the two clash; read from tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from traindx_tools.knowledge.tables import table

DOMAINS = frozenset({"logits", "scores", "log-probabilities", "probabilities", "shares", "signs", "classes",
                     "log-rates", "rates", "counts", "variances", "lengths", "vectors", "values"})  # fmt: skip


@dataclass(frozen=True)
class Argument:
    """One argument. `axis`: over which it is normalised or holds classes; None: any, or none."""

    name: str
    domain: str
    axis: int | None = None
    switch: str = ""
    """Another argument of the call on which the domain depends, such as `log_input`; "" where none does."""
    switched: Mapping[Any, str] | None = None
    """The domain by the value of that argument."""

    def domain_for(self, settings: Mapping[str, Any]) -> str:
        """The domain in a call with these settings."""
        if self.switch and self.switched is not None:
            return self.switched.get(str(settings.get(self.switch)).lower(), self.domain)
        return self.domain


@dataclass(frozen=True)
class Contract:
    """One loss. `directed`: the prediction is its first argument, the target its second, and they are not exchangeable.
    `same_shape`: both have one shape, and what broadcasts is compared with what it does not belong to."""

    name: str
    arguments: tuple[Argument, ...]
    directed: bool
    same_shape: bool
    source: str


def contracts(entries: Mapping[str, Mapping[str, Any]]) -> dict[str, Contract]:
    """Contracts by the name of the function. Raises ValueError for an unknown domain, naming loss and argument."""
    return {name: _contract(name, entry) for name, entry in entries.items()}


def _contract(name: str, entry: Mapping[str, Any]) -> Contract:
    arguments = []
    for argument, said in entry.get("arguments", {}).items():
        domains = {said.get("domain"), *said.get("switched", {}).values()}
        if not domains <= DOMAINS:
            raise ValueError(f"{name}.{argument}: expected a domain of {', '.join(sorted(DOMAINS))}, got "
                             f"{', '.join(map(str, domains - DOMAINS))}")
        arguments.append(Argument(argument, said["domain"], said.get("axis"), said.get("switch", ""),
                                  said.get("switched")))
    return Contract(name, tuple(arguments), bool(entry.get("directed")), bool(entry.get("same_shape")),
                    str(entry.get("source", "")))


@cache
def torch_losses() -> Mapping[str, Contract]:
    """Contracts of `torch.nn.functional`, by function name."""
    return contracts(table("losses.toml"))


@cache
def optax_losses() -> Mapping[str, Contract]:
    """Contracts of `optax.losses`, by function name."""
    return contracts(table("optax_losses.toml"))


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
