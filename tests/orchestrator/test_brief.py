"""What `traindx diagnose` prints without -v: about twenty lines, each thing once, in words, as wide as the terminal."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from traindx import cli
from traindx.course import course_of
from traindx.diagnose import diagnose
from traindx.in_brief import next_command, without_lists
from traindx.model import Diagnosis, Evidence, Fix, ProposedEdit
from traindx.named_places import NamedPlaces
from traindx.page import Page, columns
from traindx.terminal import render_gate, render_terminal
from traindx.terminal_brief import MOST_LINES
from traindx.view import View, percent
from traindx_tools.artifact import Artifact
from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_logs.run import Run

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "numpy-lr"
AN_ID = re.compile(r"\b[A-Z]\d{3}-\d+\b|\bdist\.|\bopt\.wrong")
SEEN = "rank 1 waited for 6 s in recv for the others"
ASKED = "training runs, then the first validation hangs and dies"


def finding(rule: str, statement: str, where: Location, bearing: Bearing = Bearing.SIGN) -> dict[str, Any]:
    made = Finding(rule, "t", Severity.CRITICAL, bearing, statement, where, where.file or "")
    return {"id": f"{rule}-1", **made.to_json()}


FINDINGS = [
    finding("C117", "all_gather at train.py:33 is called once for each batch of a rank's own share",
            Location(file="train.py", line=33), Bearing.CAUSE),
    finding("L515", SEEN, Location(file="/home/user/project/train.py", line=64)),
    finding("L701", "ranks have different numbers of val batches (rank 0: 11, rank 1: 10)",
            Location(file="./log.txt", line=1)),
]
CLAIM = "Ranks have different numbers of batches (uneven sharding, filtering, no drop_last), so one leaves the loop"


def answer(kind: str, statement: str, where: str, **more: Any) -> dict[str, Any]:
    return {"said": ASKED, "kind": kind, "where": where, "answer": "seen", "statement": statement,
            "explained_by": "dist.uneven-batches", "expected": "", "refuted": False, "question": "", **more}


def told(status: str = "diagnosis_complete", **more: Any) -> dict[str, Any]:
    first = {"issue": f"{CLAIM}: {FINDINGS[0]['statement']}.", "mechanism": "", "location": "train.py:33",
             "confidence": 0.85, "confirm": [], "rule_out": [], "against": [],
             "for": [f"[{f['id']}] +1.0 (ran, {f['bearing']}): {f['statement']}" for f in FINDINGS]}
    rival = {**first, "issue": "A metric is computed on one rank's shard.", "confidence": 0.06, "location": None,
             "for": first["for"][2:], "against": []}
    cause = {"issue": first["issue"], "severity": "critical", "fix": "", "confidence": 0.85, "location": "train.py:33",
             "failure_mode": "dist.uneven-batches"}
    return {
        "status": status, "root_causes": [cause] if status == "diagnosis_complete" else [],
        "hypotheses": [] if status == "healthy" else [first, rival],
        "findings": [] if status == "healthy" else FINDINGS,
        "next_checks": ["traindx debug . --verify 'python train.py'", "traindx log . --format csv"],
        "analysis_artifacts": {},
        "symptom_answer": [answer("hang", SEEN, "/home/user/project/train.py:64, epoch 0, rank 1"),
                           answer("crash", "RuntimeError: Timed out", "./log.txt:4")],
        **more,
    }


def a_diagnosis(edits: tuple[ProposedEdit, ...] = (), **more: Any) -> Diagnosis:
    own = edits or (ProposedEdit(path="train.py", line=19, end_line=19, original="x = x[rank::W]",
                                 replacement="x = x[rank:n:W]"),)
    evidence = tuple(Evidence(id=f["id"], statement=f["statement"], value="v", place=place, strength="ran",
                              bearing=f["bearing"])
                     for f, place in zip(FINDINGS, ("train.py:33", "train.py:64, epoch 0", "log.txt:1"), strict=True))
    cited = " ".join(f"{e.statement} [{e.id}]." for e in evidence)
    return Diagnosis(**{
        "symptom": f"{ASKED}. Seen: {SEEN}", "claim": CLAIM, "root_cause": f"{CLAIM}: {cited}",
        "why_this_happens": "Each gather is a collective.", "proposed_fix": "A",
        "will_change": ("a sample is dropped",), "will_not_fix": ("ranks that crash",),
        "failure_mode": "dist.uneven-batches", "component": "train.py",
        "confidence": 0.85, "location": "train.py:33", "cites": tuple(e.id for e in evidence), "evidence": evidence,
        "options": (Fix(option="A", summary="Equal numbers", edits=own), Fix(option="B", summary="Collective decisions",
                                                                              change="all_reduce the condition")),
        **more})


def a_run() -> Run:
    return Run(series=(), artifacts=(Artifact("./log.txt", "free_text"), Artifact("./train.py", "python")))


def brief(result: dict[str, Any] | None = None, *, width: int = 80, **more: Any) -> str:
    given = told() if result is None else result
    made = more.pop("diagnosis", a_diagnosis() if given["status"] == "diagnosis_complete" else None)
    return render_terminal(given, run=a_run(), diagnosis=made, files={"report": "scratch/report.html"}, width=width,
                           **more)


@pytest.mark.parametrize("width", [40, 80, 120])
def test_one_cause_is_told_in_twenty_lines_in_words_and_as_wide_as_the_terminal(width: int) -> None:
    text = brief(width=width)
    rows = text.splitlines()
    assert len(rows) <= (20 if width >= 80 else 40)
    assert max(map(len, rows)) <= width or width == 40
    assert not AN_ID.search(text), "no ids without words"
    assert re.sub(r"\s+", " ", " ".join(rows[:2])).startswith("Cause found 85 % confident, critical, train.py:33")
    order = ["Cause found", "Evidence", "Against", "Else", "You said", "Fix A", "Fix B", "Next", "traindx debug",
             "Report"]
    places = [text.index(word) for word in order]
    assert places == sorted(places)


def test_the_sentence_of_this_run_comes_before_that_of_the_catalog_without_its_list() -> None:
    flat = " ".join(brief(width=120).split())
    assert flat.index("all_gather at train.py:33") < flat.index("That is: Ranks have different numbers of batches, so")
    assert without_lists("It is a (or, in steps, something else)") == "It is a (or, in steps, something else)"
    sign = told()
    sign["hypotheses"][0]["for"] = sign["hypotheses"][0]["for"][1:]
    sign["hypotheses"][0]["issue"] = f"{CLAIM}: {SEEN}."
    assert brief(sign, width=120).splitlines()[1].startswith("  Ranks have different"), "a sign is evidence, no cause"


def test_a_symptom_is_quoted_once_however_many_observations_answer_it() -> None:
    text = brief(width=120)
    assert text.count(ASKED) == 1
    assert "seen, and this cause would give it (train.py:64, log.txt:4)" in text
    whole = brief(width=120, verbose=True)
    assert whole[:whole.index("Diagnosis (Gate 4)")].count(ASKED) == 1


def test_what_was_seen_above_is_not_told_again_and_a_question_is_asked() -> None:
    open_one = told("needs_more_data", symptom_answer=[
        answer("hang", SEEN, "./log.txt:3", explained_by=None),
        answer("garbled", "not in what was read: 2 metrics.", "", explained_by=None, answer="not_seen",
               question="Can you hand over some samples?")])
    for h in open_one["hypotheses"]:
        h["confidence"] = 0.06
    text = brief(open_one)
    assert "seen, as above; unexplained" in text
    assert "not seen in what was read. Can you hand over some samples?" in text
    assert " ".join(text.split()).count(SEEN) == 1


def test_an_open_run_names_what_was_seen_two_suspects_in_a_line_each_and_one_command() -> None:
    checks = ["traindx log . --format csv", "traindx diagnose . --run 'python train.py'",
              "traindx experiment . --run 'python train.py' --change no-ema"]
    result = told("needs_more_data", next_checks=checks, symptom_answer=[])
    result["hypotheses"][0]["confidence"] = 0.3
    text = brief(result)
    rows = text.splitlines()
    assert rows[0] == "Needs more data  no cause reaches 70 %"
    assert any(r.startswith("Seen      ") for r in rows)
    assert [r[10:15] for r in rows if re.match(r"(Suspects| {8})  \d+ %: ", r)] == ["30 %:", "6 %: "]
    assert [r for r in rows if r.startswith("  traindx ")] == [f"  {checks[1]}"], "what decides, and nothing else"
    assert len(rows) <= 20


def test_evidence_is_whole_where_the_screen_has_room_and_cut_where_it_has_not() -> None:
    long = ("log(1 - p) reaches exactly 0: 1 - EPS is exactly 1 in float32 (EPS = 1e-12), as for every epsilon below "
            "3e-8, so that the clamp clip(p, EPS, 1 - EPS) at train.py:45 does not prevent it, whatever p is")
    found = [{**f, "statement": long} if f["rule"] == "L515" else f for f in FINDINGS]
    short = " ".join(brief(told(findings=found, symptom_answer=[])).split())
    assert long in short
    lines = "\n".join(f"line {i}" for i in range(40))
    edit = ProposedEdit(path="train.py", line=1, end_line=40, original=lines, replacement=lines.upper())
    full = " ".join(brief(told(findings=found), diagnosis=a_diagnosis((edit,))).split())
    assert long not in full
    assert long[:60] in full


def test_a_number_keeps_its_sign_and_a_difference_its_terms_on_one_line() -> None:
    page = Page(40)
    for text in ("aa " * 12 + "99 % of it", "aa " * 11 + "1 - EPS is 1", "bb " * 12 + "(x) + 3 too"):
        assert not any(re.match(r"\s*[%+-] ", row) or re.search(r" [+-]$", row) for row in page.wrap(text, ""))
        assert " ".join(page.wrap(text, "")) == text.strip()


def test_a_likely_suspect_stands_in_the_first_line_and_is_not_rounded_to_a_cause() -> None:
    result = told("needs_more_data")
    result["hypotheses"][0]["confidence"] = 0.695
    assert brief(result).splitlines()[0] == (
        "Needs more data  69 % sure, train.py:33; from 70 % on it is called the cause")
    assert (percent(0.695), percent(0.7), percent(0.0004), percent(0.97)) == ("69 %", "70 %", "< 1 %", "97 %")


def test_a_healthy_run_says_why_and_answers() -> None:
    expected = answer("rises", "loss rises.", "./log.txt:1", explained_by=None, expected="such a loss does that")
    text = brief(told("healthy", symptom_answer=[expected], next_checks=["traindx log ."]),
                 reason="60 values were checked.")
    assert text.startswith("Nothing wrong found\n  60 values were checked.\n")
    assert "seen, and to be expected: such a loss does that (log.txt:1)" in text
    assert "traindx log" not in text
    assert len(text.splitlines()) < 8


def test_a_long_change_gets_the_room_that_is_left_and_never_more() -> None:
    lines = "\n".join(f"line {i}" for i in range(40))
    edit = ProposedEdit(path="train.py", line=1, end_line=40, original=lines, replacement=lines.upper())
    rows = brief(diagnosis=a_diagnosis((edit,))).splitlines()
    assert len(rows) <= MOST_LINES
    assert any(re.fullmatch(r"  \.\.\. \d+ more lines, all of them with -v", r) for r in rows)
    assert "-line 0" in "\n".join(rows)
    two = (ProposedEdit(path="a.py", line=3, end_line=3, original="x", replacement="y"),
           ProposedEdit(path="b.py", line=7, end_line=6, original="", replacement="z"))
    assert "Fix A     Equal numbers (a.py:3, also b.py:7)\n  a.py:3\n  -x\n  +y\n  b.py:7\n  +z\n" in brief(
        diagnosis=a_diagnosis(two))


def test_of_several_runs_the_judged_one_and_three_others_are_told() -> None:
    runs = [{"number": n, "of": 6, "file": "log.txt", "from_line": 10 * n, "to_line": 10 * n + 9, "said": f"no {n}"}
            for n in range(1, 7)]
    scope = {"entry": ["train.py"], "how": "the only script here", "judged": ["train.py"], "beside": []}
    text = brief(told(runs=runs, judged_run=6, scope=scope))
    assert "Run 6 of 6 (log.txt, lines 60 to 69) is the one that is judged; --which N" in text
    assert "and 2 more runs with -v" in text
    assert len(text.splitlines()) <= MOST_LINES


def test_beside_a_good_run_the_first_difference_and_three_likely_ones_are_told() -> None:
    ranked = [{"kind": "setting", "statement": f"lr{n}: 5.0 here, 0.001 there", "why": [], "weight": 1.0, "undo": "u"}
              for n in range(5)]
    comparison = {"there": ["good"], "metrics": [{"name": "loss", "step": 500.0, "statement": "loss: apart from 500"}],
                  "ranked": ranked, "only_here": [], "only_there": [], "code": [], "remarks": []}
    text = brief(told(comparison=comparison))
    assert "Beside    good: loss: apart from 500\n          1. setting: lr0: 5.0 here" in text
    assert "and 2 more differences with -v" in text


@pytest.mark.parametrize("status", ["diagnosis_complete", "needs_more_data", "healthy"])
@pytest.mark.parametrize("verbose", [False, True])
def test_hostile_text_stays_text(status: str, verbose: bool) -> None:
    evil = "\x1b[2J\x1b]0;t\x07 Next\n  traindx rm \u202e " + "x" * 5000
    result = told(status, symptom_answer=[answer("hang", evil, evil, said=evil)], next_checks=[f"traindx log '{evil}'"])
    text = brief(result, reason=evil, notes=[evil], verbose=verbose, width=100)
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "\u202e" not in text


def test_nothing_that_was_read_is_no_error() -> None:
    empty = {"status": "needs_more_data", "root_causes": [], "hypotheses": [], "findings": [], "next_checks": [],
             "analysis_artifacts": {}}
    text = render_terminal(empty, reason="No metrics and no errors were found in what was given.")
    assert "No metrics and no errors were found" in text
    assert "Suspects" not in text, "that there is none follows from what was said"
    assert next_command(View(empty)) == ""


def test_a_text_is_cut_at_a_clause_and_keeps_its_place() -> None:
    page = Page(64)
    said = "the loss turns nan at step 7; no gradient rose before it, and nothing else was seen in all of what was read"
    assert page.fit(said, "", most=1, place="log.txt:3") == ["the loss turns nan at step 7 … (log.txt:3)"]
    assert page.fit("short", "", place="log.txt:3") == ["short (log.txt:3)"]
    assert page.fit("short at log.txt:3", "", place="log.txt:3") == ["short at log.txt:3"]
    late = "a sentence that is far longer than the width of this page and names its place at the end, log.txt:3"
    assert page.fit(late, "", place="log.txt:3")[0].endswith("… (log.txt:3)"), "cut before it says the place"
    assert all(len(row) <= 64 for row in page.fit("word " * 200, "    ", most=3))
    assert len(page.fit("x" * 500, "", most=2)) == 1, "a path is never broken"


def test_places_have_one_name() -> None:
    named = NamedPlaces.of(["./log.txt", "./src/train.py", "./train.py"])
    assert named.told("at /home/user/project/train.py:71 and ./log.txt:4") == "at train.py:71 and log.txt:4"
    assert named.told("/home/me/src/train.py:3") == "src/train.py:3", "the longest equal tail"
    assert named.told("/etc/passwd and https://a.b/train.py") == "/etc/passwd and https://a.b/train.py"
    assert named.told(f"[/{'very/' * 9}long/buffer.cc:78] Timed out") == "[…/buffer.cc:78] Timed out"
    assert NamedPlaces(()).told("./log.txt:4") == "log.txt:4"


def test_the_width_is_the_terminals_within_what_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with (tmp_path / "file").open("w") as pipe:
        monkeypatch.delenv("COLUMNS", raising=False)
        assert columns(pipe) == 100
        for told_width, used in (("80", 80), ("500", 120), ("3", 40), ("wide", 100), ("0", 100)):
            monkeypatch.setenv("COLUMNS", told_width)
            assert columns(pipe) == used


def test_gate_4_is_complete_in_words_and_each_thing_is_told_once() -> None:
    text = render_gate(a_diagnosis(), width=80)
    flat = " ".join(text.split())
    for part in ("Symptom", "Root Cause", "Why This Happens", "Proposed Fix", "A: targeted: Equal numbers",
                 "B: broader: Collective decisions", "+x = x[rank:n:W]", "What This Fix Will Change",
                 "a sample is dropped", "What This Fix Will NOT Fix", "Does this match what you see?",
                 "A: targeted fix (Equal numbers) or B", "This also changes: a sample is dropped."):
        assert part in flat
    assert flat.count("all_gather at train.py:33") == 1
    assert flat.count(SEEN) == 1
    assert "(log.txt:1) [L701-1]" in flat
    assert all(re.search(r"\w.*\[[A-Z]\d{3}-\d+\]", row) for row in text.splitlines() if AN_ID.search(row)
               and not row.lstrip().startswith("["))
    assert max(map(len, text.splitlines())) <= 80


def test_a_cause_in_somebodys_own_words_is_shown_as_they_said_it() -> None:
    own = a_diagnosis(root_cause="The ranks disagree: see [C117-1] and P001:3.")
    assert "The ranks disagree: see [C117-1] and P001:3." in " ".join(render_gate(own).split())


@pytest.mark.slow
def test_the_example_at_eighty_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str],
                                       monkeypatch: pytest.MonkeyPatch) -> None:
    work = shutil.copytree(EXAMPLE, tmp_path / "run", ignore=shutil.ignore_patterns("scratch", "__pycache__"))
    monkeypatch.chdir(work)
    monkeypatch.setenv("COLUMNS", "80")
    assert cli.run(["diagnose", ".", "--symptom", "loss is nan"]) == 1
    rows = capsys.readouterr().out.splitlines()
    assert len(rows) <= 22
    assert max(map(len, rows)) <= 80
    report = rows[-1].split()[1]
    assert (work / report).is_file()
    assert not AN_ID.search("\n".join(rows))
    whole = diagnose(["."], symptom="loss is nan").terminal({}, verbose=True)
    assert all(part in whole for part in ("What was read", "Timeline", "Hypotheses", "Diagnosis (Gate 4)"))


def of_log(folder: Path, text: str, symptom: str = "", width: int = 80) -> str:
    """The brief page of a log alone."""
    path = folder / "train.log"
    path.write_text(text, encoding="utf-8")
    return diagnose([path], symptom=symptom, root=folder).terminal({"report": "scratch/report.html"}, width=width)


READ = "".join(f"step {i} loss {2 / (1 + i / 20):.4f} val_acc {0.764 - 0.5 / (1 + i):.4f}\n" for i in range(60))
UNREAD = "".join(f">> {i}: {0.3 + i / 300:.3f} / {0.9 - i / 300:.3f}\n" for i in range(60))


def test_lines_that_were_not_read_are_told_with_their_share_and_a_command_that_reads_them(tmp_path: Path) -> None:
    text = of_log(tmp_path, "".join(a + b for a, b in zip(READ.splitlines(True), UNREAD.splitlines(True), strict=True)))
    assert text.startswith("Nothing wrong found\n")
    assert "Not read  50 % of the lines (60 of 120) hold numbers that were not used" in text
    assert '">> 0: 0.300 / 0.900"' in " ".join(text.split())
    assert "train.log --line '>> {step}: {metric_1} / {metric_2}'" in text


def test_where_nothing_could_be_read_the_page_says_so_and_not_that_there_are_no_metrics(tmp_path: Path) -> None:
    text = of_log(tmp_path, UNREAD)
    assert "60 lines hold numbers, and none of these was taken for a metric" in " ".join(text.split())
    assert "--line '>> {step}: {loss} / {metric_1}'" in text
    assert "Suspects" not in text


def test_a_log_that_is_read_says_nothing_of_lines(tmp_path: Path) -> None:
    text = of_log(tmp_path, READ)
    assert "Not read" not in text
    assert "--line" not in text


def test_a_healthy_answer_says_what_it_read_how_far_and_where_it_ends(tmp_path: Path) -> None:
    text = " ".join(of_log(tmp_path, READ).split())
    assert "Read 120 values of 2 metrics, steps 0 to 59; at the end loss 0.5063 (2 at first), val_acc 0.7557" in text
    assert "; at the end" not in of_log(tmp_path, READ, "the images are garbled")
    names = "".join(f"epoch {i} Kurve {1.5 - i / 90:.4f}\n" for i in range(60))
    assert "at the end Kurve 0.8444" in course_of(diagnose(written(tmp_path, names)).run)
    assert course_of(Run()) == ""


def written(folder: Path, text: str) -> list[Path]:
    (folder / "own.log").write_text(text)
    return [folder / "own.log"]


def test_a_stated_symptom_that_the_log_shows_is_the_headline_and_what_is_missing_follows(tmp_path: Path) -> None:
    text = of_log(tmp_path, READ, "val_acc 0.75, 0.90 expected", 120)
    assert text.startswith("What you describe is there; its cause is not in the log\n")
    assert "ends at 0.7557" in text
    assert "0.9 is expected" in text
    assert "PATH/TO/train.py" in text
    assert len(text.splitlines()) <= 20


def test_what_the_log_does_not_show_is_not_called_there(tmp_path: Path) -> None:
    assert of_log(tmp_path, READ, "the images are garbled").startswith("Needs more data")


def test_what_the_picture_of_a_healthy_run_marks_is_told_above_it(tmp_path: Path) -> None:
    spiked = [row.replace("loss ", "loss 9") if row.startswith("step 40 ") else row for row in READ.splitlines(True)]
    text = of_log(tmp_path, "".join(spiked))
    assert "Seen      loss spikes from " in text or "          loss spikes from " in text


def test_a_line_of_a_notebook_is_named_with_its_cell(tmp_path: Path) -> None:
    import json

    code = ("import torch\nfrom torch import nn\nnet = nn.Sequential(nn.Linear(4, 3), nn.Softmax(dim=1))\n"
            "optimizer = torch.optim.SGD(net.parameters(), lr=0.1)\nfor x, y in batches:\n    optimizer.zero_grad()\n"
            "    loss = nn.CrossEntropyLoss()(net(x), y)\n    loss.backward()\n    optimizer.step()\n")
    cells = [{"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None,
              "source": text.splitlines(keepends=True)} for text in ("batches = []\n", code)]
    book = tmp_path / "train.ipynb"
    book.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}), encoding="utf-8")
    report = diagnose([book], root=tmp_path)
    assert "train.ipynb:cell 2:7" in report.terminal({}).splitlines()[0]
    page = report._repr_html_()
    assert "-v prints" not in page
    assert "print(_.terminal(verbose=True)) prints all of it" in page
    assert report.terminal().endswith("terminal(verbose=True) prints all of it\n")
    assert " -v" not in report.terminal()


def test_a_cell_names_the_report_as_its_user_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys
    from types import SimpleNamespace

    path = tmp_path / "train.log"
    path.write_text(READ, encoding="utf-8")
    report = diagnose([path])
    shell = SimpleNamespace(user_ns={"_": report, "_7": report, "r": report})
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    line, = re.findall(r"print\((.*)\) prints all of it", report._repr_html_())
    assert eval(line, shell.user_ns) == report.terminal(verbose=True)
    del shell.user_ns["r"]
    assert "print(_.terminal(verbose=True)) prints all of it" in report._repr_html_()


def test_a_folder_of_more_files_than_are_looked_at() -> None:
    note = "only the first 2,000 of 5,000 files were looked at"
    run = Run(artifacts=(Artifact("logs", "folder", note=note), Artifact("logs/a.log", "free_text", rows=3)))
    assert View(told("healthy"), run).remarks == [f"logs: {note}"]
    assert note in render_terminal(told("healthy"), run=run)


def test_a_run_beside_this_folder_is_named_as_one_below_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(EXAMPLES / "numpy-lr", tmp_path / "run")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    text = diagnose(["../run"]).terminal()
    assert "np.log(1.0 - prob) at train.py:46" in text
    assert "../run/train.py" not in text
    assert "traindx debug ../run --verify" in text


def test_a_narrow_terminal_keeps_the_whole_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    rows = diagnose([EXAMPLES / "numpy-lr"]).terminal(width=40).splitlines()
    assert "which gives -inf and then NaN." in " ".join(" ".join(rows).split())


@pytest.mark.parametrize(("second", "begins"), [
    (0.62, "Else      an effect of one above: A metric"), (0.06, "Else      6 %: A metric")])
def test_what_stands_below_its_cause_with_more_has_no_percentage(second: float, begins: str) -> None:
    result = told("needs_more_data")
    first, rival, *rest = result["hypotheses"]
    result["hypotheses"] = [{**first, "confidence": 0.55}, {**rival, "confidence": second}, *rest]
    result["root_causes"] = []
    page = render_terminal(result)
    assert begins in page
    assert "62 %" not in page
