"""How evaluated pairs that were trained on in reverse are told."""

from __future__ import annotations

from traindx_tools.finding import Value
from traindx_tools.rows.reversed_pairs import Reversed


def statement(seen: Reversed, caller: str, ids: bool) -> str:
    """One sentence with counts, chance and a few pairs. `caller`: the line that the evaluated one was called from."""
    sample = f", of a sample of one pair in {seen.rate}" if seen.rate > 1 else ""
    if ids:
        u, v = seen.pairs[0]
        named = f"({u}, {v}), trained on as ({v}, {u})" + "".join(f", ({a}, {b})" for a, b in seen.pairs[1:])
    else:
        named = "rows " + ", ".join(str(r) for r in seen.at) + " of the evaluated call"
    called = f", called at {caller}" if caller else ""
    return (f"{seen.hits:,} of {seen.rows:,} evaluated pairs ({seen.share:.0%}{called}) were trained on in the other "
            f"order, {seen.chance:.1%} by chance{sample}: {named}; {seen.both_ways:.0%} of the trained pairs are there "
            "both ways, so the relation has no direction and the split took the two orders for two samples")


def measured(seen: Reversed, ids: bool) -> dict[str, Value]:
    """The numbers of a finding."""
    out: dict[str, Value] = {
        "kind": "reversed", "share": round(seen.share, 4), "rows": seen.hits, "of": seen.rows,
        "chance": round(seen.chance, 5), "returned": round(seen.returned, 4), "both_ways": round(seen.both_ways, 4)}
    return out | ({"pairs": seen.pairs} if ids else {"at": seen.at})
