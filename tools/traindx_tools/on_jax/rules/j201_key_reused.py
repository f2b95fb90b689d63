"""One key is used twice in a function: two draws, a draw and a split, or two splits.

Keys are followed through the function's jaxpr: through splits, folds, slices and stacks, calls, loops, branches and
vmap, typed keys and raw ones alike. Two keys are one where they are computed in the same way from the same values;
that covers fold_in with the same number twice, the same seed written twice and the same element taken twice, which
`jax_debug_key_reuse` is documented not to see or sees only for typed keys.

Using a parent after its split counts: children and draws of one key are not independent. `fold_in` does not use up its
key. What a backward pass computes again, `jax.random.clone`, and draws in different branches of one cond do not count.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_jax.keys.uses import DRAW, SEVERAL_ELEMENTS
from traindx_tools.rules import Rule

if TYPE_CHECKING:
    from traindx_tools.on_jax.keys.uses import Reuse, Use
    from traindx_tools.on_jax.places import Place

RULE = Rule(
    id="J201",
    name="jax-key-reused",
    title="One random key is used twice",
    severity=Severity.HIGH,
    sees="every draw and split of a key in the function's jaxpr",
    matters="the same key gives the same numbers: noise, masks, samples or initial weights are equal or correlated",
    alike=("a function that is evaluated twice with the same key on purpose (a check of gradients, common noise for "
           "two networks that are compared)", "a parent that was only split and is not used again is fine"),
    confirm=("print both draws: they are equal for equal shapes", "JAX_DEBUG_KEY_REUSE=1 (typed keys only)"),
)


def check(reuse: Reuse, function: str) -> Iterator[Finding]:
    """The finding for a reuse: it stands at the second use and names the first.

    Where both uses are one line of a helper, it stands at the second of the two calls of it.
    """
    first, second = reuse.first, reuse.second
    sites = reuse.sites
    one, place = first.place, second.place or first.place
    if sites is not None and first.place == second.place:
        one, place = sites
    where = Location(file=place.file, line=place.line, quote=place.quote) if place else Location(module=function)
    yield RULE.finding(
        _statement(reuse, function), where, "the traced function", bearing=Bearing.CAUSE,
        severity=None if DRAW in (first.use, second.use) else Severity.MEDIUM,
        measured={"kind": reuse.kind, "first_use": first.use, "second_use": second.use, "function": function,
                  "first_file": one.file if one else None, "first_line": one.line if one else None,
                  "second_line": place.line if second.place and place else None,
                  "first_call": str(sites[0]) if sites else None, "second_call": str(sites[1]) if sites else None,
                  "code": place.quote if place else "", "path": second.path})


def _statement(reuse: Reuse, function: str) -> str:
    first, second = reuse.first, reuse.second
    if reuse.kind == SEVERAL_ELEMENTS:
        return (f"{function}: the keys of the {_words(second, None)} are copies of one key: every element gets the "
                "same numbers")
    sites = reuse.sites or (None, None)
    return (f"{function}: the key of the {_words(second, sites[1])} was used before, by the "
            f"{_words(first, sites[0])}: {_effect(first, second)}")


def _words(use: Use, site: Place | None) -> str:
    """What uses it and where; `site`: the line that called what holds it, where that is another line."""
    at = f" at {use.place}" if use.place else ""
    if site is not None and (use.place is None or (site.file, site.line) != (use.place.file, use.place.line)):
        at += f", called at {site},"
    return f"{use.use}{at}" + (f" ({', '.join(use.path)})" if use.path else "")


def _effect(first: Use, second: Use) -> str:
    if first.use == second.use:
        return "both give the same numbers" if first.use == DRAW else "both give the same children"
    return "the draw and what is drawn from the children are not independent"
