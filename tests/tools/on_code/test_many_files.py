"""Rules that ask all files of a project do so once: their work grows with the files, not with their square."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import pytest

from traindx_tools.on_code.filling.program_of import program_of
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import parse_texts
from traindx_tools.source_files.texts import read_texts

FIXTURES = Path(__file__).parent / "fixtures"


def project(folder: Path, rule: str, copies: int) -> Project:
    """Every fixture of a rule, each so many times, a folder for each copy."""
    for number in range(copies):
        own = folder / str(number)
        own.mkdir(parents=True)
        for path in (FIXTURES / rule).glob("*.py"):
            (own / path.name).write_text(path.read_text())
    texts, notes = read_texts([folder])
    return Project.of(parse_texts(texts, notes))


@pytest.mark.parametrize(
    ("rule", "module", "owner", "name"),
    [
        ("c133", "traindx_tools.invariants.every_optimizer_steps", None, "training_loop"),
        ("c273", "traindx_tools.invariants.the_blank_is_no_character", "traindx_tools.on_code.filling.part_fits",
         "_added"),
    ],
)
def test_twice_the_files_are_twice_the_work(
    rule: str, module: str, owner: str | None, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked: ModuleType = importlib.import_module(module)
    asked: ModuleType = importlib.import_module(owner or module)
    real, calls = getattr(asked, name), [0]

    def counted(*given: object) -> object:
        calls[0] += 1
        return real(*given)

    monkeypatch.setattr(asked, name, counted)
    made: list[int] = []
    for copies in (6, 12):
        calls[0] = 0
        given: object = project(tmp_path / f"{name}{copies}", rule, copies)
        list(checked.check(program_of(given) if "invariants" in module else given))
        made.append(calls[0])
    assert made[0] > 0
    assert made[1] <= 2.3 * made[0]


def test_copies_that_traindx_made_are_no_code_of_the_project(tmp_path: Path) -> None:
    for name in ("train.py", "scratch/mine.py", "scratch/debug/s1/evidence/run-0/copy/train.py", "debug/log.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x = 1\n")
    texts, notes = read_texts([tmp_path])
    assert [Path(t.path).relative_to(tmp_path).as_posix() for t in texts] == ["debug/log.py", "scratch/mine.py",
                                                                             "train.py"]
    assert notes == []
    named, _ = read_texts([tmp_path / "scratch" / "debug" / "s1"])
    assert len(named) == 1, "a folder that is named is read"
