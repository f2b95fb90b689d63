"""One key is used by several calls of a program: by two jitted functions, or by a function of `jax.random` and a step.

Keys are compared by their bytes, so that it does not matter how they got there: the key of the initialisation that is
passed on to the first training step, a `PRNGKey(0)` that is written twice, a parent that is used after its split in
another function. What is drawn at the two places is equal or correlated. It is often harmless (one of them only
splits), so it is a remark unless both draw.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rules import Rule

RULE = Rule(
    id="J204",
    name="jax-key-in-several-places",
    title="One random key is used in two places of a program",
    severity=Severity.LOW,
    sees="the bytes of the keys that jitted functions and eager functions of jax.random get",
    matters="initial weights, masks and noise that should be independent are not",
    alike=("two networks that are compared and get the same noise on purpose",),
    confirm=("jax.random.split once at the start, one child for each purpose",
           "JAX_DEBUG_KEY_REUSE=1 (typed keys only)"),
)


@dataclass(frozen=True)
class KeyUse:
    """A use of a key in the running program."""

    what: str
    """`step(dropout_key)` or `jax.random.normal`."""
    place: tuple[str, int] | None
    splits: bool
    """It only splits the key."""


def check(first: KeyUse, second: KeyUse) -> Iterator[Finding]:
    """The finding for two uses."""
    both = not first.splits and not second.splits
    file, line = second.place or (None, None)
    where = Location(file=file, line=line) if file is not None else Location(module=second.what)
    yield RULE.finding(
        f"the key that {_words(second)} uses was used before, by {_words(first)}", where, "the running process",
        bearing=Bearing.SIGN, severity=None if both else Severity.INFO,
        measured={"kind": "several places", "first": first.what, "second": second.what,
                  "first_use": "split" if first.splits else "draw", "second_use": "split" if second.splits else "draw",
                  "first_line": first.place[1] if first.place else None})


def _words(use: KeyUse) -> str:
    return use.what + (f" at {use.place[0]}:{use.place[1]}" if use.place else "")
