"""Each test begins as a new program would: nothing was said yet, nothing was compiled yet.

Both are facts of a whole process, and many tests share one. `within` bounds work that hostile input could make endless.
With `--time-budget SECONDS` no test begins later than that: what is left over is skipped and counted, and where the run
begins among the tests is drawn from the commit, so that each of them has its turn.
"""

from __future__ import annotations

import gc
import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager

import hypothesis
import pytest

# A worker of pytest has one core: threads of a library that wait for each other took ten times the time of some files.
# Workers are started with it; one process alone may have loaded numpy before (a plugin did), and wants it in its shell.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# As in the Makefile, for who calls pytest alone: without kept bytecode each worker compiles two thousand files anew,
# and hundreds of tests start programs that compile the package anew.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# How long an example takes is the machine's affair. Examples differ from run to run: fewer a run see as much in a week.
hypothesis.settings.register_profile("unhurried", deadline=None, max_examples=25)
hypothesis.settings.load_profile("unhurried")

USUAL = 0.045
"""CPU seconds of `_reference` on a machine at rest; how much longer it takes is how slow this one is now."""

BEGAN = time.monotonic()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--time-budget", type=float, default=None, metavar="SECONDS",
                     help="begin no test later than this; what is left over is skipped and counted")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keeps the garbage collector from walking what collecting makes, a million objects that stay to the end, again and
    again: a third of the time of collecting, and a second for each `gc.collect()` of a test."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Lets the tests begin at another place for each commit where not all may have the time to run.

    A slow test may take ten minutes by the clock: beside other work the usual two end some of them by chance.
    """
    for item in items:
        if item.get_closest_marker("slow") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(600))
    if config.getoption("--time-budget") is not None and items:
        commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=config.rootpath, capture_output=True, check=False)
        first = int(hashlib.sha256(commit.stdout).hexdigest(), 16) % len(items)
        items[:] = [*items[first:], *items[:first]]


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skips what would begin after the budget."""
    budget = item.config.getoption("--time-budget")
    if budget is not None and time.monotonic() - BEGAN > budget:
        pytest.skip(f"the time budget of {budget:.0f} s was spent")


@pytest.fixture(autouse=True)
def _as_a_new_program() -> None:
    notice = sys.modules.get("traindx_tools.live.notice")
    if notice is not None:
        notice._said.clear()
    compilations = sys.modules.get("traindx_tools.on_torch.speed.compilations")
    if compilations is not None:
        compilations._asked.clear()
    dynamo = sys.modules.get("torch._dynamo.utils")
    if dynamo is not None:
        dynamo.counters.clear()
        dynamo.clear_compilation_metrics()


@pytest.fixture(scope="session", autouse=True)
def _a_list_of_sessions_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The person's own list of folders with sessions is neither read nor written."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRAINDX_SESSIONS", str(tmp_path_factory.mktemp("state") / "sessions.jsonl"))
        yield


@pytest.fixture(autouse=True)
def _nothing_left_behind() -> Iterator[None]:
    """What a test switched on in torch is off again after it: another test of this process would be watched by it."""
    yield
    overrides = sys.modules.get("torch.overrides")
    if overrides is not None and hasattr(overrides, "_len_torch_function_stack"):
        left = overrides._len_torch_function_stack()
        for _ in range(left):
            overrides._pop_mode()
        assert not left, "the test left a TorchFunctionMode behind"


def _reference() -> float:
    start, counted = time.process_time(), {}
    for i in range(200_000):
        counted[i % 997] = str(i)
    return time.process_time() - start


@pytest.fixture
def within() -> Callable[[float], AbstractContextManager[None]]:
    """`with within(5):` fails where the work takes more than that many CPU seconds of a machine at rest.

    It catches work that grows without bound: a bound is about ten times what the work takes, as one of twice that fails
    by chance. How fast anything is belongs in `benchmarks/`.
    """

    @contextmanager
    def bounded(seconds: float) -> Iterator[None]:
        before, start = _reference(), time.process_time()
        yield
        took = time.process_time() - start
        slowness = max(1.0, before / USUAL, _reference() / USUAL)
        assert took < seconds * slowness, f"{took:.1f} CPU s at a slowness of {slowness:.1f}; bound {seconds} s"

    return bounded
