"""What a call of the hook costs: it never looks through the project, however large that is."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import pytest

LISTINGS = frozenset({"listdir", "scandir"})


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """The calls into the operating system's module that happen meanwhile, by name."""
    calls: Counter[str] = Counter()

    def watch(frame: FrameType, event: str, called: Any) -> None:
        if event == "c_call" and getattr(called, "__module__", "") in ("posix", "nt", "_io"):
            calls[called.__name__] += 1

    sys.setprofile(watch)
    try:
        yield calls
    finally:
        sys.setprofile(None)


def edit(work: Path, old: str, new: str) -> dict[str, Any]:
    return {"tool_name": "Edit", "tool_input": {"file_path": str(work / "train.py"), "old_string": old,
                                                "new_string": new}}


EVENTS = {
    "an edit that is refused": ("PreToolUse", lambda work: edit(work, "import math", "import os")),
    "an edit that was shown": ("PreToolUse", lambda work: edit(work, "EPS = 1e-12", "EPS = 1e-6")),
    "after an edit": ("PostToolUse", lambda work: edit(work, "EPS = 1e-12", "EPS = 1e-6")),
    "a new diagnostic": ("PreToolUse", lambda work: {"tool_name": "Write", "tool_input": {
        "file_path": str(work / "scratch" / "debug" / "p.py"), "content": "x"}}),
    "a command": ("PreToolUse", lambda work: {"tool_name": "Bash", "tool_input": {
        "command": f"grep -rn EPS {work} . | head && python train.py --steps 1300"}}),
    "a failed command": ("PostToolUseFailure", lambda work: {
        "tool_name": "Bash", "error": "Exit code 1", "tool_input": {"command": "true"}}),
    "a prompt": ("UserPromptSubmit", lambda work: {"prompt": "why is the loss NaN?"}),
    "a turn's end": ("Stop", lambda work: {"last_assistant_message": "I am still looking."}),
    "a subagent": ("SubagentStart", lambda work: {"agent_id": "a", "agent_type": "x"}),
    "a conversation": ("SessionStart", lambda work: {"source": "compact"}),
}


@pytest.mark.parametrize("name", EVENTS)
def test_a_call_costs_the_same_in_a_project_of_many_files(talk: Any, work: Path, name: str) -> None:
    talk.opens()
    talk.shows()
    talk.prompt("approve A")
    event, fields = EVENTS[name]
    costs = []
    for files in (0, 0, 400):  # the first call imports what it needs
        for number in range(files):
            folder = work / f"package_{number % 20}" / "deeper"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"file_{number}.py").write_text("x = 1\n")
            (work / "scratch" / "debug" / f"probe_{number % 20}").mkdir(parents=True, exist_ok=True)
        with counted() as calls:
            talk.event(event, **fields(work))
        costs.append(calls)
    assert sum(costs[1].values()) > 0, "the calls are seen at all"
    assert costs[2] == costs[1]


def test_a_scan_would_be_noticed(work: Path) -> None:
    for number in range(3):
        (work / f"package_{number}").mkdir()
    with counted() as calls:
        for _ in os.walk(work):
            pass
    assert calls.keys() & LISTINGS


@pytest.fixture(scope="module")
def benchmark() -> ModuleType:
    path = Path(__file__).resolve().parents[3] / "benchmarks" / "hook_latency.py"
    found = importlib.util.spec_from_file_location("hook_latency", path)
    assert found is not None
    assert found.loader is not None
    made = importlib.util.module_from_spec(found)
    found.loader.exec_module(made)
    return made


@pytest.mark.parametrize(("worked", "empty", "said", "code"), [
    ([25.0, 59.9], 7.0, "kept (59.9)", 0), ([25.0, 60.0], 7.0, "EXCEEDED", 1), ([60.0], 13.0, "not judged", 0)])
def test_the_benchmark_judges_the_processor_time(benchmark: ModuleType, worked: list[float], empty: float, said: str,
                                                 code: int) -> None:
    text, exit_code = benchmark.judged(worked, empty)
    assert exit_code == code
    assert said in text
    assert "processor" in text
