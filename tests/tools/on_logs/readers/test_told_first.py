"""What is told first, since searching is slow, changes nothing: lines of all fixtures and of mangled ones."""

from __future__ import annotations

import random
import re
from itertools import product
from pathlib import Path

import pytest

from traindx_tools.on_logs import encoding, plain_text
from traindx_tools.on_logs.readers import languages, line_parser, numbers

LOGS = Path(__file__).parents[3] / "fixtures" / "logs"
ENDS = ("tensor(", "np.float32( [", " =", "(", "-> ", "::", "\u2009=", "\x1f:", "\x85 >", "[array( '", "loss (mean")


def lines() -> list[str]:
    chance = random.Random(20)
    found: set[str] = set()
    for path in sorted(p for p in LOGS.rglob("*") if p.is_file()):
        told = path.read_bytes()[:20_000].decode("utf-8", "replace").splitlines()
        found.update(t[:2_000] for t in told)
        found.update("".join(chance.sample(t[:300], min(len(t), 300))) for t in told[:20])
    return sorted(found)


LINES = lines()
PARTS = sorted({part[-300:] for text in LINES for part in numbers.TOKEN.split(text)[::2]})


def test_numbers_are_cut_where_they_were() -> None:
    first = r"(?=[-+.\dnNiI])"
    assert numbers.TOKEN.pattern.count(first) == 1
    plain = re.compile(numbers.TOKEN.pattern.replace(first, ""))
    assert [t for t in LINES if plain.split(t) != numbers.TOKEN.split(t)] == []


def test_the_name_before_a_number_is_the_same_from_its_end() -> None:
    def plain(gap: str) -> tuple[str, str]:
        found = line_parser._TAIL.match(gap)
        head, conn = (found.group("head"), found.group("conn")) if found else (gap, "")
        return head.rstrip("'\"`"), conn

    gaps = [*PARTS, *(p + end for p, end in product(PARTS[::20], ENDS)), *ENDS, ""]
    assert [g for g in gaps if plain(g) != line_parser._tail(g)] == []


def test_words_of_other_languages_are_all_found() -> None:
    known = [w for p in languages._ENGLISH for w in (
        p, p.upper(), p.title(), f"x {p}/y", f"{p}_2", f"a{p}", p.replace("ı", "i"), p.replace("ı", "I"),
        p.replace("s", "\u017f"), p.replace("k", "\u212a"))]
    def plain(name: str) -> str:
        if not languages._ANY.search(name):
            return name
        english = languages._ANY.sub(lambda m: f" {languages._ENGLISH.get(m.group().lower(), m.group())} ", name)
        return " ".join(english.split())

    names = [*known, *(n for p in PARTS for n in re.split("[,:=|]", p)), "", "µ", "│ Verlust"]
    assert [n for n in names if languages.in_english(n) != plain(n)] == []
    assert languages.in_english("Verlust") == "loss"


@pytest.mark.parametrize("zeros", [0, 1, 20, 63, 64, 65, 500])
@pytest.mark.parametrize("around", [b"step 1 loss 2\n" * 9, b"step\x01"])
def test_holes_are_left_out_and_other_zeros_counted(zeros: int, around: bytes) -> None:
    head = around + bytes(zeros) + around
    left = 0 if zeros >= 64 else zeros
    few = 8 * left <= len(head.replace(b"\0", b" ")) and (left <= 2 or b"\n" in head)
    assert plain_text.is_binary(head) == (not few or sum(b in encoding.CONTROL for b in around) > 2)
