"""`traindx.toml` and `--not`: what a project remembers is used and said each time; it hides a finding, never unsaid."""

from __future__ import annotations

import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traindx import cli
from traindx.diagnose import diagnose
from traindx.project_file import NO_FILE, checked, find, read_project_file, remember
from traindx.session import read_result, run_debug_session_sync
from traindx_tools.catalog.catalog import load_catalog
from traindx_tools.errors import BadUsage, UnreadableInput
from traindx_tools.set_aside import SetAside
from traindx_tools.sources.resolving import FETCHED

EXAMPLE = Path(__file__).parents[2] / "examples" / "numpy-lr"
MODE = "loss.log-of-zero"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    return Path(shutil.copytree(EXAMPLE, tmp_path / "work"))


def run(*arguments: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    code = cli.run(arguments)
    said = capsys.readouterr()
    return code, said.out, said.err


@pytest.mark.slow
def test_a_cause_that_a_person_disagrees_with_is_set_aside_now_and_later(
        work: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(work)
    assert diagnose(["."]).seen.verdict.hypotheses[0].mode.id == MODE
    code, out, err = run("diagnose", ".", "--not", MODE, "--because", "clipped  elsewhere", "--json", capsys=capsys)
    assert "written in" in err
    told = json.loads(out)
    assert told["set_aside"] == [{"name": MODE, "because": "clipped elsewhere", "path": None, "source": "traindx.toml",
                                  "findings": 0}]
    assert MODE not in {c["failure_mode"] for c in told["root_causes"]}
    again, page, _ = run("diagnose", ".", capsys=capsys)
    assert again == code == 3
    assert f'set aside by traindx.toml: "{load_catalog()[MODE].title}" [{MODE}], because clipped elsewhere' in (
        " ".join(page.split()))


def test_the_same_disagreement_is_written_once_and_the_file_stays_as_it_was(work: Path) -> None:
    (work / "traindx.toml").write_text('# ours\n[names]\nVerlust = "loss"')
    one = checked(MODE, "no")
    remember(work, one)
    text = remember(work, one).read_text()
    assert text.startswith('# ours\n[names]\nVerlust = "loss"\n')
    assert text.count("[[ignore]]") == 1
    assert read_project_file(work).names == {"Verlust": "loss"}


@given(st.text(alphabet=st.characters(blacklist_categories=("Cs",)), min_size=1).filter(lambda t: t.strip()))
def test_any_reason_comes_back_as_it_was_written(tmp_path_factory: pytest.TempPathFactory, reason: str) -> None:
    folder = tmp_path_factory.mktemp("any")
    remember(folder, checked("L204", reason))
    assert [a.because for a in read_project_file(folder).ignored] == [" ".join(reason.split())]


def test_a_rule_is_set_aside_in_the_files_of_its_pattern_alone(work: Path) -> None:
    rules = {f.rule for f in diagnose([work]).seen.findings if f.where.file == "train.py"}
    rule = sorted(r for r in rules if r.startswith("C"))[0]
    for pattern, gone in (("eval/*.py", False), ("tr*.py", True)):
        (work / "traindx.toml").write_text(f'[[ignore]]\nrule = "{rule}"\nbecause = "tried"\npath = "{pattern}"\n')
        report = diagnose([work])
        assert (rule not in {f.rule for f in report.seen.findings}) == gone
        assert [n for _, n in report.seen.aside] == [1 if gone else 0] or gone
        assert any("because tried" in note for note in report.notes)


def test_names_and_entry_point_are_read_and_an_option_comes_first(work: Path) -> None:
    (work / "log.txt").write_text("".join(f"schritt {i} Verlust {2 / (i + 1):.4f}\n" for i in range(30)))
    (work / "other.py").write_text("print(1)\n")
    (work / "metrics.csv").unlink()
    (work / "traindx.toml").write_text('entry = ["train.py"]\n[names]\nVerlust = "loss"\n')
    report = diagnose([work])
    assert [p.name for p in report.seen.scope.entry] == ["train.py"]
    assert report.seen.run.loss is not None
    assert diagnose([work], names={"Verlust": "accuracy"}).seen.run.first("accuracy") is not None


def test_the_nearest_file_up_to_the_top_of_the_repository_counts(tmp_path: Path) -> None:
    (tmp_path / "traindx.toml").write_text("budget = 1\n")
    inside = tmp_path / "repo" / "runs" / "a"
    inside.mkdir(parents=True)
    assert find(inside) == tmp_path / "traindx.toml"
    (tmp_path / "repo" / ".git").mkdir()
    assert read_project_file(inside) is NO_FILE
    (tmp_path / "repo" / "traindx.toml").write_text("budget = 30\n")
    assert read_project_file(inside).budget == 30.0


@pytest.mark.parametrize(("text", "told"), [
    ("[[", "not valid TOML"),
    ("x = " + "[" * 20000, "not valid TOML"),
    (".".join("a" * 20000) + " = 1", "dots"),
    ("#" * 70000, "larger than 64 KiB"),
    ("entri = 1", "no setting 'entri'"),
    ("entry = 3", "list of Python files"),
    ('entry = ["gone.py"]', "not there"),
    ('entry = ["../out.py"]', "outside"),
    ('budget = "5"', "expected seconds"),
    ("budget = true", "expected seconds"),
    ("budget = 1e9", "expected seconds"),
    ("names = 3", "[names]"),
    ("[names]\na = 3", "[names]"),
    ('ignore = ["L204"]', "list of tables"),
    ('[[ignore]]\nbecause = "x"', "no rule"),
    ('[[ignore]]\nrule = "L204"', "without a reason"),
    ('[[ignore]]\nrule = "L999"\nbecause = "x"', "no rule and no failure mode"),
    ('[[ignore]]\nrule = "L204"\nbecause = 3', "because"),
    (f'[[ignore]]\nrule = "{MODE}"\nbecause = "x"\npath = "a"', "has no files"),
])
def test_a_file_that_is_not_as_expected_is_told_in_one_line(work: Path, text: str, told: str,
                                                           capsys: pytest.CaptureFixture[str]) -> None:
    (work.parent / "out.py").write_text("")
    (work / "traindx.toml").write_text(text)
    code, out, err = run("diagnose", str(work), capsys=capsys)
    assert (code, out) == (2, "")
    assert told in err
    assert err.count("\n") == 1


def test_nothing_is_written_for_an_unknown_name_a_missing_reason_or_a_list_in_one_line(
        work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for more in (("--not", "L999", "--because", "x"), ("--not", "L204"), ("--because", "x")):
        assert run("diagnose", str(work), *more, capsys=capsys)[0] == 2
    assert not (work / "traindx.toml").exists()
    (work / "traindx.toml").write_text("ignore = []\n")
    with pytest.raises(BadUsage):
        remember(work, SetAside("L204", "x"))
    assert (work / "traindx.toml").read_text() == "ignore = []\n"


def test_a_folder_that_cannot_be_written_keeps_its_file_and_says_what_to_add(
        work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("os.replace", refused)
    with pytest.raises(UnreadableInput, match=r"(?s)Permission denied.*rule = .L204."):
        remember(work, checked("L204", "x"))
    assert not [p for p in work.iterdir() if "traindx.toml" in p.name]


def test_a_link_stays_one_line_ends_stay_and_a_mark_at_the_start_is_read(work: Path, tmp_path: Path) -> None:
    shared = tmp_path / "shared.toml"
    shared.write_bytes(b'\xef\xbb\xbfbudget = 30\r\n[names]\r\nVerlust = "loss"\r\n')
    (work / "traindx.toml").symlink_to(shared)
    remember(work, checked("L204", "x"))
    assert (work / "traindx.toml").is_symlink()
    text = shared.read_bytes()
    assert text.count(b"\r\n") == text.count(b"\n")
    read = read_project_file(work)
    assert (read.budget, dict(read.names), [a.name for a in read.ignored]) == (30.0, {"Verlust": "loss"}, ["L204"])
    assert {p.name for p in work.iterdir() if "traindx.toml" in p.name} == {"traindx.toml"}


def test_several_that_write_at_once_lose_nothing(work: Path) -> None:
    rules = ["L101", "L106", "L107", "L201", "L203", "L204", "L301", "L302"]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda rule: remember(work, checked(rule, "x")), rules))
    assert sorted(a.name for a in read_project_file(work).ignored) == rules


def test_what_is_no_file_is_told(work: Path) -> None:
    os.mkfifo(work / "traindx.toml")
    with pytest.raises(BadUsage, match="no file"):
        remember(work, checked("L204", "x"))
    (work / "traindx.toml").unlink()
    (work / "traindx.toml").write_text("ignore = []\n")
    with pytest.raises(BadUsage, match="cannot be added to"):
        remember(work, checked("L204", "x"))


def test_a_session_says_what_is_set_aside_and_does_not_present_it(work: Path) -> None:
    remember(work, checked(MODE, "clipped elsewhere"))
    result = run_debug_session_sync("loss is NaN", work, report=False)
    assert any(f"[{MODE}], because clipped elsewhere" in note for note in result.notes)
    assert result.diagnosis is None or result.diagnosis.failure_mode != MODE
    (work / "traindx.toml").write_text("[[")
    assert any("not valid TOML" in note for note in read_result(result.folder).notes)


def test_of_a_fetched_run_the_current_folder_is_the_project(work: Path, tmp_path: Path,
                                                           monkeypatch: pytest.MonkeyPatch) -> None:
    fetched = tmp_path / f"{FETCHED}abc" / "run"
    fetched.mkdir(parents=True)
    monkeypatch.chdir(work)
    assert remember(fetched, checked("L204", "x")) == work.resolve() / "traindx.toml"
    assert [a.name for a in read_project_file(fetched).ignored] == ["L204"]
