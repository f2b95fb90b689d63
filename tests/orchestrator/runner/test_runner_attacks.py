"""Attacks on a project behind a closed gate. Each command is really run, and everything that it could reach compared.

The commands stand in `data/attacks.json` (with the row of the review that found them) and `data/writing.json`. They run
under Landlock and seccomp alone, as root and as another user, and with bubblewrap where that is there.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from attacks_together import attacked, attacked_together, groups
from bubblewrap_here import ENVIRONMENT, needs_bubblewrap
from closed_gate import RUNNER, SYSTEM_PYTHON, ClosedGate, commands, differences

from traindx.runner import landlock

NOBODY = 65_534
LONG = {"npm", "pip install", "pytest plugin", "a session of the orchestrator", "traindx --run", "traindx --out",
        "traindx plot", "traindx run", "traindx --run short", "traindx approve", "traindx approve quoted",
        "traindx approve split", "py -m", "claude -p"}
"""They start a large program."""
ATTACKS = list(commands("attacks"))
WRITING = list(commands("writing"))
ALONE = {"TRAINDX_BUBBLEWRAP": "off"}

pytestmark = [pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the runner needs Linux")]
needs_landlock = pytest.mark.skipif(landlock.version() == 0, reason="this kernel has no Landlock")


def why_not_nobody() -> str:
    """Why the runner cannot be started as another user here; empty where it can."""
    if os.geteuid() != 0:
        return "only root can become another user"
    try:
        done = subprocess.run([SYSTEM_PYTHON, "-I", "-S", str(RUNNER), "--help"], user=NOBODY, group=NOBODY, cwd="/",
                              extra_groups=[], capture_output=True, check=False)
    except OSError as error:
        return f"{SYSTEM_PYTHON}: {error.strerror}"
    return "" if done.returncode == 0 else "another user cannot read this checkout"


needs_nobody = pytest.mark.skipif(bool(why_not_nobody()), reason=why_not_nobody())


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """Readable for another user too, which pytest's own folders are not."""
    made = Path(tempfile.mkdtemp(prefix="gate-", dir="/tmp")).resolve()
    made.chmod(0o755)
    yield made
    shutil.rmtree(made, ignore_errors=True)


def closed(folder: Path, name: str, **how: Any) -> Iterator[ClosedGate]:
    base = folder / name
    base.mkdir()
    gate = ClosedGate(base, **how)
    gate.opens()
    yield gate
    gate.close()


@pytest.fixture(scope="module")
def alone(folder: Path) -> Iterator[ClosedGate]:
    yield from closed(folder, "alone", extra=ALONE)


@pytest.fixture(scope="module")
def as_nobody(folder: Path) -> Iterator[ClosedGate]:
    yield from closed(folder, "nobody", extra=ALONE, user=NOBODY)


@pytest.fixture(scope="module")
def wrapped(folder: Path) -> Iterator[ClosedGate]:
    yield from closed(folder, "wrapped", extra=ENVIRONMENT)


def written(gate: ClosedGate, attack: dict[str, str]) -> dict[str, str]:
    """A command of `writing.json`, whose names stand in capitals."""
    text = attack["command"]
    for name, value in (("PROJECT", gate.work), ("HOME/", f"{gate.home}/"), ("RUNNER", RUNNER),
                        ("OUTSIDE", gate.outside)):
        text = text.replace(name, str(value))
    return {**attack, "command": text.replace("tail -f", "timeout 1 tail -f")}


NOTICED = ["redirect", "chmod", "touch -d", "SIGSTOP", "kill -9", "a socket of the person", "datagram socket",
           "abstract socket", "renice", "affinity", "write to another terminal", "symlink in the project", "cp -l",
           "a new folder", "the gate's state", "home", "a background job", "chattr", "X11 over TCP"]
"""Attacks without the runner: what is compared must notice each kind."""


