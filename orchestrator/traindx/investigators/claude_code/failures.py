"""How a question to the model can end other than in an answer: each in a named state with a sentence and what to do.

The CLI itself repeats requests that failed for a passing reason, with growing pauses. What it cannot repeat is in
`AGAIN`: an answer that never came in the asked form, or a CLI that broke off.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from traindx_tools.errors import install_line

AGAIN = frozenset({"no-answer", "cli-broke-off"})
"""States after which the question is put once more; all others would end the same way."""

HOPELESS = frozenset({"not-installed", "cli-missing", "cli-too-old", "unauthorized", "no-model", "budget-all",
                      "unreachable"})
"""States that every further question would share: the others are not put any more."""

ADVICE = {
    "not-installed": f"install it with: {install_line('agent')}",
    "cli-missing": "install the extra again, or name the Claude CLI with TRAINDX_CLI_PATH",
    "cli-too-old": "update with: pip install -U claude-agent-sdk",
    "unauthorized": "check the API key or log the Claude CLI in",
    "no-model": "name a model with --model or TRAINDX_MODEL",
    "rate-limited": "wait, or lower TRAINDX_CONCURRENCY, and resume the session",
    "overloaded": "resume the session later",
    "server-error": "resume the session later",
    "unreachable": "check the network and resume the session",
    "stream-broken": "check the network and resume the session",
    "too-long": "hand over fewer or smaller artifacts",
    "rejected": "the request was not accepted as it was: see the conversation",
    "budget-each": "raise TRAINDX_DOLLARS_EACH (without prices: TRAINDX_TOKENS_EACH) to let it finish",
    "budget-all": "raise TRAINDX_DOLLARS_ALL (without prices: TRAINDX_TOKENS_ALL) and resume the session",
    "turns": "raise TRAINDX_TURNS_EACH (for the lead: TRAINDX_TURNS_LEAD) to let it finish",
    "late": "raise TRAINDX_SECONDS_EACH to wait longer",
    "refused": "the model declined to answer: look at the evidence yourself",
    "no-answer": "the model gave no answer in the asked form: resume the session to ask again",
    "cli-broke-off": "resume the session to ask again",
    "not-asked": "an earlier failure would have met it too",
}
"""What a person can do about each state."""


@dataclass(frozen=True)
class Failure:
    """Why there is no answer."""

    state: str
    detail: str

    @property
    def advice(self) -> str:
        """What a person can do."""
        return ADVICE[self.state]

    def __str__(self) -> str:
        return f"{self.state}: {self.detail}; {self.advice}"


_BY_STATUS = {400: "rejected", 401: "unauthorized", 402: "unauthorized", 403: "unauthorized", 404: "no-model",
              413: "too-long", 429: "rate-limited", 529: "overloaded"}
_BY_SUBTYPE = {"error_max_turns": "turns", "error_max_budget_usd": "budget-each",
               "error_max_structured_output_retries": "no-answer"}
_BY_TEXT = (("not logged in", "unauthorized"), ("/login", "unauthorized"), ("authentication", "unauthorized"),
            ("invalid api key", "unauthorized"), ("usage policy", "refused"),
            ("unable to connect", "unreachable"), ("connection refused", "unreachable"),
            ("econnrefused", "unreachable"), ("enotfound", "unreachable"),
            ("stream", "stream-broken"), ("connection", "stream-broken"), ("terminated", "stream-broken"),
            ("timed out", "late"), ("timeout", "late"))


def of_result(result: Any) -> Failure | None:
    """The failure that the SDK's ResultMessage tells of, or None where it holds an answer in the asked form."""
    said = str(result.result or "; ".join(result.errors or ()) or result.subtype)[:300]
    if result.subtype in _BY_SUBTYPE:
        return Failure(_BY_SUBTYPE[result.subtype], said)
    if result.stop_reason == "refusal":
        return Failure("refused", said)
    if result.is_error or result.subtype != "success":
        return Failure(_state(result.api_error_status, said), said)
    if not isinstance(result.structured_output, dict):
        return Failure("no-answer", "the conversation ended without an answer in the asked form")
    return None


def _state(status: int | None, said: str) -> str:
    return of_text(said) if status is None or (status < 400 and status not in _BY_STATUS) else of_status(status)


def of_status(status: int) -> str:
    """The state behind an HTTP status of 400 or more."""
    return _BY_STATUS.get(status, "server-error" if status >= 500 else "rejected")


def of_text(said: str) -> str:
    """The state behind an error that names no status."""
    return next((state for text, state in _BY_TEXT if text in said.lower()), "cli-broke-off")


def of_exception(error: BaseException) -> Failure:
    """The failure behind an exception of the SDK, by its class's name: the classes come and go with the version."""
    said = f"{type(error).__name__}: {error}"[:300]
    names = {c.__name__ for c in type(error).__mro__}
    if "MissingExtra" in names:
        return Failure("not-installed", str(error)[:300])
    if "CLINotFoundError" in names:
        return Failure("cli-missing", said)
    if "CLIConnectionError" in names and any(w in said.lower() for w in ("too old", "version", "on_failure")):
        return Failure("cli-too-old", said)
    if isinstance(error, TypeError) and "unexpected keyword" in said:
        return Failure("cli-too-old", said)  # an SDK that does not know an option which the fences need
    if isinstance(error, TimeoutError) or "TimeoutError" in names:
        return Failure("late", said)
    return Failure("cli-broke-off", said)
