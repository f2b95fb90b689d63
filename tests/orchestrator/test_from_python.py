"""What a script and a notebook get: names at the top, whole signatures, short reprs, a page in a cell."""

from __future__ import annotations

import ast
import asyncio
import importlib
import inspect
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import ClassVar

import pytest

import traindx
import traindx_tools
from traindx.beside_a_loop import waited_for
from traindx.diagnose import diagnose
from traindx.notebook_progress import MOST_LASTING, Progress
from traindx.notices import Notice
from traindx.session import resume_session, resume_session_sync, run_debug_session, run_debug_session_sync
from traindx.session_result import SessionResult
from traindx_tools.errors import BadUsage
from traindx_tools.finding import Bearing, Finding, Location, Severity

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"


def test_every_name_at_the_top_is_there_and_an_unknown_one_is_not() -> None:
    for package in (traindx, traindx_tools):
        assert [n for n in package.__all__ if getattr(package, n, None) is None] == []
        assert not hasattr(package, "run_everything")
    assert traindx.run_debug_session is run_debug_session
    assert set(traindx.__all__) <= set(dir(traindx))


def test_importing_the_packages_loads_nothing_that_is_not_used() -> None:
    code = "import sys, traindx, traindx_tools; print(*sorted({'numpy', 'pydantic', 'click'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == ""


def test_diagnose_is_called_from_the_top_and_stays_a_module() -> None:
    assert inspect.signature(traindx.diagnose) == inspect.signature(diagnose)
    assert traindx.diagnose([{"step": i, "loss": float("nan")} for i in range(9)]).status == "needs_more_data"
    assert importlib.import_module("traindx.diagnose").diagnose is diagnose
    with pytest.raises(BadUsage, match="expected"):
        traindx.diagnose(None)  # type: ignore[arg-type]


@pytest.mark.parametrize(("made", "of"), [(run_debug_session_sync, run_debug_session),
                                          (resume_session_sync, resume_session)])
def test_the_calls_without_a_loop_have_the_whole_signature_and_its_text(made: object, of: object) -> None:
    assert callable(made)
    assert callable(of)
    assert inspect.signature(made) == inspect.signature(of)
    assert made.__doc__ == of.__doc__
    assert not inspect.iscoroutinefunction(made)
    assert getattr(made, "__name__", "") == f"{getattr(of, '__name__', '')}_sync"


def test_inside_a_loop_the_call_says_what_to_await_and_an_unknown_argument_is_refused(tmp_path: Path) -> None:
    async def in_a_cell() -> None:
        run_debug_session_sync("x", tmp_path)

    with pytest.raises(BadUsage, match="await run_debug_session"):
        asyncio.run(in_a_cell())
    with pytest.raises(TypeError):
        run_debug_session_sync("x", tmp_path, aprove=None)  # type: ignore[call-arg]
    assert list(tmp_path.iterdir()) == []


class Kernel:
    """What a notebook's cell finds as its shell."""

    kernel = "there"
    user_ns: ClassVar[dict[str, object]] = {}


def in_a_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = ModuleType("IPython")
    fake.get_ipython = Kernel  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", fake)


