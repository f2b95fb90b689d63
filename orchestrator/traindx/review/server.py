"""The server of a review: one page, one form, on 127.0.0.1, for the person who was given its address.

The address holds a token that works once; it is exchanged for a cookie, so that neither history nor a copied address
opens the page elsewhere again. The browser that has the cookie may open or reload it as often as it likes; to any other
it is said how a fresh address is made. After the decision the page follows the session to its result, or to the next
diagnosis and its form. A decision needs
the cookie, the secret of the form and a page of this server as its origin, and names the diagnosis that was shown by
its digest: what changed meanwhile is not approved. Other names for this machine than 127.0.0.1 and localhost are
refused (DNS rebinding); their port may be another one, as it is behind `ssh -L`.
"""

from __future__ import annotations

import contextlib
import hmac
import html
import itertools
import re
import secrets
import threading
import urllib.parse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from traindx.model import Decision
from traindx.review.form import Form
from traindx.session_result import SessionResult
from traindx.standing import NOTHING_APPLIED
from traindx_tools.errors import TraindxError

HOST = "127.0.0.1"
NAMES = frozenset({HOST, "localhost"})
LARGEST_FORM = 2**16
"""Bytes of a posted form."""
MOST_COMMENT = 4000
"""Characters of a comment that are kept."""
SECONDS = 20.0
"""For a request to arrive."""
FIRST_LOOK = 5.0
"""Seconds after the end of a session that ended before the page looked again; a page that was closed never does."""
LAST_LOOK = 8.0
"""Seconds that the result waits for the page to ask for it, which it does every two."""
WAITS = "awaiting_approval"
GOES_ON = frozenset({"running", "answered", "interrupted", "rejected", WAITS})
"""Statuses that a session passes through between a decision and where it comes to stand; at the next diagnosis the page
is asked anew as soon as the server takes decisions again."""
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; "
                               "form-action 'self'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Cache-Control": "no-store",
    "Referrer-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin"}


class Undecided(TraindxError):
    """The review ended without a decision."""


@dataclass(frozen=True)
class Reviewed:
    """What the person decided, and where the session stands since."""

    decision: Decision
    result: SessionResult

    @property
    def said(self) -> str:
        """The decision in words: "approve option A"."""
        return self.decision.verdict + (f" option {self.decision.option}" if self.decision.option else "")


@dataclass(frozen=True)
class Page:
    """An answer: its status and its HTML."""

    status: HTTPStatus
    html: str


