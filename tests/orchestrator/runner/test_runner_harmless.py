"""Commands that an agent needs and that change nothing: behind a closed gate each runs and says what it always says.

The commands stand in `data/harmless.json`: the review's list, and more. They are run twice, as they are and through the
hook, in two projects that are alike; exit code, output and error must be the same where nothing in them depends on the
moment, the process or the runner.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from closed_gate import DATA, RUNNER, ClosedGate, differences

from traindx.runner import landlock

COMMANDS: list[str] = json.loads((DATA / "harmless.json").read_text())
DENIED_AT_MOST = 2
"""A copy of links into scratch: no command makes links there."""
EVERY = 8
"""Of the commands, the share of the shorter test."""
PATIENCE = 240.0
"""Seconds for one command: `pytest -x` of the project runs what earlier commands copied into scratch as well."""

DIFFERS = re.compile(
    r"\b(ps|top|free|df|du|env|printenv|date|py-spy|nvidia-smi|ls -l|ls -la|ls -lh|stat|pip|traindx|uptime|"
    r"find \. -type|ulimit|tree|squeue|kubectl|wandb|tensorboard|nsys|gpustat|strings|pytest|git stash|git diff$|"
    r"git status|lsmod|cd scratch/debug|readlink -f|os\.kill|diff -u|git blame)\b")
"""Their output depends on the moment, on the process or on the place of the project."""

pytestmark = [pytest.mark.skipif(not sys.platform.startswith("linux") or not landlock.version(),
                                 reason="the runner needs Linux with Landlock")]


@pytest.fixture
def pair() -> Iterator[tuple[ClosedGate, ClosedGate]]:
    """Two projects that are alike: one where commands run as they are, one behind a closed gate."""
    base = Path(tempfile.mkdtemp(prefix="pair-", dir="/tmp")).resolve()
    gates = []
    for name in ("free", "held"):
        (base / name).mkdir()
        gates.append(ClosedGate(base / name, extra={"TRAINDX_BUBBLEWRAP": "off"}))
    free, held = gates
    (base / "tmp").mkdir()
    free.environment |= {"TMPDIR": str(base / "tmp"), "PYTHONDONTWRITEBYTECODE": "1"}
    held.opens()
    yield free, held
    for gate in gates:
        gate.close()
    shutil.rmtree(base, ignore_errors=True)


def filled(gate: ClosedGate, command: str) -> str:
    return command.replace("RUNNER", str(RUNNER)).replace("PROJECT", str(gate.work)).replace("{work}", str(gate.work))


def bare(gate: ClosedGate, text: str) -> str:
    """The output without what the two places differ in."""
    text = re.sub(rf"{re.escape(str(gate.base))}\S*?/(tmp|copies)\b", "TMP", text).replace(str(gate.base), "BASE")
    return re.sub(r"bash: (-c: )?line \d+: |bash: eval: |/tmp/pair-\w+/tmp", "", text)


def compared(pair: tuple[ClosedGate, ClosedGate], command: str) -> str:
    """What is wrong with the held run of this command, or nothing."""
    free, held = pair
    line = held.hooked(filled(held, command))
    if line is None:
        return "denied"
    before = held.seen()
    got = held.shell(line, PATIENCE)
    changed = differences(before, held.seen())
    assert not changed, (command, changed)
    expected = free.shell(filled(free, command), PATIENCE)
    if got.returncode != expected.returncode:
        return f"exit code {got.returncode}, expected {expected.returncode}: {got.stderr[-300:]}"
    if DIFFERS.search(command):
        return ""
    for name in ("stdout", "stderr"):
        ours, theirs = bare(held, getattr(got, name)), bare(free, getattr(expected, name))
        if ours != theirs:
            return f"{name} {ours[-300:]!r}, expected {theirs[-300:]!r}"
    return ""


def wrong(pair: tuple[ClosedGate, ClosedGate], commands: list[str]) -> dict[str, str]:
    return {command: said for command in commands if (said := compared(pair, command))}


def test_the_list_is_long_enough() -> None:
    assert len(set(COMMANDS)) >= 140


@pytest.mark.slow
def test_a_share_of_the_harmless_commands_runs_as_it_always_does(pair: tuple[ClosedGate, ClosedGate]) -> None:
    found = wrong(pair, COMMANDS[::EVERY])
    assert len(found) <= DENIED_AT_MOST, found


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_every_harmless_command_runs_as_it_always_does(pair: tuple[ClosedGate, ClosedGate]) -> None:
    found = wrong(pair, COMMANDS)
    print(json.dumps(found, indent=1))
    assert len(found) <= DENIED_AT_MOST, found