def test_in_a_notebook_the_call_needs_no_await(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_a_cell(monkeypatch)
    (tmp_path / "log.txt").write_text("".join(f"step {i} loss {1 / (i + 1):.4f}\n" for i in range(60)))

    async def cell() -> SessionResult:
        return run_debug_session_sync("", tmp_path, hear=lambda _: None)

    assert asyncio.run(cell()).status in ("healthy", "needs_more_data")


def test_an_interrupt_of_the_cell_cancels_what_it_waits_for(monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[str] = []

    async def long() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            left.append("cancelled")
            raise asyncio.CancelledError("session X goes on with traindx resume X") from None

    def pressed(thread: threading.Thread, timeout: float | None = None) -> None:
        monkeypatch.undo()
        raise KeyboardInterrupt

    started = threading.Event()

    async def begun() -> None:
        started.set()
        await long()

    def once_begun(thread: threading.Thread, timeout: float | None = None) -> None:
        started.wait(10)
        pressed(thread)

    monkeypatch.setattr(threading.Thread, "join", once_begun)
    with pytest.raises(KeyboardInterrupt, match="traindx resume X"):
        waited_for(begun())
    assert left == ["cancelled"]


def test_an_error_in_the_thread_is_raised_in_the_cell() -> None:
    async def broken() -> None:
        raise BadUsage("what came, what is expected")

    with pytest.raises(BadUsage, match="what came"):
        waited_for(broken())


def test_a_finding_is_short_in_a_console_and_a_page_in_a_cell() -> None:
    found = Finding("L101", "A metric turns NaN", Severity.CRITICAL, Bearing.SIGN, "loss <b> turns nan",
                    Location(file="log.txt", line=3), "log.txt", measured={"last": 0.2, "ramp": None})
    assert repr(found) == "<Finding L101 critical: loss <b> turns nan (log.txt:3)>"
    shown = found._repr_html_()
    assert "loss &lt;b&gt; turns nan" in shown
    assert "last: 0.2" in shown
    assert "ramp" not in shown


@pytest.mark.slow
def test_results_are_short_in_a_console_and_a_page_in_a_cell(tmp_path: Path) -> None:
    report = diagnose([EXAMPLES / "numpy-lr"])
    assert len(repr(report)) < 200
    assert "loss.log-of-zero at 0." in repr(report)
    page = report._repr_html_()
    assert "Cause found" in page
    assert 'src="data:image/png;base64,' in page
    assert not re.findall(r"(?:src|href)=.https?:", page)
    work = Path(shutil.copytree(EXAMPLES / "numpy-lr", tmp_path / "work"))
    result = traindx.run_debug_session_sync("loss is <b>NaN</b>", work, report=False)
    assert len(repr(result)) < 300
    assert "awaiting_approval" in repr(result)
    shown = result._repr_html_()
    assert "awaiting approval" in shown
    assert "decide(_.folder, Decision.approve(_.diagnosis, &quot;A&quot;))" in shown
    assert "traindx approve" not in shown
    assert "<b>" not in shown


def test_a_run_without_metrics_is_a_page_without_a_picture(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print('hello')\n")
    page = diagnose([tmp_path])._repr_html_()
    assert "<pre" in page
    assert "<img" not in page


def test_what_the_pages_import_is_there() -> None:
    blocks = [b for f in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
              for b in re.findall(r"```python\n(.*?)```", f.read_text(), re.DOTALL)]
    assert len(blocks) > 3
    for block in blocks:
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("traindx"):
                names = ", ".join(a.name for a in node.names)
                exec(f"from {node.module} import {names}", {})


@pytest.mark.slow
def test_a_cell_shows_the_phases_and_a_script_prints_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                       capsys: pytest.CaptureFixture[str]) -> None:
    shown: list[tuple[str, dict[str, str]]] = []

    class Handle:
        def update(self, content: dict[str, str], **_: object) -> None:
            shown.append(("update", content))

    def display(content: dict[str, str], **_: object) -> Handle:
        shown.append(("display", content))
        return Handle()

    python, shows = ModuleType("IPython"), ModuleType("IPython.display")
    monkeypatch.setattr(shows, "display", display, raising=False)
    work = Path(shutil.copytree(EXAMPLES / "numpy-lr", tmp_path / "numpy-lr"))
    for kernel in (object(), None):  # a notebook, then IPython in a terminal
        monkeypatch.setattr(python, "get_ipython", lambda k=kernel: SimpleNamespace(kernel=k), raising=False)
        monkeypatch.setitem(sys.modules, "IPython", python)
        monkeypatch.setitem(sys.modules, "IPython.display", shows)
        before = len(shown)
        run_debug_session_sync("loss is NaN", work, report=False)
        if kernel is None:
            assert len(shown) == before
    assert [how for how, _ in shown[:2]] == ["display", "update"]
    last = shown[-1][1]
    assert last["text/plain"].splitlines()[-2:] == ["     ...  a diagnosis is ready for your decision",
                                                    "          6 pieces of evidence"]
    assert "<pre" in last["text/html"]
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[-3:] == ["traindx: gathering evidence", "traindx: diagnosing",
                                     "traindx: a diagnosis is ready for your decision"]


def test_progress_keeps_what_is_read_again_within_bounds_and_escapes_it() -> None:
    told: list[str] = []
    seconds = iter(range(100))
    progress = Progress(told.append, lambda: float(next(seconds)))
    for notice in (Notice("opened", text="/w/scratch/debug/1"), Notice("phase", text="diagnosing"),
                   *(Notice("answered", "critic", f"n\x1b[31m{i}") for i in range(30)),
                   Notice("working", "critic", "Read"), Notice("phase", text="done")):
        progress.hear(notice)
    rows = told[-1].splitlines()
    assert rows[:3] == ["session in /w/scratch/debug/1", "   1.0 s  diagnosing", "     ...  done"]
    assert len(rows) == 3 + MOST_LASTING
    assert "\x1b" not in told[-1]
