"""What a person reads: Gate 4, the reports, report.html and the terminal. Text from logs stays data in all of them."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pytest

from traindx import safe_text
from traindx.diffs import diff_of
from traindx.machine import Session
from traindx.model import (
    Approach,
    Artifacts,
    Attempt,
    Decision,
    Diagnosis,
    Evidence,
    Fix,
    Hypothesis,
    Instruction,
    MetricChange,
    ProposedEdit,
    Symptom,
    Verification,
)
from traindx.render import (
    render_diagnosis,
    render_report_html,
    render_retrospective,
    render_root_cause_analysis,
    render_strike_report,
    render_terminal,
)
from traindx.view import percent
from traindx_tools.artifact import Artifact
from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_logs.run import Run, Series

SECTIONS = ["Symptom", "Root Cause", "Why This Happens", "Proposed Fix", "What This Fix Will Change",
            "What This Fix Will NOT Fix"]
HOSTILE = ("</style></pre><script>alert(1)</script>\n# Root Cause\n``` \x1b[31mred\x1b]0;title\x07 "
           "<img src=x onerror=alert(1)> ‮ {{ 7*7 }} | cell")


def findings(statement="np.log takes a value that reaches 0 at train.py:46"):
    return [
        Finding("C107", "Logarithm of something that can be 0", Severity.HIGH, Bearing.CAUSE, statement,
                Location(file="train.py", line=46, quote="np.log(1 - p)"), "train.py", {"low": 0.0}),
        Finding("L101", "A metric turns NaN", Severity.CRITICAL, Bearing.SIGN,
                "loss is nan from step 1175 on", Location(file="log.txt", line=58, step=1175, end_step=3000),
                "log.txt", {"onset": "abrupt"}),
        Finding("L102", "The gradient explodes", Severity.HIGH, Bearing.COMPANION, "grad_norm rose to 310 at step 1150",
                Location(file="log.txt", line=52, step=1150), "log.txt"),
    ]


def result(status="diagnosis_complete", text="np.log takes a value that reaches 0 at train.py:46"):
    issue = f"The loss takes the logarithm of zero: {text}."
    hypothesis = {"issue": issue, "mechanism": "log(0) is -inf", "location": "train.py:46", "confidence": 0.96,
                  "confirm": ["Print the smallest argument: `print(p.min())` (expected: 0.0)"],
                  "rule_out": ["p stays above 1e-6"], "for": [f"[C107-1] +3.6 (derived, cause): {text}"],
                  "against": ["[L102-1] -1.5 (ran, companion): grad_norm rose to 310 at step 1150"]}
    other = {**hypothesis, "issue": "The learning rate is too high.", "confidence": 0.2, "for": [], "against": []}
    cause = {"issue": issue, "severity": "critical", "evidence": [], "fix": "guard it", "confidence": 0.96,
             "failure_mode": "loss.log-of-zero", "location": "train.py:46", "mechanism": "", "will_change": [],
             "will_not_fix": []}
    return {
        "status": status,
        "root_causes": [cause] if status == "diagnosis_complete" else [],
        "hypotheses": [] if status == "healthy" else [hypothesis, other],
        "findings": [] if status == "healthy" else [{"id": f"{f.rule}-1", **f.to_json()} for f in findings(text)],
        "quick_fixes": [],
        "next_checks": ["traindx diagnose . --run 'python train.py'"],
        "analysis_artifacts": {"missing_artifacts": "model_code"},
    }


def diagnosis(text="The loss takes log(0)"):
    edit = ProposedEdit(path="train.py", line=12, end_line=12, original="EPS = 1e-12", replacement="EPS = 1e-7")
    told = Instruction(path="train.py", line=46, text=text)
    return Diagnosis(
        symptom=text, root_cause=f"{text} [C107-1]", why_this_happens=text, proposed_fix="A: guard",
        will_change=(text,), will_not_fix=("NaN from the data",), failure_mode="loss.log-of-zero", component="train.py",
        confidence=0.96, location="train.py:46", severity="critical", cites=("C107-1",),
        evidence=(Evidence(id="C107-1", statement=text, value="low = 0", place="train.py:46", strength="ran",
                           bearing="cause"),),
        options=(Fix(option="A", summary="Raise the epsilon", edits=(edit,), metric="loss finite", fragile="others"),
                 Fix(option="B", summary="Use logits", instructions=(told,))))


def verification(passed, reason):
    return Verification(passed=passed, reasons=(reason,), command="python train.py",
                        table=(MetricChange(name="val_loss", before="nan", after="0.14"),))


def session(*, strikes=0, solved=False, text="loss is nan"):
    d = diagnosis(text)
    approach = Approach(failure_mode=d.failure_mode, component=d.component)
    attempts = [Attempt(number=i + 1, diagnosis_digest=d.digest(), option="A", approach=approach, reverted=True,
                        summary=f"try number {i + 1}", places=(("train.py", 12, 12),),
                        verification=verification(False, f"still nan at step {900 + i}")) for i in range(strikes)]
    if solved:
        attempts.append(Attempt(number=strikes + 1, diagnosis_digest=d.digest(), option="A", approach=approach,
                                summary="Raise the epsilon", places=(("train.py", 12, 12),),
                                verification=verification(True, "3000 steps without a non-finite value")))
    ranked = (Hypothesis(id="h1", failure_mode="loss.log-of-zero", issue=text, confidence=0.96, **{"for": (text,)}),
              Hypothesis(id="h2", failure_mode="lr.too-high", issue="lr too high", confidence=0.1, against=(text,)))
    return Session(id="20260101-000000-abc", phase="retrospective" if solved else "strike",
                   symptom=Symptom(observed=text, expected="it falls"), artifacts=Artifacts(), hypotheses=ranked,
                   diagnosis=d, decision=Decision(verdict="approve", diagnosis_digest=d.digest(), option="A"),
                   attempts=tuple(attempts), strike_level=strikes)


def headings(markdown, level=2):
    outside, fenced = [], None
    for line in markdown.splitlines():
        mark = re.match(r"`{3,}", line)
        if fenced is None and mark:
            fenced = mark.group()
        elif fenced is not None and line.strip() == fenced:
            fenced = None
        elif fenced is None:
            outside.append(line)
    return [line[level + 1:] for line in outside if re.match(rf"#{{{level}}} ", line)]


# Markdown


def test_gate_4_has_its_six_sections_in_order_and_three_questions():
    text = render_diagnosis(diagnosis())
    assert headings(text)[:6] == SECTIONS
    questions = text.split("## Before anything is changed")[1]
    assert [line[:2] for line in questions.strip().splitlines()] == ["1.", "2.", "3."]
    assert "Does this match what you see?" in questions
    assert "A: targeted fix (Raise the epsilon) or B: broader refactor (Use logits)?" in questions
    assert "Is that acceptable?" in questions


def test_gate_4_names_evidence_value_place_and_the_exact_change():
    text = render_diagnosis(diagnosis())
    assert "| C107-1 | The loss takes log(0) | low = 0 | train.py:46 | ran |" in text
    assert "--- a/train.py\n+++ b/train.py\n@@ -12,1 +12,1 @@\n-EPS = 1e-12\n+EPS = 1e-7" in text
    assert "`train.py:46`: The loss takes log(0)" in text


@pytest.mark.parametrize("render", [
    lambda: render_diagnosis(diagnosis(HOSTILE)),
    lambda: render_strike_report(session(strikes=2, text=HOSTILE), [HOSTILE]),
    lambda: render_root_cause_analysis(session(solved=True, text=HOSTILE)),
    lambda: render_retrospective(session(solved=True, text=HOSTILE)),
])
def test_hostile_text_adds_no_heading_no_tag_and_no_escape_to_markdown(render):
    text = render()
    assert not [h for h in headings(text, 1) if "Root Cause" in h]
    assert headings(text).count("Root Cause") <= 1
    assert not re.search(r"(?<!\\)<(script|img|/style|/pre)", text)
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "‮" not in text
    assert "{{ 7*7 }}" in text.replace("\\*", "*"), "the text of a log is no template"


def test_a_diff_that_holds_backticks_cannot_leave_its_block():
    edit = ProposedEdit(path="README.md", line=1, end_line=1, original="x", replacement="```\n# Root Cause\n```")
    d = diagnosis().model_copy(update={"options": (Fix(option="A", summary="s", edits=(edit,)),)})
    text = render_diagnosis(d)
    assert "````diff" in text
    assert headings(text, 1) == ["Diagnosis (Gate 4)"]


def test_the_first_two_strikes_ask_for_evidence_and_the_third_stops():
    first, second, third = (render_strike_report(session(strikes=n)) for n in (1, 2, 3))
    assert "# Strike 1 of 3" in first
    assert "More evidence comes first" in first
    assert "Question the cause" in second
    assert "fundamentally different approach" in third
    assert "one more variation of it is refused" in third
    assert all(f"still nan at step {900 + i}" in third for i in range(3))
    assert "| val_loss | nan | 0.14 |" in third


def test_a_root_cause_analysis_tells_causes_evidence_change_before_and_after_and_what_did_not_work():
    text = render_root_cause_analysis(session(strikes=1, solved=True))
    assert headings(text) == ["Summary", "Causes, ranked", "Evidence", "Mechanism", "Changes", "Before and after",
                              "Lessons"]
    assert "-EPS = 1e-12" in text
    assert "| val_loss | nan | 0.14 |" in text
    assert "Did not work: try number 1 (still nan at step 900)" in text


def test_an_unsolved_session_is_told_as_such():
    text = render_root_cause_analysis(session(strikes=1))
    assert "No fix has been verified." in text
    assert "None that stayed." in text


def test_a_retrospective_is_an_entry_that_can_be_appended():
    text = render_retrospective(session(strikes=2, solved=True))
    assert text.startswith("## loss.log-of-zero: loss is nan\n")
    assert "- What worked: Raise the epsilon (3000 steps without a non-finite value)" in text
    assert "- Attempts until it worked: 3" in text
    assert "- Watch: loss finite" in text


# diffs


def test_several_edits_of_a_file_are_one_diff_with_shifted_lines():
    edits = (ProposedEdit(path="a.py", line=10, end_line=10, original="old", replacement="new"),
             ProposedEdit(path="a.py", line=3, end_line=2, original="", replacement="one\ntwo"),
             ProposedEdit(path="b.py", line=7, end_line=8, original="x\ny", replacement=""))
    assert diff_of(Fix(option="A", summary="s", edits=edits)).splitlines() == [
        "--- a/a.py", "+++ b/a.py", "@@ -2,0 +3,2 @@", "+one", "+two", "@@ -10,1 +12,1 @@", "-old", "+new",
        "--- a/b.py", "+++ b/b.py", "@@ -7,2 +6,0 @@", "-x", "-y"]


# report.html


class Page(HTMLParser):
    """Tags, attributes and text of a page."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.attributes, self.words = [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, k, v or "") for k, v in attrs]

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self):
        return re.sub(r"\s+", " ", " ".join(self.words))


