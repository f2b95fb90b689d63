"""Judging by several processes: the same findings as by one, whatever happens to the children and to the parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from traindx_tools.code_audit import parallel
from traindx_tools.code_audit.entry import ROOMS, audit_sources, followed_and_judged
from traindx_tools.code_audit.programs import programs
from traindx_tools.on_code.source import SourceFile, parse_source
from traindx_tools.rules import rules_in

pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are forked on Linux alone"),
    pytest.mark.usefixtures("forking"),
]
MODULES = [m for room in ROOMS for m in rules_in(room)]

SHARED = "import torch\n\n\ndef loss_of(logits, y):\n    p = torch.softmax(logits, -1)\n    return LOSS(p, y)\n\n\n" \
    "LOSS = torch.nn.CrossEntropyLoss()\n"
TRAINS = '''import torch
{imported}
net = torch.nn.Linear(4, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
history = []
for x, y in loader:
    loss = {loss}
    loss.backward()
    opt.step()
    history.append(loss)
'''
READS = "import numpy as np\nimport torch\nnp.random.shuffle(inputs)\nnet.fit(inputs, labels)\n"
TWO_APART = {
    "one/train.py": TRAINS.format(imported="", loss="torch.nn.functional.cross_entropy(net(x), y)"),
    "two/train.py": TRAINS.format(imported="", loss="torch.nn.functional.cross_entropy(net(x).softmax(-1), y)"),
    "two/data.py": READS,
}
ONE_SHARED = {
    "losses.py": SHARED,
    "first.py": TRAINS.format(imported="from losses import loss_of", loss="loss_of(net(x), y)"),
    "second.py": TRAINS.format(imported="import losses", loss="losses.loss_of(net(x), y)"),
    "data.py": READS,
}


def parsed(texts: dict[str, str]) -> list[SourceFile]:
    files = [parse_source(path, text) for path, text in texts.items()]
    return [f for f in files if isinstance(f, SourceFile)]


def told(texts: dict[str, str], processes: int) -> tuple[list[dict[str, Any]], list[str]]:
    result = audit_sources(parsed(texts), processes)
    return [f.to_json() for f in result.findings], [f"{n.path}: {n.note}" for n in result.notes]


@pytest.mark.parametrize("processes", [2, 3, 5])
@pytest.mark.parametrize("texts", [TWO_APART, ONE_SHARED], ids=["apart", "shared import"])
def test_several_processes_say_the_same_in_the_same_order(texts: dict[str, str], processes: int) -> None:
    alone = told(texts, 1)
    assert {"C101", "C103"} <= {f["rule"] for f in alone[0]}
    assert len(alone[0]) >= 5
    assert told(texts, processes) == alone


def test_a_healthy_project_stays_without_findings() -> None:
    text = TRAINS.format(imported="", loss="torch.nn.functional.cross_entropy(net(x), y)")
    text = text.replace("    loss.backward", "    opt.zero_grad()\n    loss.backward")
    text = text.replace("append(loss)", "append(loss.item())")
    assert told({"train.py": text}, 1) == told({"train.py": text}, 2) == ([], [])


@pytest.mark.parametrize("texts", [{}, {"empty.py": ""}, {"deep.py": "x = " + "-" * 90 + "1\n"},
                                   {"odd.py": "\ufeffx = 'caf\u00e9 \U0001f600'\nclass A(A): pass\n"}])
def test_odd_input_is_the_same_for_both(texts: dict[str, str]) -> None:
    assert told(texts, 1) == told(texts, 2)


Dies = Callable[[], None]


@pytest.mark.parametrize("dies", [lambda: os.kill(os.getpid(), signal.SIGKILL), lambda: os._exit(3),
                                  lambda: sys.exit("gone"), lambda: (_ for _ in ()).throw(MemoryError)],
                         ids=["killed", "exits", "SystemExit", "MemoryError"])
def test_what_a_lost_child_had_to_do_is_done_here(dies: Dies, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = told(ONE_SHARED, 1)
    parent, judge = os.getpid(), parallel._judge

    def lost(*given: Any, **named: Any) -> Any:
        if os.getpid() != parent:
            dies()
        return judge(*given, **named)

    monkeypatch.setattr(parallel, "_judge", lost)
    assert told(ONE_SHARED, 3) == alone


def test_a_child_that_answers_nonsense_counts_as_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = told(ONE_SHARED, 1)
    parent, judge = os.getpid(), parallel._judge

    class Nonsense:
        def dumps(self) -> str:
            return '{"findings": [1'

    monkeypatch.setattr(parallel, "_judge", lambda *g, **n: judge(*g, **n) if os.getpid() == parent else Nonsense())
    assert told(ONE_SHARED, 2) == alone


def test_without_room_for_a_process_one_does_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = told(ONE_SHARED, 1)

    def no_room() -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", no_room)
    before = open_files()
    assert told(ONE_SHARED, 4) == alone
    assert open_files() == before


def open_files() -> list[str]:
    return sorted(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else []


def test_defects_of_rules_are_told_in_the_same_order(monkeypatch: pytest.MonkeyPatch) -> None:
    checked = "traindx_tools.code_audit.parallel.checked"
    whole = __import__("traindx_tools.code_audit.parallel", fromlist=["checked"]).checked

    def defective(module: Any, project: Any) -> Any:
        if module.rule.id in ("C101", "C141", "C199", "C501"):
            raise ZeroDivisionError(f"in {module.rule.id}")
        return whole(module, project)

    monkeypatch.setattr(checked, defective)
    alone = told(ONE_SHARED, 1)
    assert [n.partition(":")[0] for n in alone[1]] == ["C101", "C141", "C199", "C501"]
    assert told(ONE_SHARED, 3) == alone


def test_no_child_and_no_pipe_is_left_behind() -> None:
    before = open_files()
    told(ONE_SHARED, 3)
    assert open_files() == before
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_an_interrupted_audit_takes_its_children_along(
    error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(files: Sequence[SourceFile]) -> None:
        raise error

    def works_for_ever(*given: Any) -> Any:
        while True:
            time.sleep(60)

    parent, judge = os.getpid(), parallel._judge
    monkeypatch.setattr(parallel, "_judge",
                        lambda *g, **n: judge(*g, **n) if os.getpid() == parent else works_for_ever())
    monkeypatch.setattr(parallel.Project, "of", interrupted)
    before = open_files()
    with pytest.raises(error):
        followed_and_judged(MODULES, programs(parsed(ONE_SHARED)), 2)
    assert open_files() == before
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


KILLED = '''
import itertools, os, signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
from traindx_tools.code_audit import parallel
from traindx_tools.on_code.source import parse_source
here, judge = os.getpid(), parallel._judge

def slow(modules, project, parent=None):
    if parent is not None:
        print(os.getpid(), flush=True)
        modules = itertools.cycle(modules)  # ends only because nobody waits any more
    return judge(modules, project, parent)

parallel._judge = slow
parallel.WORTH_SHARING = 0
from traindx_tools.code_audit.entry import audit_sources
audit_sources([parse_source(name, "import torch\\nprint(1)\\n") for name in ("train.py", "other.py")], 2)
'''


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_audit_leaves_no_orphan(how: signal.Signals, tmp_path: Path) -> None:
    running = subprocess.Popen([sys.executable, "-c", KILLED], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                               text=True, cwd=tmp_path)  # fmt: skip
    assert running.stdout is not None
    child = int(running.stdout.readline())
    running.send_signal(how)
    assert running.wait() != 0
    assert child != running.pid
    assert running.stdout.read().count("\n") <= 1, "the pipe closes when the last process is gone"


LAST = '''
import gc, weakref
from traindx_tools.collection import keep_to_the_end, undisturbed

class Node: pass

ends = []
with undisturbed():
    node = Node()
    node.itself = node
    weakref.finalize(node, ends.append, "given back").atexit = False
    keep_to_the_end(node)
    del node
gc.collect()
print(gc.isenabled(), ends)
'''


def test_what_is_kept_to_the_end_is_not_taken_apart() -> None:
    done = subprocess.run([sys.executable, "-c", LAST], capture_output=True, text=True, check=True)
    assert done.stdout == "True []\n"


def test_without_it_the_value_is_given_back() -> None:
    code = LAST.replace("    keep_to_the_end(node)\n", "")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True ['given back']\n"
