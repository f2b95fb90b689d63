"""The two arms of the hard kind are what they are called: without the pack there is nothing of it, with it all of it.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import eval_skills
import skill_arms
from skill_arms import LANDS, environment, interpreter
from skill_asking import PLAIN, Asker
from skill_cases import ROOT, skills
from skill_hard import Replayed, arm, attempt, load_hard

pytestmark = [pytest.mark.slow, pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="the shell is the protected runner, on Linux alone")]
HARD = load_hard()
hard = pytest.mark.parametrize("case", HARD, ids=lambda c: c.name)
Run = Callable[[str], str]


@pytest.fixture(autouse=True)
def _a_slow_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(skill_arms, "SECONDS", 600.0)


def made(folder: Path, *, with_pack: bool) -> tuple[str, Run, Path]:
    """System text, shell and project of an arm."""
    work = folder / "work"
    work.mkdir()
    HARD[0].build(work, 5)
    system, run = arm(Asker(None, "m", "m", skills()), work, with_pack=with_pack)
    return system, run, work


@pytest.mark.parametrize("with_pack", [False, True], ids=["without", "with"])
def test_no_arm_has_the_package(tmp_path: Path, with_pack: bool) -> None:
    _, run, _ = made(tmp_path, with_pack=with_pack)
    for name in ("traindx", "traindx_tools"):
        assert f"No module named '{name}'" in run(f"python -c 'import {name}'")
        assert f"No module named '{name}'" in run(f"cd /; python3 -c 'import {name}'")
    assert "not found" in run("traindx --version")
    assert run("command -v traindx") == "exit code 1"
    assert re.fullmatch(r"\d+\.\d+\S*\s*", run("python -c 'import numpy; print(numpy.__version__)'"))


@pytest.mark.parametrize("package", ["torch", "jax"])
def test_frameworks_are_there_in_both(tmp_path: Path, package: str) -> None:
    pytest.importorskip(package)
    _, run, _ = made(tmp_path, with_pack=False)
    assert run(f"python -c 'import {package}; print({package}.__name__)'").strip().endswith(package)


def test_without_the_pack_nothing_speaks_of_it(tmp_path: Path) -> None:
    system, _, work = made(tmp_path, with_pack=False)
    assert system == PLAIN
    assert not list(work.rglob("SKILL.md"))


def test_with_the_pack_the_skill_lies_where_its_text_says(tmp_path: Path) -> None:
    system, run, work = made(tmp_path, with_pack=True)
    base = re.search(r"Base directory for this skill: (\S+)", system)
    assert base is not None
    folder = Path(base[1])
    assert folder == work / LANDS / "ml-debug"
    shipped = {p.relative_to(ROOT / "skills") for p in (ROOT / "skills").rglob("*")
               if p.is_file() and "__pycache__" not in p.parts}
    assert {p.relative_to(work / LANDS) for p in (work / LANDS).rglob("*") if p.is_file()} == shipped
    assert run(f"ls {folder}/references | wc -l").strip() not in ("", "0")
    told = json.loads(run(f"cd {folder} && python scripts/traindx_run.py where 2>/dev/null"))
    assert (told["instruments"], told["traindx"]) == ("bundled", None)
    seen = run(f"python {folder}/scripts/traindx_run.py explain L101 2>&1 | head -c 300")
    assert '"name": "L101"' in seen, seen


def test_variables_that_lead_to_our_sources_are_taken_away(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "traindx").write_text("")
    given = {"PATH": f"{tmp_path}/bin:/usr/bin", "PYTHONPATH": str(ROOT / "tools"), "VIRTUAL_ENV": "x", "HOME": "/h",
             "TRAINDX_BACKEND": "claude"}
    made = environment(tmp_path / "own", tmp_path / "runs", given)
    assert made["PATH"] == f"{tmp_path}/own:/usr/bin"
    assert set(made) == {"PATH", "HOME", "TRAINDX_RUNS", "PYTHONDONTWRITEBYTECODE"}


def test_the_interpreter_leaves_a_package_of_the_person_where_it_is(tmp_path: Path) -> None:
    programs = interpreter(tmp_path / "python")
    done = subprocess.run([programs / "python", "-I", "-c", "import yaml, sys; print(sys.prefix)"], capture_output=True,
                          text=True, check=True, timeout=100)
    assert done.stdout.strip() == str(tmp_path / "python")


@hard
@pytest.mark.parametrize(("kind", "right"), [("good", True), ("bad", False)])
def test_a_measured_answer_is_right_on_another_build_and_a_guess_is_not(case: Any, kind: str, right: bool) -> None:
    asker = Asker(Replayed(case.transcripts[kind]), "scripted", "scripted", skills())
    done, truth = attempt(asker, case, 17, with_pack=False)
    assert done.failure == ""
    assert done.calls == 1
    assert done.right(truth) is right, (done, truth)


def test_transcripts_prove_the_harness_and_say_that_they_measure_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert eval_skills.main(["--transcripts", "--runs", "1", "--only", "rolled-shard"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("No rate was measured with a model")
    row = shown.splitlines()[-1].split()
    assert row[:3] == ["all", "100%", "0%"], shown
