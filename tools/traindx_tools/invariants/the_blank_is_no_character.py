"""The blank of a CTC loss is a class of its own.

CTC needs a class for "no character here". Its number is 0 unless another is given, and an alphabet that is numbered
from 0 has a character there. That character can never be written: decoding drops it, and the loss takes it for silence,
so that its targets cannot be aligned. Everything else is learned, the loss falls, and the error rate of words or of
texts with that character stays high. A blank behind the alphabet needs one more output than there are characters.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.invariants.breach import Breach, pages
from traindx_tools.program.parts import Alphabet, BlankUse
from traindx_tools.program.program import Program

RULES = pages("recipes", ("C273",))
_FEWEST = 4
"""Shorter lists number classes, and no characters."""


def check(program: Program) -> Iterator[Breach]:
    """Compare the blank of every CTC loss with the characters of the program and with its scores."""
    texts = [a for a in program.alphabets if len(a.entries) >= _FEWEST and sum(len(e) == 1 for e in a.entries) * 2
             > len(a.entries)]
    for use in program.blank_uses:
        if use.width is not None and use.blank >= use.width:
            yield Breach(
                "C273", f"the blank of the CTC loss at {use.at} is {use.blank}, and its scores have {use.width} "
                "classes, numbered from 0: there is no output for the blank", use.at,
                measured={"kind": "beyond", "blank": use.blank})
        taken = [_character(a, use) for a in texts]
        if texts and all(taken):
            entry = repr(taken[0]) if taken[0] != " " else "the space"
            yield Breach(
                "C273", f"{texts[0].text} at {texts[0].at} gives a real character ({entry}) the index {use.blank}, "
                f"which is the blank of the CTC loss at {use.at}: the two collide, and it can never be written",
                texts[0].at,
                measured={"kind": "collision", "blank": use.blank, "character": taken[0]})
            return


def _character(table: Alphabet, use: BlankUse) -> str:
    """The character that has the number of the blank; "" where none is certain to be one."""
    place = use.blank - table.start
    entry = table.entries[place] if 0 <= place < len(table.entries) else ""
    meant = use.width is not None and use.width > len(table.entries)  # one class more: the blank lies behind
    return entry if entry.isalnum() or (len(entry) == 1 and meant) else ""