def png():
    return b"\x89PNG\r\n\x1a\n" + bytes(64)


def a_run():
    steps = np.arange(1.0, 4.0)
    none = np.full(3, np.nan)
    s = Series("loss", "loss", "train", "log.txt", steps, steps, none, none, steps.astype(int))
    return Run(series=(s,), artifacts=(Artifact("log.txt", "free_text", 3, "2 damaged lines skipped"),
                                       Artifact("train.py", "python")))


def report(status="diagnosis_complete", text="np.log takes a value that reaches 0 at train.py:46", **more):
    return render_report_html(result(status, text), {"loss_visualization": png()}, run=a_run(),
                              diagnosis=diagnosis(text) if status == "diagnosis_complete" else None,
                              reason=more.pop("reason", ""), files={"report": "scratch/report.html"}, subject="runs/x")


def test_the_report_asks_for_nothing_from_outside_and_runs_nothing():
    page = Page(report())
    assert "script" not in page.tags
    assert "link" not in page.tags
    policy = next(v for t, k, v in page.attributes if t == "meta" and k == "content" and "default-src" in v)
    assert policy.startswith("default-src 'none'; img-src data:;")
    outside = [v for _, k, v in page.attributes if k in ("src", "href", "action") and not v.startswith(("#", "data:"))]
    assert outside == []
    assert not re.search(r"url\(|@import", report())


