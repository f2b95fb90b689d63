"""What calls do to a training, read from `calls.toml`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from traindx_tools.knowledge.tables import table, words
from traindx_tools.program.timeline import Moment


@dataclass(frozen=True)
class Effect:
    """One row: what a call of this name does where it is called on such an object."""

    moment: Moment
    on: str
    takes: tuple[int, str] | None = None
    """Position and keyword of what it is given: an optimizer, a loss, parameters."""
    bound: tuple[int, tuple[str, ...]] | None = None
    also: Moment | None = None


@cache
def effects() -> Mapping[str, tuple[Effect, ...]]:
    """The rows by the last part of a call's name. Raises ValueError where a row names an unknown moment."""
    found: dict[str, tuple[Effect, ...]] = {}
    for row in table("calls.toml")["call"]:
        takes, bound = row.get("takes"), row.get("bound")
        effect = Effect(Moment(row["moment"]), row["on"], (takes[0], takes[1]) if takes else None,
                        (bound[0], tuple(bound[1:])) if bound else None,
                        Moment(row["also"]) if "also" in row else None)
        for name in row["names"]:
            found[name] = (*found.get(name, ()), effect)
    return found


@dataclass(frozen=True)
class Drop:
    """What drops units, a function or a layer, and where its probability stands."""

    home: str
    is_layer: bool
    probability: tuple[int, str]
    training: tuple[int, str] | None = None


@cache
def drops() -> Mapping[str, tuple[Drop, ...]]:
    """The rows by the last part of a call's name."""
    found: dict[str, tuple[Drop, ...]] = {}
    for row in table("calls.toml")["drop"]:
        probability, training = row["probability"], row.get("training")
        drop = Drop(row["home"], "layers" in row, (probability[0], probability[1]),
                    (training[0], training[1]) if training else None)
        for name in row.get("layers", []) + row.get("functions", []):
            found[name] = (*found.get(name, ()), drop)
    return found


@cache
def growing() -> Mapping[str, str]:
    """Calls that give a module parameters that it had not before: what they do, in words, by name."""
    return {str(row["name"]): str(row["text"]) for row in table("calls.toml")["grows"]}


def is_called_a_reference(name: str) -> bool:
    """Whether a module is called as one that is read and not trained: `self.target_net`, `ref_model`."""
    return not words("calls.toml", "reference", "pieces").isdisjoint(name.lower().replace(".", "_").split("_"))


@cache
def harmless() -> tuple[tuple[str, ...], frozenset[str]]:
    """Beginnings of the names of functions, and names of methods, that change no gradients whatever they are given."""
    rows = table("calls.toml")["harmless"]
    return tuple(rows["prefixes"]), frozenset(rows["methods"])
