"""What was read of the mangled inputs is read once, whatever ends a run, and what was mended counts no more."""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

PLACE = Path(__file__).resolve().parents[2] / "benchmarks" / "mangled.py"


@pytest.fixture
def mangled() -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location("mangled_inputs", PLACE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def _tally(mangled: ModuleType, failed: list[tuple[int, str]], slowest: tuple[float, int]) -> object:
    return mangled.Tally(count=500, values=7, formats=Counter(csv=3), failed=failed, slowest=slowest, seconds=1.5)


def test_a_run_goes_on_behind_what_is_noted(mangled: ModuleType, tmp_path: Path) -> None:
    journal = mangled.Journal(tmp_path, 5)
    journal.add(500, _tally(mangled, [(501, "ValueError: x")], (0.5, 700)))
    journal.add(0, _tally(mangled, [], (0.75, 3)))
    with journal.path.open("a") as killed:
        killed.write('{"first": 1000, "tal')
    again = mangled.Journal(tmp_path, 5)
    again.add(1000, _tally(mangled, [], (0.25, 1001)))
    third = mangled.Journal(tmp_path, 5)
    assert third.done == {0, 500, 1000}
    whole = third.whole
    assert (whole.count, whole.values, whole.formats, whole.seconds) == (1_500, 21, Counter(csv=9), 4.5)
    assert (whole.failed, whole.slowest) == ([(501, "ValueError: x")], (0.75, 3))
    assert [task[:3] for task in mangled.tasks(1_800, 5, (), third)] == [(1500, 2000, 5)]
    assert mangled.Journal(tmp_path, 6).done == set()


def test_what_is_mended_counts_no_more(mangled: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = mangled.Journal(tmp_path, 5)
    journal.add(0, _tally(mangled, [(1, "ValueError: x"), (2, "ValueError: x")], (0.5, 2)))
    monkeypatch.setattr(mangled, "batch", lambda task: (task, mangled.Tally(failed=[(2, "y")] if task[0] == 2 else [])))
    journal.read_again(5, ())
    assert [number for number, _ in journal.whole.failed] == [2]
    assert [number for number, _ in mangled.Journal(tmp_path, 5).whole.failed] == [2]


def test_the_figure_of_a_journal(mangled: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mangled.Journal(tmp_path, 5).add(0, _tally(mangled, [], (0.5, 2)))
    assert mangled.main(["--journal", str(tmp_path), "--seed", "5", "--told"]) == 0
    assert "500 mangled inputs in 2 s of a processor (333 a second): 0 crashes or stalls" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        mangled.main(["--told"])


def test_another_machine_begins_behind_the_first(mangled: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    journal = mangled.Journal(None, 5)
    assert [task[:2] for task in mangled.tasks(2_000, 5, (), journal, first=1_000)] == [(1_000, 1_500), (1_500, 2_000)]
    with pytest.raises(SystemExit):
        mangled.main(["--first", "7"])
    assert "expected a multiple of 500" in capsys.readouterr().err