def test_everything_is_said_in_the_order_of_reading():
    page = Page(report())
    sections = [v for t, k, v in page.attributes if t == "section" and k == "id"]
    assert sections == ["read", "timeline", "pictures", "hypotheses", "gate", "findings", "next", "files"]
    said = ["Cause found", "The loss takes the logarithm of zero", "96 %", "2 damaged lines skipped", *SECTIONS,
            "Three questions", "traindx diagnose . --run 'python train.py'", "scratch/report.html"]
    assert [word for word in said if word not in page.text] == []


def test_the_earliest_anomaly_comes_first_in_the_timeline():
    text = Page(report()).text
    part = text[text.index("Timeline earliest"):text.index("Hypotheses the")]
    assert part.index("step 1,150") < part.index("step 1,175–3,000") < part.index("train.py:46")


def test_evidence_is_linked_to_its_finding():
    page = Page(report())
    ids = {v for _, k, v in page.attributes if k == "id"}
    cited = {v[1:] for t, k, v in page.attributes if t == "a" and k == "href"}
    assert "C107-1" in cited
    assert cited <= ids


def test_the_proposed_change_is_a_coloured_diff():
    page = report()
    assert '<span class="removed">-EPS = 1e-12</span>' in page
    assert '<span class="added">+EPS = 1e-7</span>' in page


