"""What `traindx diagnose` prints without -v: what it is, what shows it, what speaks against it, what to do next.

About twenty lines, and never more than `MOST_LINES`, on a narrow terminal in proportion: a diff gets the room that the
rest leaves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from traindx.diffs import changed_lines
from traindx.in_brief import (
    WORTH_A_LINE,
    Said,
    answers,
    counter,
    decides,
    evidence,
    gives_code,
    is_rerun,
    lasted,
    made_by_hand,
    next_command,
    not_read,
    observed,
    proven_place,
    rivals,
    sentences,
    suspect,
    to_measure,
    what_it_does,
)
from traindx.model import Fix
from traindx.page import GUTTER, Page
from traindx.safe_text import block, line
from traindx.terminal_against import brief_comparison
from traindx.view import View, percent
from traindx_tools.finding import Severity
from traindx_tools.scope.runs import MOST_SAID

MOST_LINES = 30
SCREEN = 23
"""Lines of a usual terminal beside the prompt: what of them is left over goes to the evidence."""
FEWEST_OF_A_DIFF = 4
NO_PERMISSION = "no permission"
"""In the note of a file that could not be opened."""
_STILL_WRONG = "if it is wrong all the same, measures what reading cannot see, in a protected copy"
_MOST_SENTENCES = 4
_MOST_REMARKS = 2
_MOST_EVIDENCE, _MOST_SUSPECTS, _MOST_NOTES, _MOST_RUNS, _MOST_ANSWERS = 2, 3, 2, 3, 3
_MOST_RULED_OUT = 5
_LINES_SHOWN, _MOST_LINES_SHOWN = 4, 8
"""Lines for what was seen, and the most where the page has room for more."""


def render_brief(view: View, page: Page) -> str:
    """The brief page, with as many lines of evidence as one screen has room for. Ends with a line break."""
    most = SCREEN * page.scale
    each = (list(_rows(view, page, lines)) for lines in range(_MOST_LINES_SHOWN, _LINES_SHOWN, -1))
    fitting = next((rows for rows in each if len(rows) <= most), None)
    return "\n".join(fitting or _rows(view, page, _LINES_SHOWN)) + "\n"


def _rows(view: View, page: Page, shown: int) -> Iterator[str]:
    """The page with `shown` lines at most for what was seen."""
    judged = {"diagnosis_complete": _cause, "healthy": _healthy}.get(view.status, _open)
    top = list(judged(view, page, shown))
    end = [*_not_read(view, page), *_notes(view, page), *_next(view, page), *_report(view, page)]
    yield from top
    yield from _fixes(view, page, int(MOST_LINES * page.scale) - len(top) - len(end))
    yield from end


def _cause(view: View, page: Page, shown: int) -> Iterator[str]:
    cause = view.cause
    if cause is None:
        return
    about = [f"{percent(cause['confidence'])} confident", cause.get("severity"), cause.get("location")]
    yield page.heading(view.verdict, line(", ".join(str(a) for a in about if a)))
    first = view.hypotheses[0] if view.hypotheses else cause
    yield from _sentences(view, page, first)
    yield from _scope(view, page)
    yield from _list("Evidence", evidence(view, first)[:_MOST_EVIDENCE], page, shown)
    yield from brief_comparison(view.comparison, page)
    yield from _list("Against", counter(view, first)[:2] or [Said("nothing that was read")], page, 2)
    for other in rivals(view)[:1]:
        sure = other["confidence"] >= view.threshold
        label = "Else" if not view.beside(other) else "Also" if sure else "Perhaps"
        yield from _suspect(view, page, other, label)
    yield from _described(view, page)


def _open(view: View, page: Page, shown: int) -> Iterator[str]:
    first = suspect(view)
    place = f", {first['location']}" if first is not None and first.get("location") else ""
    yield page.heading(view.verdict, line(
        f"{percent(first['confidence'])} sure{place}; from {percent(view.threshold)} on it is called the cause"
        if first is not None else f"no cause reaches {percent(view.threshold)}" if view.supported and not view.confirmed
        else ""))
    told = ""
    if first is not None:
        told = " ".join(s.text for s in sentences(view, first))
        yield from _sentences(view, page, first)
    against = counter(view, first)[:2] if first is not None else []
    seen = [s for s in observed(view, told) if s.text not in {a.text for a in against}][:3]
    if first is None and (not seen or not _says_what_is_wrong(view)):
        yield from page.fit(_reason(view), "  ", most=3)
    yield from _scope(view, page)
    yield from _list("Seen", seen, page, shown)
    remarks = [Said(view.named(a.remark)) for a in view.along if a.remark]
    yield from _list("Along", remarks[:1], page)
    yield from brief_comparison(view.comparison, page)
    yield from _list("Against", against, page, 2)
    yield from _described(view, page, seen)
    yield from _suspects(view, page, first)


def _says_what_is_wrong(view: View) -> bool:
    """Whether the reason is told by the findings themselves: a remark says nothing of why nothing was judged."""
    return any(f.severity.rank >= Severity.MEDIUM.rank for _, f in view.findings)


def _suspects(view: View, page: Page, first: Any) -> Iterator[str]:
    if view.tied:
        yield from _without_order(view, page)
        return
    others = [h for h in (*view.supported[:1], *rivals(view)) if h is not first and h.get("for")]
    worth = [h for h in others if h["confidence"] >= WORTH_A_LINE]
    above = first["confidence"] if first is not None else 1.0
    for number, found in enumerate(worth[:_MOST_SUSPECTS]):
        behind_its_cause = found["confidence"] > above  # it stands below a less likely one only as that one's effect
        above = min(above, found["confidence"])
        yield from _suspect(view, page, found, "" if number else "Else" if first is not None else "Suspects",
                            "an effect of one above" if behind_its_cause else "")
    if not worth and first is None and view.hypotheses:
        yield from page.labelled("Suspects", "none: nothing that was read speaks for one cause before others")


def _without_order(view: View, page: Page) -> Iterator[str]:
    """Causes that are about as likely as each other, without a number that would look like a rank; the rest below."""
    yield from page.labelled("Suspects", view.no_order)
    for found in view.tied[:_MOST_SUSPECTS]:
        yield from page.labelled("", f"- {sentences(view, found)[-1].text.removeprefix('That is: ')}",
                                 most=2, place=proven_place(view, found))
    if len(view.tied) > _MOST_SUSPECTS:
        yield " " * GUTTER + page.paint(f"and {len(view.tied) - _MOST_SUSPECTS} more with {page.more}", "quiet")
    rest = [h for h in view.in_order[len(view.tied):] if h.get("for") and h["confidence"] >= WORTH_A_LINE]
    for number, found in enumerate(rest[:max(_MOST_SUSPECTS - len(view.tied), 0)]):
        yield from _suspect(view, page, found, "" if number else "Else")


def _healthy(view: View, page: Page, _: int) -> Iterator[str]:
    yield page.heading(page.paint(view.verdict, "good"))
    yield from page.fit(_reason(view), "  ", most=6)
    if told := ", ".join(filter(None, (view.amount, view.course))):
        yield from page.labelled("Read", told, most=2)
    yield from _list("Seen", [Said(text) for text in view.marked[:_MOST_REMARKS]], page, 2 * _MOST_REMARKS)
    yield from _scope(view, page)
    yield from brief_comparison(view.comparison, page)
    yield from _described(view, page)


def _reason(view: View) -> str:
    """Why the status is what it is; what the person said is quoted where it is answered."""
    head, quoted, _ = view.headline.partition(': "')
    return head + "." if quoted and view.described else view.named(view.headline)


def _sentences(view: View, page: Page, hypothesis: Any) -> Iterator[str]:
    left = _MOST_SENTENCES
    for number, sentence in enumerate(sentences(view, hypothesis)):
        shown = page.fit(f"{sentence.text.rstrip('.')}.", "  ", most=left if number else left - 1)
        left -= max(1, int(len(shown) / page.scale))
        yield from shown


def _scope(view: View, page: Page) -> Iterator[str]:
    """What of the given files and which run were judged, and a line for some of the other runs."""
    closed = [row.path for row in view.read if NO_PERMISSION in row.note]
    if closed:
        more = f" and {len(closed) - MOST_SAID} more" if len(closed) > MOST_SAID else ""
        named = f"{', '.join(closed[:MOST_SAID])}{more}"
        yield from page.fit(f"Not read, as you have no permission to: {named}.", "    ", "  ", most=3)
    told, others = view.scope, max(len(view.result.get("runs") or ()) - 1, 0)
    if len(told) == 1 and str((view.result.get("scope") or {}).get("how", "")).startswith(("you named", "named with")):
        return  # the person said which: the place of the cause says where to look
    own = len(told) - min(others, MOST_SAID) - (others > MOST_SAID)
    for sentence in told[:own]:
        yield from (page.paint(text, "quiet") for text in page.fit(sentence, "    ", "  ", most=2))
    for sentence in told[own:own + _MOST_RUNS]:
        yield from (page.paint(text, "quiet") for text in page.fit(sentence, "    ", "  "))
    if others > _MOST_RUNS:
        yield page.paint(f"  and {others - _MOST_RUNS} more runs with {page.more}", "quiet")


def _list(label: str, told: Sequence[Said], page: Page, lines: int = _LINES_SHOWN) -> Iterator[str]:
    """Sentences on `lines` lines altogether, of four two for each at most; a single one has more room, so that it is
    whole."""
    left, each = lines, max(lines - 2, 2) if len(told) > 1 else max(lines, 2)
    for number, said in enumerate(told):
        if left <= 0:
            return
        shown = page.labelled("" if number else label, said.text, most=min(left, each),
                              place=said.place)
        left -= max(1, int(len(shown) / page.scale))
        yield from shown


def _suspect(view: View, page: Page, hypothesis: Any, label: str, kind: str = "") -> Iterator[str]:
    said = sentences(view, hypothesis)[-1]
    place = proven_place(view, hypothesis)
    told = kind or percent(hypothesis["confidence"])  # an effect has no share in being the cause
    yield from page.labelled(label, f"{told}: {said.text.removeprefix('That is: ')}",
                             most=2, place=place)
    if ground := view.unshown(hypothesis):
        yield from page.labelled("", ground, most=2)


def _described(view: View, page: Page, above: Sequence[Said] = ()) -> Iterator[str]:
    told = answers(view, " ".join(s.text for s in above))
    left = _MOST_ANSWERS
    lines = max(4 - sum(len(answer.told) for answer in told), 1)
    for number, answer in enumerate(told):
        yield from page.labelled("" if number else "You said", f'"{line(answer.quote)}"')
        for said in answer.told[:max(left, 1)]:
            yield from page.labelled("", said.text, most=3 if said.text.endswith("?") else lines, place=said.place)
        left -= len(answer.told)
    if view.status != "diagnosis_complete":
        yield from _looked_at(view, page)


def _looked_at(view: View, page: Page) -> Iterator[str]:
    """What the metric of the first open symptom did, what its values rule out and what nothing read shows."""
    found = next((t["looked_at"] for t in view.described if t.get("looked_at")), None)
    if found is None:
        return
    yield from page.labelled("It did", view.named(found["course"]), most=2) if found["course"] else ()
    for label, key in (("Ruled out", "ruled_out"), ("May be", "not_ruled_out")):
        for number, one in enumerate(found[key][:_MOST_RULED_OUT]):
            yield from page.labelled("" if number else label, f"{one['explanation']}: {view.named(one['by'])}", most=2)
    if unseen := ", ".join(found["not_looked_at"]):
        yield from page.labelled("Not seen", unseen, most=2)


def _fixes(view: View, page: Page, room: int) -> Iterator[str]:
    if view.diagnosis is None:
        fix = str(view.cause.get("fix") or "") if view.status == "diagnosis_complete" and view.cause else ""
        yield from page.labelled("Fix", fix, most=4) if fix else ()
        return
    first, *others = view.diagnosis.options or (None,)
    rest = [text for other in others if other is not None for text in _in_a_line(other, page)]
    if first is not None:
        yield from _fix(first, page, max(room - len(rest), FEWEST_OF_A_DIFF))
    yield from rest


def _in_a_line(fix: Fix, page: Page) -> list[str]:
    return page.labelled(f"Fix {fix.option}", _in_words(fix), most=2, place=line(fix.where()))


def _fix(fix: Fix, page: Page, room: int) -> Iterator[str]:
    if not fix.edits:
        yield from page.labelled(f"Fix {fix.option}", _in_words(fix), most=4, place=line(fix.where()))
        return
    head = page.labelled(f"Fix {fix.option}", fix.summary, most=2, place=line(fix.where()))
    yield from head
    rows = list(_changed_lines(fix))
    left = max(room - len(head), FEWEST_OF_A_DIFF)
    shown = rows if len(rows) <= left else rows[:left - 1]
    yield from ("  " + page.paint(row, {"+": "added", "-": "removed"}.get(row[:1], "quiet")) for row in shown)
    if len(rows) > len(shown):
        yield page.paint(f"  ... {len(rows) - len(shown)} more lines, all of them with {page.more}", "quiet")
    if fix.change:
        yield from page.labelled("", fix.change, most=2)


def _in_words(fix: Fix) -> str:
    told = [fix.summary.rstrip("."), *(i.text for i in fix.instructions), *([fix.change] if fix.change else [])]
    return ": ".join([told[0], "; ".join(told[1:])]) if len(told) > 1 else told[0]


def _changed_lines(fix: Fix) -> Iterator[str]:
    """The lines that go and come, with the place of each change where there are several."""
    edits = sorted(fix.edits, key=lambda e: (e.path, e.line))
    for edit in edits:
        if len(edits) > 1:
            yield f"{line(edit.path)}:{edit.line}"
        for sign, rows in zip("-+", changed_lines(edit), strict=True):
            yield from (f"{sign}{row}" for row in rows)


def _not_read(view: View, page: Page) -> Iterator[str]:
    told = not_read(view)
    yield from page.labelled("Not read", told, most=2) if told else ()


def _notes(view: View, page: Page) -> Iterator[str]:
    notes = view.remarks
    for number, note in enumerate(notes[:_MOST_NOTES]):
        yield from page.labelled("" if number else "Note", view.named(note), most=2 if number else 4)
    if len(notes) > _MOST_NOTES:
        yield " " * GUTTER + page.paint(f"and {len(notes) - _MOST_NOTES} more notes with {page.more}", "quiet")


def _next(view: View, page: Page) -> Iterator[str]:
    """What to hand over where no command decides it, and the one command."""
    command = next_command(view)
    if view.status == "healthy" and is_rerun(command):
        yield ""
        yield from page.labelled("Next", _STILL_WRONG, most=2)
        yield f"  {block(page.typed(command))}"
        return
    if view.status == "healthy" and " --line " not in command:
        return
    if view.wanted and not decides(command) and not gives_code(command, view.wanted[0]):
        yield from page.labelled("Missing", view.wanted[0], most=_lines(view.wanted[0]))
        if compared := next((w for w in view.wanted[1:] if " --against " in w), ""):
            yield from page.labelled("", f"or {compared}", most=_lines(compared))
    if by_hand := to_measure(view, command):
        yield ""
        which = "the first of these" if view.tied else "the first suspect"
        yield from page.labelled("Next", f"by hand; tells whether it is {which}", most=2)
        yield from page.wrap(by_hand, "  ")
    elif command:
        about = what_it_does(command, by_hand=made_by_hand(view), lasts=lasted(view.run),
                             proves=view.status == "diagnosis_complete" or suspect(view) is not None)
        yield ""
        yield from page.labelled("Next", about, most=2) if about else [page.paint("Next", "bold")]
        yield f"  {block(page.typed(command))}"


def _lines(text: str) -> int:
    """Lines for a text: as many as it needs where a command is in it, which is of no use without its end."""
    return MOST_LINES if "`" in text else 2


def _report(view: View, page: Page) -> Iterator[str]:
    report = view.files.get("report")
    if report:
        yield from page.wrap(f"{line(report)} (or {page.more})", " " * GUTTER, f"{'Report':<{GUTTER}}")
    else:
        yield page.paint(f"{page.more} prints all of it", "quiet")
