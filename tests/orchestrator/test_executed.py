"""Was the change executed? Watched in real processes; what cannot be seen is told as unknown."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from traindx.executed import Executed, executed, statements, watched, watching
from traindx.hindrances import Change

BEFORE = """def used(x):
    return x + 1

def unused(x):
    y = x * 2
    return y

print(used(1))
"""


def ran(tmp_path: Path, after: str, *command: str, before: str = BEFORE, name: str = "train.py",
        **more: str) -> Executed:
    (tmp_path / name).write_text(after)
    for other, text in more.items():
        (tmp_path / f"{other}.py").write_text(text)
    change = Change(name, before, after)
    notes = tmp_path / "notes"
    environment = watching(notes, watched([change], tmp_path), dict(os.environ))
    done = subprocess.run(command or (sys.executable, "train.py"), cwd=tmp_path, env=environment, capture_output=True,
                          text=True, check=False)
    assert done.returncode == 0, done.stderr
    return executed([change], tmp_path, [notes])


def test_a_line_that_ran_was_executed(tmp_path: Path) -> None:
    found = ran(tmp_path, BEFORE.replace("x + 1", "x + 3"))
    assert found == Executed("yes", "the changed line train.py:2 was executed")


def test_of_a_line_that_moved_the_one_that_came_is_named(tmp_path: Path) -> None:
    rows = ["x = 1", "y = 2", "z = 3", "print(x, y, z)"]
    (tmp_path / "train.py").write_text(text := "\n".join([*rows[1:3], rows[0], rows[3]]) + "\n")
    change = Change("train.py", "\n".join(rows) + "\n", text)
    notes = tmp_path / "notes"
    environment = watching(notes, watched([change], tmp_path), dict(os.environ))
    subprocess.run([sys.executable, "train.py"], cwd=tmp_path, env=environment, check=True, capture_output=True)
    assert executed([change], tmp_path, [notes]).said == "the changed line train.py:3 was executed"


def test_of_a_line_that_went_the_one_beside_it_is_named_as_such(tmp_path: Path) -> None:
    found = ran(tmp_path, "print(1)\nprint(2)\n", before="print(1)\nx = 3\nprint(2)\n")
    assert found.said == "the line beside those that went, train.py:1 was executed"


def test_a_line_in_a_function_that_nobody_calls_was_not(tmp_path: Path) -> None:
    found = ran(tmp_path, BEFORE.replace("x * 2", "x * 3"))
    assert (found.state, "train.py:5" in found.said) == ("no", True)


def test_a_command_without_python_cannot_tell(tmp_path: Path) -> None:
    assert ran(tmp_path, BEFORE.replace("x * 2", "x * 3"), "true").state == "unknown"
    assert ran(tmp_path, BEFORE.replace("x * 2", "x * 3"), sys.executable, "-I", "-c", "pass").state == "unknown"


def test_a_program_that_compiles_its_functions_cannot_tell(tmp_path: Path) -> None:
    found = ran(tmp_path, BEFORE.replace("x * 2", "x * 3"), other="import torch\nf = torch.compile(f)\n")
    assert (found.state, "torch.compile" in found.said) == ("unknown", True)


def test_a_worker_process_counts(tmp_path: Path) -> None:
    main = ("import multiprocessing, work\nif __name__ == '__main__':\n"
            "    p = multiprocessing.get_context('spawn').Process(target=work.go)\n    p.start(); p.join()\n")
    assert ran(tmp_path, "def go():\n    return 2\n", sys.executable, "main.py", before="def go():\n    return 1\n",
               name="work.py", main=main).state == "yes"


def test_a_thread_counts(tmp_path: Path) -> None:
    after = "import threading\ndef go():\n    x = 2\nt = threading.Thread(target=go)\nt.start(); t.join()\n"
    assert ran(tmp_path, after, before=after.replace("x = 2", "x = 1")).state == "yes"


def test_the_users_own_sitecustomize_still_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own/sitecustomize.py").write_text("import os\nopen(os.environ['SEEN'], 'w').close()\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "own"))
    monkeypatch.setenv("SEEN", str(tmp_path / "seen"))
    assert ran(tmp_path, BEFORE.replace("x + 1", "x + 3")).state == "yes"
    assert (tmp_path / "seen").exists()


def test_other_files_than_python_cannot_tell(tmp_path: Path) -> None:
    found = executed([Change("config.yaml", "lr: 10\n", "lr: 0.1\n")], tmp_path, [tmp_path])
    assert found == Executed("unknown", "whether the change was executed cannot be told: config.yaml is no Python file")


@pytest.mark.parametrize(("before", "after", "spans"), [
    ("a = 1\nb = f(\n    1,\n    2)\n", "a = 1\nb = f(\n    1,\n    3)\n", ((2, 4),)),
    ("for x in y:\n    f(x)\n", "for x in y:\n    f(x)\n    g(x)\n", ((3, 3),)),
    ("if a:\n    f()\n", "if b:\n    f()\n", ((1, 1),)),
    ("a = 1\nb = 2\nc = 3\n", "a = 1\nc = 3\n", ((1, 1), (2, 2))),
    ("a = 1\n", "# why\na = 1\n", ()),
    ("a = 1\n", "a = (\n", ()),
    ("@old\ndef f():\n    pass\n", "@new\ndef f():\n    pass\n", ((1, 2),)),
    ("try:\n    f()\nexcept A:\n    g()\n", "try:\n    f()\nexcept A:\n    h()\n", ((4, 4),)),
])
def test_a_changed_line_stands_for_its_statement(before: str, after: str, spans: tuple[tuple[int, int], ...]) -> None:
    assert statements(Change("x.py", before, after)) == spans