def test_hostile_text_stays_text_in_the_report():
    clean, hostile = Page(report()), Page(report(text=HOSTILE))
    assert "script" not in hostile.tags
    assert hostile.tags.count("img") == clean.tags.count("img")
    assert hostile.tags.count("style") == 1
    assert not [k for _, k, _ in hostile.attributes if k.startswith("on")]
    assert "alert(1)" in hostile.text
    assert "{{ 7*7 }}" in hostile.text, "the text of a log is no template"


def test_a_healthy_run_and_an_open_one_say_so():
    healthy = Page(report("healthy", reason="2,400 values were checked")).text
    assert "Nothing wrong found" in healthy
    assert "2,400 values were checked" in healthy
    assert "Hypotheses the" not in healthy
    needs = Page(report("needs_more_data", reason="Something is wrong, but no cause is sure")).text
    assert "Needs more data" in needs
    assert "Best hypothesis so far" not in needs, "a cause of 96 % that was rejected or has no line of code"
    assert "nothing is called a cause" not in needs
    open_ = result("needs_more_data", "loss turns nan")
    open_["hypotheses"] = [{**h, "confidence": 0.4} for h in open_["hypotheses"]]
    needs = Page(render_report_html(open_, {}, run=a_run())).text
    assert "Below 70 % nothing is called a cause" in needs
    assert "Best hypothesis so far" in needs


def test_the_picture_is_inside_the_file(tmp_path):
    path = tmp_path / "x.png"
    path.write_bytes(png())
    page = render_report_html(result(), {"gradient_analysis": path})
    assert 'src="data:image/png;base64,iVBORw0KGgo' in page


# the terminal, with -v (without: test_brief.py)


def everything(*arguments, **more):
    return render_terminal(*arguments, **more, verbose=True)


def test_the_terminal_says_read_timeline_hypotheses_diagnosis_files_in_this_order():
    text = everything(result(), run=a_run(), diagnosis=diagnosis(), files={"report": "scratch/report.html"})
    order = ["Cause found", "What was read", "log.txt", "not given or not readable: model_code", "Timeline",
             "Hypotheses", "Diagnosis (Gate 4)", *SECTIONS, "please answer", "Next commands",
             "Files", "scratch/report.html"]
    assert [text.index(word) for word in order] == sorted(text.index(word) for word in order)


def test_without_colour_it_is_plain_text_of_a_hundred_columns():
    text = everything(result(text=HOSTILE), run=a_run(), diagnosis=diagnosis(HOSTILE))
    assert "\x1b" not in text
    assert "\x07" not in text
    assert max(map(len, text.splitlines())) <= 100
    assert "\x1b[" in everything(result(), run=a_run(), diagnosis=diagnosis(), colour=True)


def test_the_terminal_shows_the_change_and_what_speaks_against_a_hypothesis():
    text = everything(result(), run=a_run(), diagnosis=diagnosis())
    assert "-EPS = 1e-12" in text
    assert re.search(r"against +L102-1 \(ran, companion\)", text), "told in the timeline, cited by its id"


