"""The same fault in other spellings and other styles of program, and healthy programs that look like it.

A line that ends in `# FAULT C101` is where that id is to be found, at least of severity medium but where `(low)` is
said; a program named `good_...` has no fault at all.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from traindx_tools.code_audit import audit
from traindx_tools.code_audit.entry import audit_texts
from traindx_tools.finding import Severity
from traindx_tools.source_files.texts import Text

sys.path.insert(0, str(Path(__file__).parents[1] / "on_code"))

from intermediate import with_intermediates

from traindx_tools.code_audit.renaming import renamed

VARIANTS = sorted((Path(__file__).parent / "variants").glob("*/*.py"))
_FAULT = re.compile(r"# FAULT (C\d{3})")


def expected(text: str) -> set[tuple[str, int | None]]:
    return {(m.group(1), i) for i, line in enumerate(text.splitlines(), 1) if (m := _FAULT.search(line))}


@pytest.mark.parametrize("path", VARIANTS, ids=lambda p: p.stem)
def test_the_fault_is_found_where_it_is(path: Path) -> None:
    wanted = expected(path.read_text())
    assert bool(wanted) is not path.name.startswith("good_")
    weak = "(low)" in path.read_text()
    places = {serious: {(f.rule, f.where.line) for f in audit([path]).findings
                        if not serious or f.severity.rank >= Severity.MEDIUM.rank} for serious in (True, False)}
    assert wanted <= places[not weak]
    assert wanted or not places[True]


@pytest.mark.slow
def test_nearly_all_are_found_under_other_names_with_intermediate_variables() -> None:
    """A rewrite moves lines: the id alone is asked for."""
    faulty = [p for p in VARIANTS if not p.name.startswith("good_")]
    lost = []
    for path in faulty:
        text = with_intermediates(renamed(path.read_text()))
        rules = sorted({rule for rule, _ in expected(path.read_text())})
        found = {f.rule for f in audit_texts([Text("program.py", text, "")], rules).findings}
        lost += [path.stem] if not set(rules) <= found else []
    assert len(lost) <= 0.02 * len(faulty), lost


@pytest.mark.parametrize("family", sorted({p.parent.name for p in VARIANTS}))
def test_a_file_that_breaks_off_is_a_note_and_no_finding(tmp_path: Path, family: str) -> None:
    for path in VARIANTS:
        if path.parent.name == family and not path.name.startswith("good_"):
            text = path.read_text()
            (tmp_path / path.name).write_text(text[: len(text) // 2] + "\n    (")
    result = audit([tmp_path])
    assert len(result.notes) == len(list(tmp_path.glob("*.py")))
    assert not result.findings


@pytest.mark.parametrize("family", sorted({p.parent.name for p in VARIANTS}))
def test_every_beginning_of_a_file_is_judged_without_an_error(tmp_path: Path, family: str) -> None:
    for path in VARIANTS:
        lines = path.read_text().splitlines() if path.parent.name == family else []
        for count in range(5, len(lines), 40):
            (tmp_path / f"{path.stem}_{count}.py").write_text("\n".join(lines[:count]) + "\n")
    assert not [n for n in audit([tmp_path]).notes if (n.note or "").startswith(("stopped", "followed in part"))]
