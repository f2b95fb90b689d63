"""A Messages API on 127.0.0.1 that says what a test scripts, so that the real CLI can run whole conversations offline.

A script is chosen by the `Role: NAME` line of the system text or of the first message, its step by the number of
assistant messages in the request: the server keeps no conversation and serves parallel specialists. Every request is
recorded with its times.
"""

from __future__ import annotations

import json
import math
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ROLE = re.compile(r"^Role: ([\w-]+)", re.MULTILINE)


@dataclass(frozen=True)
class Text:
    """The assistant says this and ends its turn."""

    text: str
    stop_reason: str = "end_turn"


@dataclass(frozen=True)
class Use:
    """The assistant calls a tool."""

    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class Both:
    """The assistant says something and calls a tool in the same message."""

    text: str
    use: Use


def answer(body: Mapping[str, Any]) -> Use:
    """The assistant hands its answer over in the asked form."""
    return Use("StructuredOutput", body)


@dataclass(frozen=True)
class Fail:
    """The API answers with an HTTP error; `times` requests of this role, then what follows in the script."""

    status: int
    kind: str = "api_error"
    message: str = "scripted failure"
    retry_after: str = ""


@dataclass(frozen=True)
class Several:
    """The assistant calls several tools in one message."""

    uses: Sequence[Use]


@dataclass(frozen=True)
class ErrorInStream:
    """The stream begins with status 200 and then brings an error of the API."""

    kind: str = "overloaded_error"


@dataclass(frozen=True)
class Drop:
    """The connection is closed in the middle of the stream."""


@dataclass(frozen=True)
class Garbage:
    """The stream holds what is no event."""


@dataclass(frozen=True)
class Wait:
    """The step is given once `until` is set (a rendezvous of specialists), or after some seconds at the latest."""

    step: Any
    until: threading.Event
    seconds: float = 20.0


Step = Any
Script = Sequence[Step] | Callable[[dict[str, Any]], Step]


@dataclass(frozen=True)
class Asked:
    """One request: the role, the step number, the body, and when it was on its way (seconds, monotonic)."""

    role: str
    number: int
    body: dict[str, Any]
    headers: dict[str, str]
    begun: float
    ended: float


@dataclass
class Api:
    """The running server's address and what it was asked."""

    url: str
    scripts: dict[str, Script]
    asked: list[Asked] = field(default_factory=list)
    counted: list[Asked] = field(default_factory=list)
    """Requests for a count of tokens."""
    usage: dict[str, int] = field(default_factory=lambda: {"input_tokens": 10, "output_tokens": 20})
    in_flight: Counter[str] = field(default_factory=Counter)
    most_at_once: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)
    together: Callable[[Api], None] = lambda api: None
    """Called, under the lock, when a request begins."""

    def of(self, role: str) -> list[Asked]:
        """The requests of one role."""
        return [a for a in self.asked if a.role == role]

    @property
    def roles(self) -> set[str]:
        return {a.role for a in self.asked}


def system_text(body: Mapping[str, Any]) -> str:
    system = body.get("system") or ""
    return system if isinstance(system, str) else "\n".join(b.get("text", "") for b in system)


def role_of(body: Mapping[str, Any]) -> str:
    """The role in the system text; lead and adversary share theirs, and have it in their first message."""
    first = next((m["content"] for m in body.get("messages", ()) if m["role"] == "user"), "")
    found = ROLE.search(system_text(body)) or ROLE.search(first if isinstance(first, str) else "\n".join(
        str(b.get("text", "")) for b in first))
    return found[1] if found else ""


def step_of(script: Script, body: dict[str, Any]) -> Step:
    number = sum(m["role"] == "assistant" for m in body.get("messages", ()))
    return script(body) if callable(script) else script[min(number, len(script) - 1)]


