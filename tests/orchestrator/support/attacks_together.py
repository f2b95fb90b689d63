"""Many attacks in one run of the runner: its start, and the comparison of everything, are paid for once.

Each attack is a shell of its own with a temporary folder of its own. What would take the run away from the others runs
alone; so does each of a run that changed something, to name the one, and each that the run did not come to.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence

from closed_gate import ClosedGate, differences

ALONE = re.compile(r"\$PPID|kill -9 -1|\{runner\}|RUNNER|protected\.py|TRAINDX_GATE|probes/(tmp|python3)|disown|setsid")
"""Attacks on the runner, on what all of a run share, or with what outlives their shell."""
TOGETHER = 12


def attacked(gate: ClosedGate, attack: dict[str, str]) -> None:
    """Runs one attack; whatever it changed is made good before the next one."""
    before = gate.seen()
    done = gate.runs(gate.filled(attack["command"]))
    changed = differences(before, gate.seen())
    if changed:
        made_good(gate)
    assert not changed, f"{attack['command']}\n{done.stdout[-300:]}{done.stderr[-300:]}"


def made_good(gate: ClosedGate) -> None:
    gate.received.clear()
    gate.make()
    gate.opens()


def groups(attacks: Sequence[dict[str, str]]) -> Iterator[list[dict[str, str]]]:
    """Those that can share a run, a dozen each, and each of the others by itself."""
    sharing = [a for a in attacks if not ALONE.search(a["command"])]
    yield from (sharing[at:at + TOGETHER] for at in range(0, len(sharing), TOGETHER))
    yield from ([a] for a in attacks if ALONE.search(a["command"]))


def attacked_together(gate: ClosedGate, attacks: Sequence[dict[str, str]]) -> None:
    if len(attacks) > 1:
        before = gate.seen()
        said = gate.runs("\n".join(_step(gate, number, a) for number, a in enumerate(attacks)), timeout=240).stdout
        if differences(before, gate.seen()):
            made_good(gate)
        else:
            attacks = [a for number, a in enumerate(attacks) if _mark(number) not in said.splitlines()]
    for attack in attacks:
        attacked(gate, attack)


def _step(gate: ClosedGate, number: int, attack: dict[str, str]) -> str:
    own = f"$TMPDIR/of{number}"
    return (f"mkdir -p {own}; TMPDIR={own} bash -c {shlex.quote(gate.filled(attack['command']))} < /dev/null; "
            f"echo; echo {_mark(number)}")


def _mark(number: int) -> str:
    return f":: attack {number} is over ::"