class Server:
    """Serves a review until it is decided. Raises OSError where the port is taken.

    `read`: the session as it is now. `decide`: records a decision, raises TraindxError where it is refused. `show`: the
    HTML for a result and a form. `say`: for the terminal, where an address was used a second time. `anew`: the command
    that makes a fresh address. `follows`: the page stays after the decision, for as long as `following` lasts.
    """

    def __init__(self, read: Callable[[], SessionResult], decide: Callable[[Decision], SessionResult],
                 show: Callable[[SessionResult, Form], str], *, port: int = 0, by: str = "user",
                 say: Callable[[str], None] = lambda _: None, anew: str = "traindx review SESSION",
                 follows: bool = False) -> None:
        self._read, self._decide, self._show, self._by, self._say = read, decide, show, by, say
        self._token, self._cookie, self._secret = (secrets.token_urlsafe(24) for _ in range(3))
        self._used = False
        self.anew, self._follows, self._settled = anew, follows, False
        self._looked, self._shown = threading.Event(), threading.Event()
        self._lock = threading.Lock()
        self._decided: Reviewed | None = None
        self._looks = itertools.count(1)
        self.deciding = False
        """Whether `serve` waits for a decision."""
        self.cookie_name = f"traindx-{secrets.token_hex(4)}"
        """Cookies do not know ports: two reviews at a time must not take each other's."""
        self._http = ThreadingHTTPServer((HOST, port), type("Handler", (_Handler,), {"review": self}))
        self._http.daemon_threads = True

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self._http.server_address[1])

    @property
    def address(self) -> str:
        """The address that opens the page, once."""
        return f"http://{HOST}:{self.port}/?token={self._token}"

    def serve(self) -> Reviewed:
        """Answers until a decision is recorded. Raises Undecided where `close` comes first.

        After `following` it may be called again, where the session came to the next diagnosis.
        """
        self.deciding = True
        try:
            self._http.serve_forever(poll_interval=0.1)
        finally:
            self.deciding = False
            if self._decided is None or not self._follows:
                self._http.server_close()
        if self._decided is None:
            raise Undecided("the review was closed before anything was decided")
        return self._decided

    @contextlib.contextmanager
    def following(self) -> Iterator[None]:
        """After a decision: the page shows how the session goes on. At the end it waits until the result was shown, for
        a few seconds: the page looks again every two, and a session may end sooner. Where the session came to another
        diagnosis the page stays: `serve` takes the next decision."""
        stays = False
        answering = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
        answering.start()
        try:
            yield
            stays = self._waits_again()
            self._settled = not stays
            if not stays and self._looked.wait(FIRST_LOOK):
                self._shown.wait(LAST_LOOK)
        finally:
            self._http.shutdown()
            answering.join()
            if not stays:
                self._http.server_close()
            else:
                self._decided, self._secret = None, secrets.token_urlsafe(24)
                self._looked.clear()

    def _waits_again(self) -> bool:
        """Whether the session waits for the next decision."""
        try:
            return self._read().status == WAITS
        except (TraindxError, OSError):
            return False

    def close(self) -> None:
        """Ends `serve`, from another thread."""
        self._http.shutdown()

    @property
    def is_decided(self) -> bool:
        """Whether a decision is recorded."""
        return self._decided is not None

    # ---- what is asked

    def admitted(self, token: str) -> bool:
        """Whether the token opens the page; it does so once. A second use is told at the terminal, with a new one."""
        with self._lock:
            if not hmac.compare_digest(token.encode(), self._token.encode()):
                return False
            if not self._used:
                self._used = True
                return True
            # Who came first is out as well: nobody can tell which of the two was the person.
            self._token, self._cookie, self._secret = (secrets.token_urlsafe(24) for _ in range(3))
            self._used = False
        self._say(f"the address was opened a second time and is not valid any more; this one is:\n{self.address}")
        return False

    def known(self, cookie: str) -> bool:
        """Whether the cookie is the one that was given for the token."""
        return self._used and hmac.compare_digest(cookie.encode(), self._cookie.encode())

    @property
    def fresh_address(self) -> str:
        """What a browser is told that the address does not open the page in (any more), as HTML."""
        return ("This address opens the page in one browser, once. For a fresh address, for this browser or another "
                f"device, type in a terminal of the machine: <code>{html.escape(self.anew)}</code> It prints one. "
                "Where an address was opened a second time, the terminal of the review has printed the next already.")

    @property
    def cookie(self) -> str:
        """The header that gives it."""
        return f"{self.cookie_name}={self._cookie}; HttpOnly; SameSite=Strict; Path=/"

    def page(self) -> Page:
        """The diagnosis with its form, or what was decided."""
        if self._decided is not None:
            return self._followed(self._decided)
        try:
            result = self._read()
        except (TraindxError, OSError) as error:
            return refusal(HTTPStatus.GONE, f"The session cannot be read any more: {html.escape(str(error))}")
        again = result.reason if result.reason.startswith(NOTHING_APPLIED) else ""
        said = again if result.status == WAITS else f"The session waits for no decision: {result.reason}"
        return Page(HTTPStatus.OK, self._show(result, Form(self._secret, error=said)))

    def decide(self, form: dict[str, str]) -> Page:
        """Records a decision, or shows the page again with the reason why not."""
        if not hmac.compare_digest(form.get("secret", "").encode(), self._secret.encode()):
            return refusal(HTTPStatus.FORBIDDEN, "The form is not one of this page. Open the page again.")
        comment = form.get("comment", "").strip()[:MOST_COMMENT]
        with self._lock:
            if self._decided is not None:
                return self._after(self._decided)
            try:
                decision = self._decision(form.get("decision", ""), form.get("digest", ""), comment)
                self._decided = Reviewed(decision, self._decide(decision))
            except (TraindxError, OSError) as error:
                return self._undecided(comment, str(error))
        return self._after(self._decided)

    def _undecided(self, comment: str, why: str) -> Page:
        """The page again, with the reason."""
        try:
            return Page(HTTPStatus.CONFLICT, self._show(self._read(), Form(self._secret, comment, why)))
        except (TraindxError, OSError):
            return refusal(HTTPStatus.GONE, f"Nothing was recorded: {html.escape(why)}")

    def _decision(self, choice: str, digest: str, comment: str) -> Decision:
        verdict, _, option = choice.partition(" ")
        if verdict in ("reject", "revise") and not comment:
            what = "the reason" if verdict == "reject" else "what you know"
            raise Undecided(f"Nothing was recorded: to {verdict}, write {what} into the comment.")
        if verdict not in ("approve", "reject", "revise") or (verdict == "approve" and option not in ("A", "B")):
            raise Undecided("Nothing was recorded: choose one of the buttons.")
        return Decision.model_validate({"verdict": verdict, "diagnosis_digest": digest, "by": self._by,
                                        "option": option or None, "comment": comment})

    def _after(self, done: Reviewed) -> Page:
        """The answer to the decision itself."""
        form = Form("", recorded=done.said, follows=self._follows, look=next(self._looks))
        return Page(HTTPStatus.OK, self._show(done.result, form))

    def _followed(self, done: Reviewed) -> Page:
        """Where the session stands since: what goes on, then the result."""
        self._looked.set()
        settled = self._settled  # before it is read: what is read then is the end
        try:
            now = self._read()
        except (TraindxError, OSError) as error:
            return refusal(HTTPStatus.GONE, f"The session cannot be read any more: {html.escape(str(error))}")
        goes_on = self._follows and not settled and now.status in GOES_ON
        form = Form("", recorded=done.said, follows=goes_on, look=next(self._looks))
        page = Page(HTTPStatus.OK, self._show(now, form))
        if not goes_on:
            self._shown.set()
        return page


