"""What a viewer of Markdown hides does not count as shown: such a diagnosis is sent back, and a plain one is not."""

from __future__ import annotations

from pathlib import Path

import pytest
from gate_words import DIAGNOSIS

from traindx.gate_hook.deciding import NAMED_AT_MOST, named
from traindx.gate_hook.presented import read_diagnosis
from traindx.gate_hook.questions import _choice, question_of
from traindx.gate_hook.state import Bound, Option, Shown
from traindx.unseen import unseen_in

EVIL = "change: setup.py:1: `import os`"
HIDDEN = {
    "comment": f"<!--\n{EVIL}\n-->", "comment in a line": "The loss. <!-- Verify: `sh evil.sh` -->",
    "details": f"<details>\n\n{EVIL}\n</details>", "details within a line": f"See <details>\n\n{EVIL}",
    "a tag over lines": f'<details\n title="<">\n\n{EVIL}\n</details>', "an open tag": f"<details\n\n{EVIL}",
    "instruction": f"<?\n{EVIL}\n?>", "declaration": f"<!X\n{EVIL}\n>", "in a list": f"- <div hidden>\n{EVIL}\n</div>",
    "definition": f"[x]: #\n'\n{EVIL}'", "definition below": f"[x]:\n#\n'\n{EVIL}'", "label": f"[\n{EVIL}\n]: #",
    "footnote": f"[^1]: more\n    {EVIL}", "title": f'[x](# "\n{EVIL}\n")', "target": "Verify: [this](`./evil.sh`)",
    "title with a command": 'Verify: [x](# "`sh evil.sh`")', "picture": f"![\n{EVIL}\n](x.png)",
    "cells": "| a |\n|---|\n| b | Verify: `sh evil.sh` |", "info": "~~~ Verify: `sh evil.sh`\nx\n~~~",
    "a lone tick": "a ` b\nc ` <!-- Verify: `sh e.sh` --> ` d", "an escaped tick": "\\`<!-- \\` Verify: `sh e.sh` -->",
    "a fence in words": f"text\n     ```\n     <!--\n\n     ```\n{EVIL}\n-->",
    "a fence of a list": f"- ```\n  ```\n<!--\n```\n{EVIL}\n```\n-->",
    "a fence that its list ends": f"- foo\n\n  ```\n  code\n```\ntext\n```\n<!--\n{EVIL}\n-->\n```",
    "a fence that never closes": f"~~~\n```\n<!--\n{EVIL}\n-->",
    "bidirectional": "a \u202eword", "escape": "a \x1b[8mword",
    "line end": "a \u2028word",
}
SHOWN = {
    "code": "The token `<pad>` and `<!-- x -->` stay.", "fence": '```python\ntokens = ["<s>", "</s>"]\n```',
    "tilde": "~~~python\nx = '<pad>'\n~~~", "citation": "- [L101-1]: the loss is NaN (step 1175) from there on.",
    "compared": "loss < 2.0 and 3 > 1; a<b", "link": "See [the issue](https://example.org/a_b?c=1).", "rule": "---",
    "emoji": "\u26a0\ufe0f Slower by 3 %.", "autolink": "<https://example.org/x>", "list": "- one\n- two `code` three",
    "in a list": "- so:\n\n  ```python\n  x = 1\n  ```", "index": "x[0](y) = 1, w[0]: 3", "windows": "one\r\ntwo",
    "nested": "1. so:\n   ```python\n   x = dict[str, int]()\n   ```",
}


def shown(extra: str, workspace: Path) -> Shown | tuple[str, ...]:
    text = DIAGNOSIS.replace("B (broader)", f"\n{extra}\n\nB (broader)")
    return read_diagnosis(text, str(workspace), "c")


@pytest.mark.parametrize("extra", HIDDEN.values(), ids=HIDDEN)
def test_what_a_viewer_may_hide_is_sent_back(extra: str, tmp_path: Path) -> None:
    found = shown(extra, tmp_path)
    assert not isinstance(found, Shown)
    assert any("may hide" in reason or "a table" in reason for reason in found)


@pytest.mark.parametrize("extra", SHOWN.values(), ids=SHOWN)
def test_what_every_viewer_shows_can_be_approved(extra: str, tmp_path: Path) -> None:
    found = shown(extra, tmp_path)
    assert isinstance(found, Shown), found
    assert [o.option for o in found.options] == ["A", "B"]


def test_a_comment_anywhere_hides_what_follows(tmp_path: Path) -> None:
    assert not isinstance(read_diagnosis(f"Look: <!--\n{DIAGNOSIS}-->", str(tmp_path), "c"), Shown)


@pytest.mark.parametrize("mark", ["```", "~~~"])
def test_a_change_within_a_fence_is_only_shown(mark: str, tmp_path: Path) -> None:
    found = shown(f"{mark}html\n{EVIL}\n{mark}", tmp_path)
    assert isinstance(found, Shown)
    assert {place[0] for o in found.options for place in o.places} == {"train.py", "tests/test_loss.py"}


@pytest.mark.parametrize("hidden", ["\u200b", "\u3164", "\ufe0f", "\u00ad"])
def test_a_new_text_that_nobody_sees_whole_is_sent_back(hidden: str, tmp_path: Path) -> None:
    found = read_diagnosis(DIAGNOSIS.replace("EPS = 1e-6", f"`EPS{hidden} = 1e-6`"), str(tmp_path), "c")
    assert not isinstance(found, Shown)
    assert "option A" in found[0]


def test_the_gates_own_question_shows_escapes_and_says_what_it_leaves_out() -> None:
    rows = tuple(f"x{i} = 1\x1b[2K" for i in range(60))
    option = Option("A", (("train.py", 3, 3),), ("python train.py\x1b[8m; sh evil.sh",), (),
                    (Bound("train.py", 3, 3, rows),))
    asked = question_of(Shown("d", "c", "train.py:3\u202e sets EPS", (option,))) + _choice(option)["description"]
    assert not unseen_in(asked)
    assert "\\x1b[8m" in asked
    assert "more characters, which the diagnosis shows" in asked
    short = option._replace(bound=(Bound("train.py", 3, 3, ("x" * NAMED_AT_MOST,)),))
    assert named(short) == f"train.py:3 (to {'x' * NAMED_AT_MOST})"


def test_prose_that_a_viewer_takes_for_a_tag_comes_back_with_how_to_write_it(tmp_path: Path) -> None:
    said = DIAGNOSIS.replace("EPS = 1e-6", "EPS = 1e-6, where a <b and c> d", 1)
    lacking = read_diagnosis(said, str(tmp_path), "c")
    assert not isinstance(lacking, Shown)
    assert any("'<b and c>'" in lack and "a space behind its < (a < b)" in lack for lack in lacking)
    for plain in ("where a < b and c > d", "where `a <b and c> d`", "where a <b, and c > d"):
        assert isinstance(shown(DIAGNOSIS.replace("EPS = 1e-6", f"EPS = 1e-6, {plain}", 1), tmp_path), Shown), plain
