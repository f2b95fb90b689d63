"""A text from the command line is read before it is a truth value.

`bool("False")` is True, as of every text that is not empty. An option with `type=bool` can therefore not be switched
off by naming a value: `--pretrained False` trains with pretrained weights, `--freeze False` freezes. The same holds of
`bool(os.environ.get("AMP", "0"))`. `action="store_true"`, `argparse.BooleanOptionalAction` or a function that reads
the text do what is meant.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Severity
from traindx_tools.invariants.breach import Breach, pages
from traindx_tools.program.program import Program

RULES = pages("settings", ("C301",))


def check(program: Program) -> Iterator[Breach]:
    """Look at every text that is made a truth value."""
    for one in program.text_switches:
        why = ("is on by its default, a text that is not empty" if one.says_off else "cannot be switched off" if one.on
               else "is switched on by every text")
        yield Breach("C301", f"{one.text} at {one.at} {why}: bool('False') is True", one.at,
                     measured={"kind": "default" if one.says_off else "option"},
                     severity=Severity.HIGH if one.says_off else None)
