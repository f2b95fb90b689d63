"""The `anthropic` package, imported where it is used: it is an extra, and its types come and go with its version.

Keys are never looked for here: the package finds them as it does everywhere, for the API, Bedrock or Vertex.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
from collections.abc import Mapping
from typing import Any

from traindx.investigators.claude_code.failures import Failure, of_status, of_text
from traindx.settings import Settings
from traindx_tools.errors import MissingExtra

_CLIENTS = (("CLAUDE_CODE_USE_BEDROCK", "AsyncAnthropicBedrock"), ("CLAUDE_CODE_USE_VERTEX", "AsyncAnthropicVertex"))
"""The variables by which the Claude CLI chooses as well, and the package's client for each."""

_KINDS = {"authentication_error": "unauthorized", "permission_error": "unauthorized",
          "rate_limit_error": "rate-limited", "overloaded_error": "overloaded",
          "api_error": "server-error", "timeout_error": "server-error", "not_found_error": "no-model",
          "invalid_request_error": "rejected", "request_too_large": "too-long",
          "billing_error": "unauthorized"}
"""The API's own names of errors, which a stream brings after it began with status 200."""

PASSING = frozenset({"rate-limited", "overloaded", "server-error", "unreachable", "stream-broken"})
"""States that may be gone a moment later."""


def installed() -> bool:
    """True where the package can be imported."""
    return importlib.util.find_spec("anthropic") is not None


def package() -> Any:
    """The package. Raises MissingExtra."""
    try:
        return importlib.import_module("anthropic")
    except ModuleNotFoundError as missing:
        if (missing.name or "").split(".")[0] != "anthropic":
            raise
        raise MissingExtra("Asking over the Messages API", "anthropic", "api") from missing


def variables(settings: Settings) -> Mapping[str, str]:
    """The environment that a conversation sees."""
    return {**os.environ, **settings.environment}


def model_of(model: str, settings: Settings) -> str:
    """The model's name, "" where nobody names one: the API has no default."""
    return model or variables(settings).get("ANTHROPIC_MODEL", "")


def client(settings: Settings) -> Any:
    """An asynchronous client. It repeats nothing itself: `conversing.py` does, and says so. Raises MissingExtra."""
    there = variables(settings)
    kind = next((name for variable, name in _CLIENTS if there.get(variable, "") not in ("", "0")), "AsyncAnthropic")
    given = {"base_url": settings.environment.get("ANTHROPIC_BASE_URL"),
             "api_key": settings.environment.get("ANTHROPIC_API_KEY"),
             "auth_token": settings.environment.get("ANTHROPIC_AUTH_TOKEN")}
    known = {k: v for k, v in given.items() if v} if kind == "AsyncAnthropic" else {}
    return getattr(package(), kind)(max_retries=0, **known)


def of_exception(error: BaseException) -> Failure:
    """The failure behind an exception of the package or of its transport, by class name and status."""
    said = f"{type(error).__name__}: {error}"[:300]
    names = {c.__name__ for c in type(error).__mro__}
    if "MissingExtra" in names:
        return Failure("not-installed", str(error)[:300])
    kind = _KINDS.get(_kind(error))
    status = getattr(error, "status_code", None)
    if kind is not None and (status is None or status < 400):
        return Failure(kind, said)
    if isinstance(status, int) and status >= 400:
        return Failure("too-long" if "prompt is too long" in said else of_status(status), said)
    if "CredentialsError" in names or "authentication method" in said:
        return Failure("unauthorized", said)
    if names & {"APITimeoutError", "TimeoutException"} or isinstance(error, TimeoutError):
        return Failure("stream-broken", said)
    if names & {"APIConnectionError", "ConnectError"}:
        return Failure("unreachable", said)
    if names & {"TransportError", "StreamError", "APIResponseValidationError", "JSONDecodeError", "APIError"}:
        return Failure("stream-broken", said)
    return Failure(of_text(said), said)


def _kind(error: BaseException) -> str:
    body = getattr(error, "body", None)
    inner = body.get("error") if isinstance(body, dict) else None
    found = inner.get("type") if isinstance(inner, dict) else body.get("type") if isinstance(body, dict) else ""
    return str(found or "")


def waiting(error: BaseException, attempt: int) -> float:
    """Seconds until the next try: what the server asks for, else growing pauses from half a second to eight."""
    response = getattr(error, "response", None)
    asked_for = getattr(response, "headers", {}).get("retry-after", "") if response is not None else ""
    try:
        return min(max(float(asked_for), 0.0), 60.0)
    except ValueError:
        return float(min(0.5 * 2**attempt, 8.0))
