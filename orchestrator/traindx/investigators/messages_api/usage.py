"""What a conversation takes, in tokens, and in dollars where a person says what a token costs. No price stands here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

KINDS = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
"""As the API reports them, in the order of `Settings.token_prices`."""

MILLION = 1e6


@dataclass(frozen=True)
class Prices:
    """Dollars for a million tokens. Without prices of their own, cached tokens cost what other input does."""

    by_kind: tuple[float, float, float, float]

    @classmethod
    def of(cls, text: str) -> Prices | None:
        """From `Settings.token_prices`, which is checked where it is read; None for ""."""
        if not text:
            return None
        given = [float(part) for part in text.split(",")]
        return cls((given[0], given[1], *(given[2:4] or (given[0], given[0]))))

    def dollars(self, used: dict[str, int]) -> float:
        """What these tokens cost."""
        return sum(used.get(k, 0) * p for k, p in zip(KINDS, self.by_kind, strict=True)) / MILLION


def used_by(message: Any) -> dict[str, int]:
    """The tokens of one answer by kind."""
    usage = getattr(message, "usage", None)
    return {k: int(getattr(usage, k, 0) or 0) for k in KINDS}