@pytest.mark.parametrize("attack", [a for a in ATTACKS if a["name"] in NOTICED], ids=lambda a: a["name"])
def test_without_the_runner_the_comparison_notices(folder: Path, attack: dict[str, str]) -> None:
    for gate in closed(folder, f"open-{abs(hash(attack['name']))}"):
        before = gate.seen()
        gate.environment |= {"TMPDIR": str(gate.outside)}
        done = gate.shell(f"{gate.filled(attack['command'])}; sleep 0.4")
        changed = differences(before, gate.seen())
        subprocess.run(["chattr", "-i", str(gate.work / "train.py")], capture_output=True, check=False)
        assert changed or "not permitted" in done.stderr, done.stderr


@needs_landlock
@pytest.mark.parametrize("attacks", list(groups([a for a in ATTACKS if a["name"] not in LONG])),
                         ids=lambda a: a[0]["name"])
def test_landlock_and_seccomp_alone_hold(alone: ClosedGate, attacks: list[dict[str, str]]) -> None:
    attacked_together(alone, attacks)


@pytest.mark.slow
@needs_landlock
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda a: a["name"])
def test_landlock_and_seccomp_hold_each_alone(alone: ClosedGate, attack: dict[str, str]) -> None:
    """In a run of its own, where nothing that another attack does could hide it."""
    attacked(alone, attack)


@needs_landlock
@pytest.mark.parametrize("attacks", list(groups([a for a in WRITING[::4] if a["name"] not in LONG])),
                         ids=lambda a: a[0]["name"])
def test_what_would_write_changes_nothing(alone: ClosedGate, attacks: list[dict[str, str]]) -> None:
    attacked_together(alone, [written(alone, a) for a in attacks])


@pytest.mark.slow
@needs_landlock
@pytest.mark.parametrize("attacks", list(groups(WRITING)), ids=lambda a: a[0]["name"])
def test_all_that_would_write_changes_nothing(alone: ClosedGate, attacks: list[dict[str, str]]) -> None:
    attacked_together(alone, [written(alone, a) for a in attacks])


class Open(ClosedGate):
    """No runner holds what is run."""

    def runs(self, command: str, timeout: float = 60.0) -> subprocess.CompletedProcess[str]:
        self.environment["TMPDIR"] = str(self.work / "scratch" / "debug" / "probes")
        return self.shell(command, timeout)


def test_of_attacks_in_one_run_the_one_that_changed_something_is_named(folder: Path) -> None:
    attacks = [{"command": c} for c in ("true", "exit 3", "cat train.py | head -1", "echo x > train.py", "ls")]
    base = folder / "together"
    base.mkdir()
    gate = Open(base)
    with contextlib.closing(gate):
        attacked_together(gate, attacks[:3])
        with pytest.raises(AssertionError, match=r"echo x > train\.py"):
            attacked_together(gate, attacks)


class BreaksOff(Open):
    """A run ends with its first line."""

    def runs(self, command: str, timeout: float = 60.0) -> subprocess.CompletedProcess[str]:
        return super().runs(command.splitlines()[0], timeout)


@pytest.mark.slow
def test_an_attack_that_the_run_did_not_come_to_runs_alone(folder: Path) -> None:
    base = folder / "ended"
    base.mkdir()
    gate = BreaksOff(base)
    with contextlib.closing(gate), pytest.raises(AssertionError, match=r"echo y > train\.py"):
        attacked_together(gate, [{"command": c} for c in ("true", "echo y > train.py")])


ALL_GROUPS = pytest.mark.parametrize("attacks", [*groups(ATTACKS), *groups(WRITING)], ids=lambda a: a[0]["name"])


def all_written(gate: ClosedGate, attacks: list[dict[str, str]]) -> list[dict[str, str]]:
    return [written(gate, a) if a in WRITING else a for a in attacks]


@pytest.mark.slow
@needs_nobody
@needs_landlock
@ALL_GROUPS
def test_another_user_is_held_alike(as_nobody: ClosedGate, attacks: list[dict[str, str]]) -> None:
    attacked_together(as_nobody, all_written(as_nobody, attacks))


@pytest.mark.slow
@needs_bubblewrap
@ALL_GROUPS
def test_bubblewrap_holds(wrapped: ClosedGate, attacks: list[dict[str, str]]) -> None:
    attacked_together(wrapped, all_written(wrapped, attacks))