def tokens_of(body: Mapping[str, Any]) -> int:
    """What a request holds in tokens, for want of a tokenizer: all that the model reads, 3.6 characters a token."""
    read = {k: body[k] for k in ("system", "tools", "messages") if k in body}
    return math.ceil(len(json.dumps(read, ensure_ascii=False, separators=(",", ":"))) / 3.6)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        self._json(404, {"type": "error", "error": {"type": "not_found_error", "message": "nothing here"}})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
        api, begun = self.server.api, time.monotonic()
        role = role_of(body)
        if "/count_tokens" in self.path:
            api.counted.append(Asked(role, 0, body, dict(self.headers), begun, time.monotonic()))
            self._json(200, {"input_tokens": tokens_of(body)})
            return
        number = sum(m["role"] == "assistant" for m in body.get("messages", ()))
        with api.lock:
            api.in_flight[role] += 1
            api.most_at_once = max(api.most_at_once, sum(api.in_flight.values()))
            api.together(api)
        try:
            step = step_of(api.scripts.get(role, [Fail(400, "invalid_request_error", f"no script for {role!r}")]), body)
            if isinstance(step, Wait):
                step.until.wait(step.seconds)
                step = step.step
            self._say(step, body, number, api)
        finally:
            with api.lock:
                api.in_flight[role] -= 1
                api.asked.append(Asked(role, number, body, dict(self.headers), begun, time.monotonic()))

    def _say(self, step: Step, body: dict[str, Any], number: int, api: Api) -> None:
        if isinstance(step, Fail):
            more = {"retry-after": step.retry_after} if step.retry_after else {}
            self._json(step.status, {"type": "error", "error": {"type": step.kind, "message": step.message}}, more)
            return
        if isinstance(step, (Drop, Garbage)) and not body.get("stream"):
            # The CLI falls back to a request without streaming: that one fails as well.
            self.close_connection = True
            if isinstance(step, Garbage):
                self._raw(200, b"this is no JSON {", "application/json")
            return
        if not body.get("stream"):
            self._json(200, _whole(step, body, number, api.usage))
            return
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for kind, event in _events(step, body, number, api.usage):
            if isinstance(step, ErrorInStream) and kind != "message_start":
                error = {"type": "error", "error": {"type": step.kind, "message": "scripted"}}
                self._chunk(f"event: error\ndata: {json.dumps(error)}\n\n".encode())
                break
            if isinstance(step, Garbage) and kind != "message_start":
                self._chunk(b"event: content_block_start\ndata: {\"type\": \"content_blo\n\nhello\n\n")
                break
            if isinstance(step, Drop) and kind == "content_block_stop":
                self.close_connection = True
                self.wfile.flush()
                self.connection.close()
                return
            self._chunk(f"event: {kind}\ndata: {json.dumps(event)}\n\n".encode())
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()

    def _chunk(self, content: bytes) -> None:
        self.wfile.write(f"{len(content):x}\r\n".encode() + content + b"\r\n")
        self.wfile.flush()

    def _json(self, status: int, body: dict[str, Any], more: Mapping[str, str] | None = None) -> None:
        self._raw(status, json.dumps(body).encode(), "application/json", more)

    def _raw(self, status: int, content: bytes, kind: str, more: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (more or {}).items():
            self.send_header(name, value)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    api: Api

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away (a cancelled specialist) is no fault of the server."""


def _block(step: Step, number: int) -> dict[str, Any]:
    if isinstance(step, Use):
        return {"type": "tool_use", "id": f"toolu_{number}_{abs(hash(step.tool)) % 10**8}", "name": step.tool,
                "input": dict(step.arguments)}
    return {"type": "text", "text": step.text if isinstance(step, Text) else "broken off"}


def _blocks(step: Step, number: int) -> list[dict[str, Any]]:
    if isinstance(step, Several):
        return [{**_block(use, number), "id": f"toolu_{number}_{n}"} for n, use in enumerate(step.uses)]
    return [_block(Text(step.text), number), _block(step.use, number)] if isinstance(step, Both) else [
        _block(step, number)]


def _stop(step: Step) -> str:
    if isinstance(step, (Use, Both, Several)):
        return "tool_use"
    return step.stop_reason if isinstance(step, Text) else "end_turn"


def _whole(step: Step, body: dict[str, Any], number: int, usage: dict[str, int]) -> dict[str, Any]:
    return {"id": f"msg_{time.monotonic_ns()}", "type": "message", "role": "assistant", "model": body.get("model"),
            "content": _blocks(step, number), "stop_reason": _stop(step), "stop_sequence": None, "usage": usage}


def _events(step: Step, body: dict[str, Any], number: int, usage: dict[str, int]) -> Iterator[tuple[str, Any]]:
    message = {**_whole(step, body, number, {**usage, "output_tokens": 1}), "content": [], "stop_reason": None}
    yield "message_start", {"type": "message_start", "message": message}
    for index, block in enumerate(_blocks(step, number)):
        for event in _parts(index, block):
            yield event["type"], event
    yield "message_delta", {"type": "message_delta", "delta": {"stop_reason": _stop(step), "stop_sequence": None},
                            "usage": {"output_tokens": usage["output_tokens"]}}
    yield "message_stop", {"type": "message_stop"}


def _parts(index: int, block: dict[str, Any]) -> Iterator[dict[str, Any]]:
    calls = block["type"] == "tool_use"
    empty = {**block, "input": {}} if calls else {**block, "text": ""}
    delta = ({"type": "input_json_delta", "partial_json": json.dumps(block["input"])} if calls
             else {"type": "text_delta", "text": block["text"]})
    yield {"type": "content_block_start", "index": index, "content_block": empty}
    yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}


@contextmanager
def scripted(scripts: dict[str, Script]) -> Iterator[Api]:
    """A server on a free port of 127.0.0.1 for as long as the block lasts."""
    server = _Server(("127.0.0.1", 0), _Handler)
    api = server.api = Api(f"http://127.0.0.1:{server.server_address[1]}", scripts)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield api
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
