"""One part of the training rows is answered no better than by guessing, while the others are learned.

The loss of each row, as its graph remembers it, is compared with that of a guess which knows how often each label
occurs. Parts are ranges of the dataset (the DataLoader's sampler says which rows a batch holds) and what the dataset
itself keeps one of for each row: files, sources, sites. `kind`: "inputs-otherwise" where the inputs of the part have
another scale or level, "labels-mapped" where its labels are answered with one other class each, "labels-unrelated"
where neither is so. Of sequences of tokens the loss of the first batches stands for that of a guess (medium: some text
cannot be predicted).
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_torch.rules.rows import SOURCE, ModelRows
from traindx_tools.rows import parts
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="T713",
    name="part-unlearned",
    title="One part of the training rows is not learned",
    severity=Severity.HIGH,
    sees="the loss of each training row at its first, second, third, fifth ... visit, by ranges and sources of rows",
    matters="the part teaches the opposite of the others: accuracy is bounded by the share of the others",
    alike=("a harder part: it stays below the loss of a guess", "rare classes: the guess knows that they are rare"),
    confirm=("Look at ten rows of the named part by eye.", "Train without the part, and on the part alone."),
    thresholds={
        "learned": Threshold(parts.LEARNED, "of the loss of a guess", "the other rows lie below it"),
        "guess": Threshold(parts.GUESS, "of the loss of a guess", "the part lies above it to the end"),
        "sure": Threshold(parts.SURE, "standard deviations of the rank sum", "no range does so by chance"),
    },
)


def check(seen: ModelRows) -> Iterator[Finding]:
    """A finding for each such part, at most three."""
    rows = seen.trained_rows
    if rows is None:
        return
    for part in parts.unlearned(rows, seen.groups):
        of = f" of {seen.dataset}" if seen.dataset else ""
        yield RULE.finding(
            f"{part.name}{of} ({part.rows} of {part.of} rows that were looked at) have {part.loss:.0%} of the loss of "
            f"a guess where the others have {part.others:.0%} (visit {part.visit}): {part.text}", seen.where, SOURCE,
            severity=Severity.MEDIUM if part.below_guess or rows.kind == "tokens" else RULE.severity,
            bearing=Bearing.CAUSE if part.kind == "labels-mapped" else Bearing.SIGN,
            measured={"kind": part.kind, "part": part.name, "rows": part.rows, "of": part.of, "loss": part.loss,
                      "others": part.others, "first": part.first, "last": part.last, "shard": part.name,
                      "how": "permuted" if part.kind == "labels-mapped" else None})