def test_a_look_alike_that_nothing_speaks_for_is_not_listed():
    best, rival = result()["hypotheses"]
    text = everything({**result(), "hypotheses": [best, {**rival, "for": [], "confidence": 0.05}]}, run=a_run())
    assert rival["issue"] not in text
    alone = everything({**result("needs_more_data"), "hypotheses": [{**rival, "for": []}]}, run=a_run())
    assert re.search(r"for +nothing was found", alone)


def test_the_verdict_stands_in_the_first_three_lines_and_each_finding_is_told_once():
    text = everything(result(), run=a_run(), diagnosis=diagnosis())
    head = text.splitlines()[:3]
    assert head[0] == "Cause found  96 % confident, critical, train.py:46"
    assert "logarithm of zero" in head[1]
    for finding in result()["findings"]:
        told = " ".join(text.split()).count(finding["statement"].rstrip("."))
        assert told <= 1 + (finding["statement"].rstrip(".") in result()["root_causes"][0]["issue"])


@pytest.mark.parametrize(("share", "said"), [(0.0, "< 1 %"), (0.005, "< 1 %"), (0.0099, "< 1 %"), (0.01, "1 %"),
                                             (0.97, "97 %")])
def test_a_confidence_that_is_not_nothing_is_not_called_nothing(share: float, said: str):
    assert percent(share) == said


def test_what_would_settle_it_is_said_in_words_before_the_commands():
    artifacts = {"wanted": "the training script; the learning rate in the log"}
    text = everything({**result("needs_more_data"), "analysis_artifacts": artifacts}, run=a_run())
    assert "What would settle it\n  - the training script\n  - the learning rate in the log\n\nNext commands" in text


def test_a_lesser_hypothesis_cites_what_was_told_above_and_is_no_longer_than_that():
    asked = "Print the smallest argument"
    weights = ["[L101-1] +1.0 (ran, sign): loss is nan from step 1175 on", "[L107-1] +0.5 (ran, companion): one spike"]
    rival = {**result()["hypotheses"][1], "confidence": 0.004, "for": [*weights, *weights]}
    best = result()["hypotheses"][0]
    text = everything({**result(), "hypotheses": [best, rival]}, run=a_run(), diagnosis=diagnosis())
    assert " 2. < 1 %  The learning rate is too high." in text
    assert "for       L101-1 (ran, sign); one spike [L107-1, ran]\n" in text
    assert text.count(asked) == 1, "beside a sure diagnosis a check of an unlikely rival is noise"
    doubtful = everything({**result("needs_more_data"), "hypotheses": [best, rival]}, run=a_run())
    assert doubtful.count(asked) == 2, "an open question needs the checks of every candidate"


def test_a_finding_that_counts_twice_is_told_once():
    best = result()["hypotheses"][0]
    best["for"] = [*best["for"], best["for"][0].replace("+3.6", "+0.5")]
    both = {**result(), "hypotheses": [best]}
    assert everything(both, run=a_run()).count("C107-1 (derived, cause)") == 1
    page = render_report_html(both, run=a_run())
    assert re.findall(r'title="log-odds">(\+[^<]*)', page) == ["+4.1"]


def test_the_terminal_of_a_healthy_run_is_short():
    text = everything(result("healthy"), run=a_run(), reason="2,400 values were checked.")
    assert text.startswith("Nothing wrong found\n  2,400 values were checked.\n\nWhat was read")
    assert "Hypotheses" not in text
    assert "Next commands" not in text


def test_long_paths_and_commands_are_not_broken():
    command = "traindx diagnose " + "x" * 150
    text = everything({**result(), "next_checks": [command]}, run=a_run())
    assert command in text


# safe text


@pytest.mark.parametrize(("dirty", "clean"), [
    ("\x1b[31mred\x1b[0m", "red"), ("a\r\nb\rc", "a b c"), ("\x1b]0;title\x07x", "x"), ("a‮b⁦c", "abc"),
    ("  a \t b  ", "a b"), ("nul\x00byte", "nulbyte"),
])
def test_a_line_is_one_line_of_printable_text(dirty, clean):
    assert safe_text.line(dirty) == clean


def test_quoted_text_is_bounded():
    assert len(safe_text.line("x" * 10_000_000)) <= safe_text.MOST
    assert len(safe_text.block("x\n" * 10_000_000)) <= safe_text.MOST
