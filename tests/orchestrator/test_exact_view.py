"""What a person is shown at the gate is what is written: nothing behind a limit, nothing that a view leaves out."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripted import diagnosis, fix, make_workspace, replace_line

from traindx import gate, patching
from traindx.diffs import diff_of_edits
from traindx.fixes import ProposedEdit
from traindx.page import Page
from traindx.render import render_diagnosis, render_report_html
from traindx.review.plan import _changes
from traindx.safe_text import block, code, inline
from traindx.session_folder import SessionFolder
from traindx.terminal_gate import gate_lines
from traindx.unseen import escaped, unseen_in

LONG = "\n".join(["learning_rate = 0.1", *(f"# {i:03d} the stable limit of this quadratic is 1.0, see above"
                                           for i in range(90)), "open('PWNED', 'w').write('x')"])
UNSEEN = ["\u202e", "\u200b", "\x08", "\x1b[2K", "\x1b[8m", "\u061c", "\u2028", "\x85", "\x0c", "\u00ad", "\u3164",
          "\u180e", "\U000e0041", "\ufe0f", "\u00a0", "\u2800", "\r"]


def edited(text: str, path: str = "train.py") -> ProposedEdit:
    return replace_line(text).model_copy(update={"path": path})


def test_an_edit_of_any_length_stands_in_every_view() -> None:
    assert len(LONG) > 4000
    d = diagnosis(fix(edited(LONG)))
    views = {"terminal": "\n".join(gate_lines(d, Page(100))), "markdown": render_diagnosis(d),
             "report": render_report_html({"schema": "traindx.result/1", "status": "diagnosis_complete"}, diagnosis=d)}
    assert [name for name, text in views.items() if "PWNED" not in text] == []


def test_the_plan_counts_the_lines_that_the_diff_shows(tmp_path: Path) -> None:
    option = fix(edited(LONG))
    shown = sum(row.startswith("+") for row in diff_of_edits(option.edits).splitlines()) - 1
    assert f"Changes {shown} lines" in next(_changes(option, SessionFolder(tmp_path / "a/b/c/d"), ""))


@pytest.mark.parametrize("hidden", UNSEEN, ids=ascii)
def test_what_nobody_sees_is_an_escape_in_the_diff(hidden: str, tmp_path: Path) -> None:
    make_workspace(tmp_path / "w")
    edit = edited(f"learning_rate = 0.1{hidden}abc")
    rows = diff_of_edits([edit]).splitlines()
    added = [row for row in rows if row.startswith("+") and not row.startswith("+++")]
    assert added == ["+learning_rate = 0.1" + "".join(ascii(c)[1:-1] if unseen_in(c) else c for c in hidden) + "abc"]
    assert any(row.startswith("\\ as an escape above: U+") for row in rows)
    after = patching.preview(tmp_path / "w", [edit])["train.py"][1].decode()
    assert f"0.1{hidden}abc" in after, "what is shown as an escape is what is written"


@pytest.mark.parametrize("seen", ["\tindented", "größe = 1", "λ = 0.1  # 学習率", "'\\x1b[2K'", "é = 1"])
def test_what_is_seen_stays_as_it_is(seen: str) -> None:
    rows = diff_of_edits([edited(seen)]).splitlines()
    assert rows[-1] == f"+{seen}"
    assert not any(row.startswith("\\") for row in rows)


def test_line_ends_of_windows_are_no_characters_to_show() -> None:
    assert diff_of_edits([edited("a = 1\r\nb = 2\r\n")]).splitlines()[-2:] == ["+a = 1", "+b = 2"]


def test_a_blank_line_that_is_replaced_is_a_line_that_goes() -> None:
    edit = ProposedEdit(path="train.py", line=3, end_line=3, original="", replacement="x = 1")
    assert diff_of_edits([edit]).splitlines()[2:] == ["@@ -3,1 +3,1 @@", "-", "+x = 1"]


@pytest.mark.parametrize("path", ["sitecustomize.py\x1b[2K\x1b[1A\x1b[2K\r",
                                  "tr\u202eyp.nia", "a\nb.py", "t\u200brain.py"])
def test_a_path_that_cannot_be_shown_is_not_presented(path: str) -> None:
    d = diagnosis(fix(replace_line("learning_rate = 0.1"), edited("import os", path)))
    assert any("nobody sees" in reason for reason in gate.problems(d, d.evidence))
    assert not unseen_in(diff_of_edits(d.options[0].edits))
    assert not unseen_in("\n".join(gate_lines(d, Page(100))))
    assert not unseen_in(render_diagnosis(d))


@pytest.mark.parametrize("path", ["train.py", "modèle/größe.py", "with space.py", "学習.py"])
def test_a_path_that_is_seen_is_presented(path: str) -> None:
    d = diagnosis(fix(edited("learning_rate = 0.1", path)))
    assert gate.problems(d, d.evidence) == ()


@pytest.mark.parametrize(("said", "shown"), [
    ("![x](https://evil.example/p.png)", "![x\\](https://evil.example/p.png)"),
    ("[open](https://evil.example)", "[open\\](https://evil.example)"),
    ("**A is approved**", "\\*\\*A is approved\\*\\*"), ("~~no~~", "\\~\\~no\\~\\~"), ("_so_", "\\_so\\_"),
    ("a lone ` tick", "a lone \\` tick"), ("`` two ` and", "\\`\\` two \\` and"),
    ("``a`b``", "\\`\\`a\\`b\\`\\`"), ("\\`a` b`", "\\\\`a` b\\`"),
    ("# A heading", "\\# A heading"), ("1. first", "1\\. first"), ("- item", "\\- item"), ("> said", "\\> said"),
    ("[x]: https://evil.example", "\\[x]: https://evil.example"), ("<img src=x>", "\\<img src=x>"),
    ("&lt;b&gt;", "\\&lt;b\\&gt;")])
def test_quoted_text_does_not_format(said: str, shown: str) -> None:
    assert inline(said) == shown


@pytest.mark.parametrize("said", [
    "`EPS = 1e-12` at train.py:3", "max_len = 2 * batch_size", "loss < 2.0, ~3 times", "[L101-1] (train.py:4)",
    "x[0:2] is -5", "`<pad>` and `**kwargs`", "1.5 epochs", "R&D", "C:\\data"])
def test_plain_words_and_code_stay(said: str) -> None:
    assert inline(said) == said


def test_code_holds_any_text() -> None:
    assert [code("train.py:3"), code("a`b"), code("`a")] == ["`train.py:3`", "``a`b``", "`` `a ``"]


def test_a_viewers_line_end_is_one_and_what_is_drawn_as_nothing_is_left_out() -> None:
    assert block("a\u2028b\x0cc\u061c\u00add\u3164") == "a\nb\ncd"
    assert escaped("a\nb\tc") == "a\nb\tc"
    assert escaped("a\nb", keep="") == "a\\nb"
