"""Two metrics under one name: "train/val loss: 0.48/0.55", "val loss/acc 0.55 / 88.1%", "valid 1.41 (35.2%)".

A loss beside which a share stands is a loss and its accuracy. Told by the name and by the range of the second value:
a pair of whole numbers is a count of a total ("9850/10000"), and a share with other words ("2.5% better") is none.
"""

from __future__ import annotations

from collections.abc import Sequence

from traindx_tools.on_logs.readers.names import Name, group_word, identify
from traindx_tools.on_logs.readers.numbers import value, whole

EVALUATED = frozenset({"loss", "accuracy", "accuracy_top5", "perplexity", "f1", "auc", "r2", "mse", "mae", "rmse",
                        "nll", "bleu", "wer", "iou", "map", "dice", "psnr", "ssim", "error_rate", "precision",
                        "recall"})
"""What is measured on held-out data as well."""
_OPENS = ("(", ",", "/", "|", "")
_ENDS = ("", " ", ",", "|", ")", "\t", "\n", "]", ";")


def named_pair(phrase: list[str], first: str, second: str, percent: bool) -> tuple[list[str], list[str]] | None:
    """The names of the two values of "NAME A/B", as words; None where B is what A is counted of."""
    for at, word in enumerate(phrase):
        sides = word.strip("()[]").split("/")
        if len(sides) == 2 and all(map(group_word, sides)):  # "train/val loss", "loss (train/val)"
            rest = [*phrase[:at], *phrase[at + 1:]]
            return [sides[0], *rest], [sides[1], *rest]
    stem, _, other = phrase[-1].partition("/")
    before = phrase[:-1]
    if stem and other and "/" not in other and identify(stem).known and identify(other).known:
        group = [w for w in before if group_word(w)]
        return [*before, stem], [*group, other]
    if len(phrase) == 1 and group_word(stem) and not other and whole(first) is None and _is_share(second, percent):
        return phrase, [stem, "accuracy"]
    return None


def is_accuracy_beside(written: str, gap: str, text: str, after: str) -> bool:
    """Whether a percentage right behind the loss `written` is the accuracy that belongs to it."""
    words = written.split()
    if not words or not group_word(words[0]) or identify(written).canonical != "loss" or "." not in text:
        return False
    ends = after[1:2] == ")" if gap.strip() == "(" else after[1:2] in _ENDS
    return gap.strip() in _OPENS and ends and after[:1] == "%" and _is_share(text, percent=True)


def named_by_neighbours(names: Sequence[tuple[str, Name]]) -> dict[int, Name]:
    """What a bare "val" of a line measures, by its place: what was named right before it, as in "loss 0.5 acc 0.8 val
    0.79".

    A line that tells of both groups in the same words ("train 0.5 acc 0.8 val 0.6 acc 0.79") says with "val" what it
    said with "train": its loss.
    """
    bare = [i for i, (written, _) in enumerate(names) if group_word(written)]
    if len(bare) != 1 or bare[0] == 0:
        return {}
    at = bare[0]
    before = names[at - 1][1]
    again = any(name.canonical == before.canonical for _, name in names[at + 1:])
    known = before.known and before.canonical in EVALUATED and before.canonical != "loss" and before.group is None
    return {at: before} if known and not again else {}


def _is_share(text: str, percent: bool) -> bool:
    number = value(text)
    return number is not None and text[:1] not in "+-" and 0.0 <= number <= (100.0 if percent else 1.0)
