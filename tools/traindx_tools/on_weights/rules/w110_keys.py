"""The names of two checkpoints do not match, and what renaming would match them.

Loading by name with `strict=False` skips what does not match and says nothing: the statement counts the parameters that
would stay as they were initialised. The renaming is found by laying names with the same end and shape beside each
other: `module.`, `_orig_mod.`, `base_model.model.` and any other prefix, or layers that are numbered from another
start.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_weights.renaming import Matched, match
from traindx_tools.on_weights.seen import Seen
from traindx_tools.rules import Rule

RULE = Rule(
    id="W110",
    name="keys-of-two-files",
    title="Names of two checkpoints do not match",
    severity=Severity.HIGH,
    sees="Names and shapes of the tensors of two files, as they are and after a renaming that is found.",
    matters="What does not match by name stays at its random initialisation, in silence where strict=False.",
    alike=("two different architectures", "a new head on purpose"),
    confirm=("print what load_state_dict(..., strict=False) returns", "load with strict=True"),
)


def check(seen: Seen) -> Iterator[Finding]:
    """The main parts of two files."""
    other = seen.other
    if other is None or not seen.main:
        return
    found = match(seen.part.tensors, other.part.tensors)
    if found.renaming is not None:
        yield _renamed(seen, other, found)
    elif found.missing or found.unexpected:
        yield _apart(seen, other, found)
    if found.shapes:
        yield _shapes(seen, other, found)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _share(seen: Seen, found: Matched) -> str:
    total = sum(t.size for t in found.first.values())
    return f"{found.lost:,} of {total:,} values ({found.lost / max(1, total):.0%})"


def _renamed(seen: Seen, other: Seen, found: Matched) -> Finding:
    return RULE.finding(
        f"{len(found.pairs)} of the {len(found.first)} names of {seen.path} are in {other.path}, "
        f"{found.with_renaming}; loaded as they are, {_share(seen, found)} would stay random"
        f"{', and the others hold what is of other layers' if found.renaming and found.renaming.offset else ''}"
        f"{f'; without a partner: {_listed(found.missing)}' if found.missing else ''}",
        seen.where(next((a for a, b in found.renamed if a != b), found.renamed[0][0])), seen.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "offset" if found.renaming and found.renaming.offset else "prefix",
                  "renaming": str(found.renaming), "matched": len(found.pairs), "renamed": len(found.renamed),
                  "missing": len(found.missing), "unexpected": len(found.unexpected), "lost": found.lost})


def _apart(seen: Seen, other: Seen, found: Matched) -> Finding:
    """Without a renaming: told as a fault where most names match, else a remark that these are different models."""
    names = found.missing or found.unexpected
    related = len(found.pairs) >= 0.5 * len(found.first)
    missing = f"lacks {len(found.missing)} of the {len(found.first)} names of {seen.path} ({_listed(found.missing)}): "\
              f"{_share(seen, found)} would stay random" if found.missing else ""
    more = f"has {len(found.unexpected)} names that {seen.path} lacks ({_listed(found.unexpected)})"
    return RULE.finding(
        f"{other.path} {' and '.join(p for p in (missing, more if found.unexpected else '') if p)}"
        f"{'' if related else '; these look like different models'}",
        seen.where(names[0]), seen.path, bearing=Bearing.SIGN,
        severity=Severity.MEDIUM if related and found.missing else Severity.LOW if related else Severity.INFO,
        measured={"kind": "missing" if found.missing else "unexpected", "matched": len(found.pairs),
                  "missing": len(found.missing), "unexpected": len(found.unexpected), "lost": found.lost})


def _shapes(seen: Seen, other: Seen, found: Matched) -> Finding:
    told = [f"{n} ({list(found.first[n].shape)} and {list(found.second[n].shape)})" for n in found.shapes]
    fresh = _new_output(found)
    return RULE.finding(
        f"{len(found.shapes)} tensors have other shapes in {seen.path} and {other.path}: {_listed(told)}"
        f"{'; all others fit: a new output layer' if fresh else ''}",
        seen.where(found.shapes[0]), seen.path, bearing=Bearing.CAUSE,
        severity=Severity.LOW if fresh else Severity.MEDIUM,
        measured={"kind": "shape", "name": found.shapes[0], "shapes": len(found.shapes)})


def _new_output(found: Matched) -> bool:
    """Whether all that differs is how many values the last layer gives: a head made anew for other classes."""
    layers = {n.rpartition(".")[0] for n in found.shapes}
    last = list(found.first)[-1].rpartition(".")[0]
    pairs = [(found.first[n].shape, found.second[n].shape) for n in found.shapes]
    outputs = {(a[:1], b[:1]) for a, b in pairs}
    return layers == {last} and len(outputs) == 1 and all(a[1:] == b[1:] for a, b in pairs)