class _Handler(BaseHTTPRequestHandler):
    review: Server
    server_version, sys_version = "traindx", ""
    protocol_version = "HTTP/1.0"
    timeout = SECONDS

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        token = dict(urllib.parse.parse_qsl(query)).get("token")
        if not self._is_here() or path != "/":
            return self._answer(refusal(HTTPStatus.NOT_FOUND, "There is one page here, and it is at /."))
        if token is not None and self._is_known():  # the address once more, in the browser that it was opened in
            return self._answer(Page(HTTPStatus.SEE_OTHER, ""), {"Location": "/"})
        if token is not None and self.review.admitted(token):
            return self._answer(Page(HTTPStatus.SEE_OTHER, ""), {"Location": "/", "Set-Cookie": self.review.cookie})
        if not self._is_known():
            return self._answer(refusal(HTTPStatus.FORBIDDEN, self.review.fresh_address))
        return self._answer(self.review.page())

    def do_POST(self) -> None:
        if not self._is_here() or self.path != "/":
            return self._answer(refusal(HTTPStatus.NOT_FOUND, "There is one page here, and it is at /."))
        if not self._is_known() or not self._is_own_page():
            return self._answer(refusal(HTTPStatus.FORBIDDEN, f"A decision comes from the page of this review alone. "
                                        f"{self.review.fresh_address}"))
        length = self.headers.get("Content-Length", "")
        if not re.fullmatch(r"[0-9]{1,6}", length) or int(length) > LARGEST_FORM:
            return self._answer(refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "The form is larger than it can be."))
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            return self._answer(refusal(HTTPStatus.BAD_REQUEST, "The form was cut on the way: nothing was recorded."))
        form = dict(urllib.parse.parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))
        try:
            self._answer(self.review.decide(form))
        finally:
            if self.review.is_decided and self.review.deciding:  # only now: the answer has left, or nobody waits for it
                self.review.close()
        return None

    def _is_here(self) -> bool:
        return _host(f"//{self.headers.get('Host', '')}") in NAMES

    def _is_own_page(self) -> bool:
        origin = self.headers.get("Origin", "")
        return origin.removeprefix("http://") == self.headers.get("Host", "") and origin.startswith("http://")

    def _is_known(self) -> bool:
        try:
            cookies: SimpleCookie = SimpleCookie(self.headers.get("Cookie", ""))
        except CookieError:
            return False
        found = cookies.get(self.review.cookie_name)
        return found is not None and self.review.known(found.value)

    def _answer(self, page: Page, more: dict[str, str] | None = None) -> None:
        body = page.html.encode("utf-8", "replace")
        self.send_response(page.status)
        for name, value in {**_HEADERS, "Content-Type": "text/html; charset=utf-8", "Content-Length": str(len(body)),
                            **(more or {})}.items():
            self.send_header(name, value)
        with contextlib.suppress(ConnectionError, TimeoutError):  # the browser has gone
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Requests hold the token: they are written nowhere."""


def refusal(status: HTTPStatus, said: str) -> Page:
    """A page with one sentence of ours."""
    return Page(status, '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" '
                f'content="width=device-width"><title>{status.phrase}</title><p>{said}</p></html>')


def _host(address: str) -> str | None:
    try:
        return urllib.parse.urlsplit(address).hostname
    except ValueError:
        return None
