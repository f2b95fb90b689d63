"""Two checkpoints of one run: a part is the same to the bit, all else moved, and no freezing is cut like that.

Freezing follows the model: a beginning (a backbone), whole kinds of tensors (all but adapters, all biases), modules by
name. What is the same to the bit in some blocks of a stack and moved in blocks before them, or in exactly the tensors
of one shard file, with their biases and scales, is stale: it was written by an earlier save. So is, or was never in the
optimizer, a whole module that is the smaller part, does not stand at the input, and that neither a name nor the
configuration calls frozen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_weights.seen import Seen
from traindx_tools.on_weights.shard_distance import uneven
from traindx_tools.on_weights.step_counts import whole_modules
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="W118",
    name="stale-part",
    title="A part of a checkpoint is that of an earlier one",
    severity=Severity.HIGH,
    sees="Which tensors are the same to the bit in two checkpoints, against shard files and blocks of a stack.",
    matters="The file mixes two steps: the parts do not fit each other, and a resumed run starts from a worse model.",
    alike=("a frozen beginning", "adapters", "blocks unfrozen from the end",
           "a rate for each group of blocks that ends where a shard does"),
    confirm=("compare the time stamps of the shards", "compare the part with a third checkpoint"),
    thresholds={
        "tensors": Threshold(3, "tensors that are the same", "one may have had no gradient"),
        "share": Threshold(0.5, "of the blocks of the stack, at most", "more may be frozen"),
    },
)
_TENSORS, _SHARE, _MODULES = 3, 0.5, 3
_INPUT = re.compile(r"(?i)(?:^|[._])(?:wte|wpe|embed\w*|tok\w*|stem|patch\w*|conv_?in|conv_?1|bn_?1|input\w*)"
                    r"(?:[._]|$)")
"""Names of what the input goes into."""
_FROZEN = re.compile(r"(?i)frozen|teacher|target|backbone|pretrain|tower|text_?encoder|image_?encoder|vision|vgg|lpips"
                     r"|clip|reference|ref_?model|base_?model|vae|extractor|ema|codebook|quantiz|first_stage|perceptual")
"""Names of modules that are commonly kept as they are."""


def check(seen: Seen) -> Iterator[Finding]:
    """A shard file first: its blocks need no word of their own."""
    if seen.other is None or not seen.main:
        return
    changes = {n: c for n, c in seen.changes.items() if n in seen.stats and not _still_by_nature(seen, n)}
    still = {n for n, c in changes.items() if c == 0}
    if not still:
        yield from _distances(seen, changes)
    if len(still) < _TENSORS or len(changes) - len(still) < _TENSORS:
        return
    told = list(_shards(seen, changes, still)) or list(_blocks(seen, changes, still))
    yield from told or _modules(seen, changes, still)


def _still_by_nature(seen: Seen, name: str) -> bool:
    """Tables and constants need not move."""
    return seen.is_table(seen.stats[name]) or seen.stats[name].constant


def _shards(seen: Seen, changes: Mapping[str, float], still: set[str]) -> Iterator[Finding]:
    """Files that hold all that is the same and nothing that moved, while other files hold the same kinds that did."""
    held: dict[str, list[str]] = {}
    for name in changes:
        held.setdefault(seen.part.tensors[name].file, []).append(name)
    stale = [f for f, names in held.items() if all(n in still for n in names) and len(names) >= _TENSORS]
    moved = {f for f, names in held.items() if not any(n in still for n in names)}
    if not stale or len(stale) + len(moved) != len(held) or len(stale) > _SHARE * len(held):
        return
    pattern_of = {m.name: s.pattern for s in seen.stacks_from(2) for m in s.members}
    going = {pattern for n, pattern in pattern_of.items() if changes.get(n, 0.0) > 0}
    if sum(pattern_of.get(n) in going for n in still) < _TENSORS or _beginning(seen, still):
        return
    for file in stale:
        yield _finding(seen, held[file], f"all {len(held[file])} tensors of {file}", "shard", file, len(changes))


def _distances(seen: Seen, changes: Mapping[str, float]) -> Iterator[Finding]:
    """A shard of which every tensor moved further, or less far, than the same kinds in the other shards."""
    assert seen.other is not None
    found = uneven(seen, changes, seen.part.tensors) or uneven(seen, changes, seen.other.part.tensors)
    if found is not None:
        yield RULE.finding(
            f"the {len(found.names)} matrices of {found.file} moved {found.factor:.3g} times as far between "
            f"{seen.path} and {seen.other.path} as those of the other shards, in each of {found.kinds} kinds, with no "
            "drift inside: it is of another step", seen.where(found.names[0]), seen.path, bearing=Bearing.SIGN,
            severity=Severity.MEDIUM, measured={"kind": "shard-distance", "name": found.file,
                                                "tensors": len(found.names), "factor": round(found.factor, 3)})


def _beginning(seen: Seen, still: set[str]) -> bool:
    """Whether what is the same are the first blocks of each stack that has such, as a frozen backbone is."""
    for stack in seen.stacks_from(2):
        same = [s.name in still for s in stack.members]
        if any(same) and not all(same) and any(same[at] and not same[at - 1] for at in range(1, len(same))):
            return False
    return True


def _blocks(seen: Seen, changes: Mapping[str, float], still: set[str]) -> Iterator[Finding]:
    """Whole blocks, with biases and scales, behind blocks that moved."""
    by_block: dict[str, dict[int, list[str]]] = {}
    for stack in seen.stacks_from(3):
        head = stack.pattern.partition("*")[0]
        for index, stats in zip(stack.indexes, stack.members, strict=True):
            if stats.name in changes:
                by_block.setdefault(head, {}).setdefault(index, []).append(stats.name)
    for head, blocks in by_block.items():
        order = sorted(blocks)
        same = [i for i in order if all(n in still for n in blocks[i]) and len(blocks[i]) >= _TENSORS]
        moved = [i for i in order if not any(n in still for n in blocks[i])]
        late = [i for i in same if moved and i > moved[0]]
        if len(same) + len(moved) == len(order) and same == late and 0 < len(same) <= _SHARE * len(order):
            names = [n for i in same for n in blocks[i]]
            told = ", ".join(f"{head}{i}" for i in same[:4]) + (f" and {len(same) - 4} more" if len(same) > 4 else "")
            yield _finding(seen, names, f"all {len(names)} tensors of {told}", "blocks", f"{head}{same[0]}",
                           len(changes))


def _modules(seen: Seen, changes: Mapping[str, float], still: set[str]) -> Iterator[Finding]:
    """Whole modules that stood still among others that all moved, where neither place nor name says why."""
    names = [n for n in changes if n in still]
    modules = whole_modules(list(changes), still)
    covered = [n for n in names if any(n.startswith(f"{m}.") for m in modules)]
    values = {side: sum(seen.stats[n].size for n in group) for side, group in (
        ("still", names), ("moved", [n for n in changes if n not in still]))}
    matrices = sum(seen.stats[n].tensor.matrix for n in covered)
    if not modules or len(modules) > _MODULES or len(covered) < len(names) or not matrices or (
            values["still"] > _SHARE * (values["still"] + values["moved"])):
        return
    if _at_input(seen, list(changes), names) or _said_frozen(seen, modules):
        return
    listed = ", ".join(modules[:4])
    yield _finding(seen, names, f"all {len(names)} tensors of {listed} ({values['still']:,} values)", "modules",
                   modules[0], len(changes))


def _at_input(seen: Seen, order: Sequence[str], names: Sequence[str]) -> bool:
    """Whether what stood still is the beginning of the model: first in the file, or what inputs go into by its name.

    Files that are sorted by name say nothing of the order.
    """
    if any(_INPUT.search(n) for n in names):
        return True
    return list(order[: len(names)]) == list(names) and list(order) != sorted(order)


def _said_frozen(seen: Seen, modules: Sequence[str]) -> bool:
    """Whether the configuration names freezing, or the module is called what is commonly frozen."""
    told = any("freez" in str(k).lower() or "frozen" in str(k).lower() for k in seen.config)
    kept = any("freez" in k.lower() or "frozen" in k.lower() for k in seen.checkpoint.values)
    return told or kept or all(said_frozen(m) for m in modules)


def said_frozen(name: str) -> bool:
    """Whether a module or tensor is called as what is commonly kept as it is."""
    return _FROZEN.search(name) is not None


def _finding(seen: Seen, names: Sequence[str], what: str, kind: str, part: str, of: int) -> Finding:
    assert seen.other is not None
    others = "and all others moved" if kind == "modules" else "and the same kinds of tensors in the other parts moved"
    return RULE.finding(
        f"{what} are the same to the bit in {seen.path} and {seen.other.path}, {others} ({of} tensors were compared; "
        f"{names[0]} is the first of them): this part is of another step than the rest"
        f"{'' if kind == 'shard' else ', or was never trained'}",
        seen.where(names[0]), seen.path, bearing=Bearing.CAUSE if kind == "shard" else Bearing.SIGN,
        severity=Severity.MEDIUM if kind == "modules" else None,
        measured={"kind": kind, "name": part, "tensors": len(names), "of": of})
