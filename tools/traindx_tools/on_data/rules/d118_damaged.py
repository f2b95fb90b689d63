"""A file or a record cannot be read, or ends early."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Damage
from traindx_tools.on_data.places import place, short
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.token_widths import width_is_told
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule

RULE = Rule(
    id="D118",
    name="damaged",
    title="A data file or a record is not whole",
    severity=Severity.HIGH,
    sees="headers against bytes, checksums of archives, ends of pictures and sounds, lines that do not parse",
    matters="Training stops when it comes to the record, or goes on with what a reader makes of it.",
    alike=("A file that is still being written.",
           "A file of tokens whose width nothing says: nothing is said of its last bytes."),
    confirm=("Read the named record with the format's own reader.", "Compare the file's size with its source."),
)


def check(view: View) -> Iterator[Finding]:
    """A finding for each file with damage."""
    for data in view.sets:
        for shard in data.shards:
            told = [d for d in shard.damage if not d.width or width_is_told(view, shard)]
            if told:
                yield _finding(shard, told)


def _finding(shard: Shard, damage: Sequence[Damage]) -> Finding:
    first = damage[0]
    count = sum(d.records for d in damage)
    where = (
        f", {'line' if 'json' in shard.format else 'row'} {first.row + ('json' in shard.format)}"
        if first.row is not None
        else ""
    )
    if first.row is not None and first.row < len(shard.row_names):
        where += f" ({shard.row_names[first.row]})"
    kinds = Counter(d.what for d in damage)
    more = f"; {count:,} records in all" if count > 1 else ""
    return RULE.finding(
        f"{short(shard)}{where}: {first.what}{more}",
        place(shard),
        shard.name,
        bearing=Bearing.CAUSE,
        severity=None if count > 0.001 * max(1, shard.rows) or count > 1 else Severity.MEDIUM,
        measured={"records": count, "row": first.row, "what": kinds.most_common(1)[0][0], "shard": short(shard)},
    )
