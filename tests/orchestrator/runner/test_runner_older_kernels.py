"""The runner where the kernel knows less: as if Landlock were of an older version, or nobody could answer calls.

The versions are pretended in the runner's process, so that the same confinement is built as on such a kernel.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from attacks_together import attacked, attacked_together, groups
from closed_gate import ROOT, ClosedGate, commands

from traindx.runner import landlock

ATTACKS = list(commands("attacks"))
PRETENDS = """import os, sys
sys.path[:0] = [{orchestrator!r}, {tools!r}]
from traindx.runner import confinement, landlock, program
landlock.version = lambda: {version}
confinement.supervision = lambda: {answers}
code = program.main(sys.argv[1:], os.path.realpath(__file__))
sys.stdout.flush(); sys.stderr.flush()
os._exit(code)
"""
KINDS = {"first-landlock": (1, 2), "no-scopes": (5, 2), "no-connections": (1, 1), "nobody-answers": (1, 0)}
"""Version of Landlock, and what can be answered: all, all but connections, nothing."""
USUALLY = ("first-landlock", "nobody-answers")

NEEDS_AN_ANSWER = {
    "truncate", "truncate(2)", "O_RDONLY with O_TRUNC", "kill -9", "kill of the group", "os.kill", "pidfd", "tgkill",
    "sigqueue", "pkill", "SIGSTOP", "F_SETOWN", "abstract socket", "a socket of the person", "datagram socket", "chmod",
    "touch -d", "symlink in the project", "cp -l", "mv away", "rename over by exchange", "kill the runner", "redirect",
    "a background job", "renice", "socket by a link"}
"""What newer kernels hold by Landlock itself, and what somebody answers."""

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux") or not landlock.version(),
                                reason="the runner needs Linux with Landlock")


@pytest.fixture(scope="module", params=[pytest.param(kind, marks=[] if kind in USUALLY else [pytest.mark.slow])
                                        for kind in KINDS])
def older(request: Any) -> Iterator[ClosedGate]:
    base = Path(tempfile.mkdtemp(prefix="older-", dir="/tmp")).resolve()
    version, answers = KINDS[request.param]
    gate = ClosedGate(base, extra={"TRAINDX_BUBBLEWRAP": "off"})
    gate.opens()
    gate.start = base / "start.py"
    gate.start.write_text(PRETENDS.format(orchestrator=str(ROOT / "orchestrator"), tools=str(ROOT / "tools"),
                                          version=version, answers=answers))
    yield gate
    gate.close()
    shutil.rmtree(base, ignore_errors=True)


ANSWERED = [a for a in ATTACKS if a["name"] in NEEDS_AN_ANSWER]


@pytest.mark.parametrize("older", USUALLY, indirect=True)
@pytest.mark.parametrize("attacks", list(groups(ANSWERED)), ids=lambda a: a[0]["name"])
def test_what_landlock_does_not_hold_there_is_held(older: ClosedGate, attacks: list[dict[str, str]]) -> None:
    attacked_together(older, attacks)


@pytest.mark.slow
@pytest.mark.parametrize("older", USUALLY, indirect=True)
@pytest.mark.parametrize("attack", ANSWERED, ids=lambda a: a["name"])
def test_each_of_them_is_held_alone(older: ClosedGate, attack: dict[str, str]) -> None:
    attacked(older, attack)


@pytest.mark.slow
@pytest.mark.parametrize("attacks", list(groups(ATTACKS)), ids=lambda a: a[0]["name"])
def test_every_attack_is_held(older: ClosedGate, attacks: list[dict[str, str]]) -> None:
    """Alone, each of them is run by `test_runner_attacks.py`."""
    if _answers(older) < 2:
        assert "over TCP" in older.runs("true").stderr, "what is not held is said"
        attacks = [a for a in attacks if "X11" not in a["name"]]
    attacked_together(older, attacks)


WORKERS = ("python3 -c \"import multiprocessing as m, time; p=m.Process(target=time.sleep, args=(60,)); p.start(); "
           "p.terminate(); p.join(); print(p.exitcode)\"")


@pytest.mark.parametrize(("command", "expected"), [
    ("timeout 1 sleep 60; echo $?", "124"), ("sleep 60 & kill $!; wait $!; echo $?", "143"),
    ("kill -0 $$; echo $?", "0"), (WORKERS, "-15"),
    ("python3 -c \"import os; os.truncate(os.environ['TMPDIR'], 0)\"; f=$TMPDIR/t$$; echo abc > $f; truncate -s 1 $f; "
     "chmod 600 $f; wc -c < $f; rm $f", "1")])
def test_what_a_command_does_to_its_own_is_let(older: ClosedGate, command: str, expected: str) -> None:
    if _answers(older) == 0:
        pytest.skip("where nobody answers such calls fail, which is said before the run")
    assert older.runs(command).stdout.split()[-1] == expected


def _answers(gate: ClosedGate) -> int:
    text = gate.start.read_text() if gate.start is not None else ""
    return int(text.split("supervision = lambda: ")[1].split("\n")[0])


def test_what_is_not_to_be_had_is_said_before_the_run_in_one_line(older: ClosedGate) -> None:
    said = older.runs("echo run >&2").stderr.splitlines()
    assert said[-1] == "run"
    assert len(said) == (1 if _answers(older) == 2 else 2)
    assert _answers(older) == 2 or said[0].startswith("protected: ")


def test_local_sockets_of_the_run_itself_work_where_they_can(older: ClosedGate) -> None:
    code = ("import socket, os; p=os.environ['TMPDIR']+'/s'; l=socket.socket(socket.AF_UNIX); l.bind(p); l.listen(1); "
            "c=socket.socket(socket.AF_UNIX); c.connect(p); c.send(b'x'); print(l.accept()[0].recv(1)); os.unlink(p)")
    done = older.runs(f'python3 -c "{code}"')
    if _answers(older) < 2:
        assert "Permission" in done.stderr
    else:
        assert done.stdout == "b'x'\n", done.stderr
