"""`traindx review`: the page shows the diagnosis, takes one decision from the person's browser and from nobody else."""

from __future__ import annotations

import html
import http.client
import re
import shutil
import socket
import struct
import sys
import tempfile
import threading
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from chromium_here import needs_chromium, tab
from closed_gate import ClosedGate, differences

from traindx import cli
from traindx.model import Decision
from traindx.review import Form, Reviewed, Server, Undecided, review_page
from traindx.review.server import Page
from traindx.runner import landlock
from traindx.session import decide, read_result, resume_session_sync, run_debug_session_sync
from traindx.session_result import SessionResult
from traindx_tools.errors import TraindxError

EXAMPLE = Path(__file__).parents[2] / "examples" / "numpy-lr"


@pytest.fixture
def waiting(tmp_path: Path) -> SessionResult:
    work = Path(shutil.copytree(EXAMPLE, tmp_path / "work"))
    result = run_debug_session_sync("loss is NaN", work, report=False)
    assert result.status == "awaiting_approval"
    return result


@dataclass
class Running:
    """A review that is served in a thread."""

    server: Server
    thread: threading.Thread
    ended: list[Reviewed | Exception]
    said: list[str] = field(default_factory=list)

    def ask(self, path: str = "/", form: dict[str, str] | None = None,
            **headers: str) -> tuple[int, http.client.HTTPMessage, str]:
        """One request, with what a browser on this page would send beside the given."""
        made = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)
        sent = {"Host": f"127.0.0.1:{self.server.port}", **headers}
        if form is None:
            made.request("GET", path, headers=sent)
        else:
            sent.setdefault("Origin", f"http://{sent['Host']}")
            made.request("POST", path, urllib.parse.urlencode(form), headers=sent)
        answer = made.getresponse()
        text = answer.read().decode()
        made.close()
        return answer.status, answer.headers, text

    def admitted(self) -> str:
        """Opens the address; the cookie."""
        status, headers, _ = self.ask(self.server.address.partition(str(self.server.port))[2])
        assert status == 303
        return headers["Set-Cookie"].partition(";")[0]

    def form(self, cookie: str, **given: str) -> dict[str, str]:
        """The form as the page has it, filled in."""
        page = self.ask(Cookie=cookie)[2]
        hidden = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', page))
        assert set(hidden) == {"secret", "digest"}
        return {**hidden, **given}


@pytest.fixture
def review(waiting: SessionResult) -> Iterator[Running]:
    said: list[str] = []
    server = Server(lambda: read_result(waiting.folder), lambda d: decide(waiting.folder, d), review_page, by="me",
                    say=said.append)
    ended: list[Reviewed | Exception] = []

    def serve() -> None:
        try:
            ended.append(server.serve())
        except Undecided as error:
            ended.append(error)

    thread = threading.Thread(target=serve)
    thread.start()
    yield Running(server, thread, ended, said)
    if thread.is_alive():
        server.close()
    thread.join()


def test_the_page_is_the_report_with_the_form_and_asks_for_nothing_from_outside(review: Running) -> None:
    cookie = review.admitted()
    status, headers, page = review.ask(Cookie=cookie)
    assert status == 200
    for word in ("Root Cause", "What This Fix Will NOT Fix", "Three questions for you", "Approve A", "Approve B",
                 "Revise", "Reject", "EPS = 1e-6"):
        assert word in page, word
    assert not re.findall(r"(?:src|href)=[\"'](?!#|data:)", page)
    assert "<script" not in page
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "form-action 'self'" in policy
    assert headers["Cache-Control"] == "no-store"
    assert {"HttpOnly", "SameSite=Strict"} <= {p.strip() for p in review.server.cookie.split(";")}


def test_a_revision_that_names_another_cause_shows_the_experiment_that_tests_it(waiting: SessionResult) -> None:
    assert waiting.diagnosis is not None
    decide(waiting.folder, Decision.revise(waiting.diagnosis, "I think it is the learning rate"))
    again = resume_session_sync(waiting.folder, report=False)
    assert again.status == "awaiting_approval"
    page = review_page(again, Form("secret", ""))
    (command,) = again.tests
    assert html.escape(command) in page or command in html.unescape(page)
    table = page.partition("evidence cited")[2].partition("</table>")[0]
    for e in again.diagnosis.evidence if again.diagnosis else ():
        assert e.statement[:60] in html.unescape(table), "no id stands alone"
    assert again.diagnosis is not None
    assert not re.search(r"[A-Z]\d{3}-\d", again.diagnosis.questions[0])
    led = set(re.findall(r'href="#([^"]+)"', page)) - {"decide"}
    assert led <= set(re.findall(r'id="([^"]+)"', page)), "each name leads to a place of the page"


@pytest.mark.parametrize(("choice", "comment", "status"), [
    ("approve A", "", "answered"), ("approve B", "b", "awaiting_edit"), ("revise", "it is the data", "answered"),
    ("reject", "no", "rejected")])
def test_each_decision_is_recorded_once_and_ends_the_review(review: Running, waiting: SessionResult, choice: str,
                                                            comment: str, status: str) -> None:
    cookie = review.admitted()
    given = review.form(cookie, decision=choice, comment=comment)
    code, _, page = review.ask(form=given, Cookie=cookie)
    assert code == 200
    assert "Recorded: approve option" in page or f"Recorded: {choice}" in page
    review.thread.join(timeout=60)
    done = review.ended[0]
    assert isinstance(done, Reviewed)
    assert (done.decision.by, done.decision.comment) == ("me", comment)
    assert read_result(waiting.folder).status == status
    with pytest.raises(ConnectionError):  # nobody listens any more
        review.ask(Cookie=cookie)


def test_a_revision_and_a_rejection_need_words_and_what_was_typed_is_kept(review: Running,
                                                                          waiting: SessionResult) -> None:
    cookie = review.admitted()
    for choice in ("revise", "reject", "approve C", "", "delete"):
        code, _, page = review.ask(form=review.form(cookie, decision=choice, comment="  "), Cookie=cookie)
        assert code == 409
        assert "Nothing was recorded" in page
    page = review.ask(form=review.form(cookie, decision="approve Z", comment="<b>kept</b>"), Cookie=cookie)[2]
    assert "&lt;b&gt;kept&lt;/b&gt;</textarea>" in page
    assert read_result(waiting.folder).status == "awaiting_approval"


def test_the_address_opens_once_and_the_terminal_has_the_next_one(review: Running) -> None:
    first = review.server.address
    cookie = review.admitted()
    assert review.ask(first.partition(str(review.server.port))[2])[0] == 403
    assert review.ask(first.partition(str(review.server.port))[2])[0] == 403
    assert len(review.said) == 1
    assert review.server.address in review.said[0]
    assert review.server.address != first
    assert review.ask(Cookie=cookie)[0] == 403  # until the new one is opened, nobody is in
    again = review.admitted()
    assert review.ask(Cookie=again)[0] == 200
    assert review.ask(Cookie=cookie)[0] == 403  # and who came first is out


def test_a_form_that_was_cut_on_the_way_is_no_decision(review: Running, waiting: SessionResult) -> None:
    cookie = review.admitted()
    body = urllib.parse.urlencode(review.form(cookie, decision="approve A", comment="but not"))
    host = f"127.0.0.1:{review.server.port}"
    with socket.create_connection(("127.0.0.1", review.server.port), timeout=60) as client:
        client.sendall(f"POST / HTTP/1.0\r\nHost: {host}\r\nOrigin: http://{host}\r\nCookie: {cookie}\r\n"
                       f"Content-Length: {len(body) + 9}\r\n\r\n{body}".encode())
        client.shutdown(socket.SHUT_WR)
        assert b" 400 " in client.recv(2**16)
    assert read_result(waiting.folder).status == "awaiting_approval"
    for length in ("²", "9" * 5000, "-1", "1e3"):
        assert _status(review.server.port, f"POST / HTTP/1.0\r\nHost: {host}\r\nOrigin: http://{host}\r\n"
                       f"Cookie: {cookie}\r\nContent-Length: {length}\r\n\r\n") in (b"413", b"400"), length
    assert _status(review.server.port, f"GET http://[x/ HTTP/1.0\r\nHost: {host}\r\n\r\n") == b"404"


def _status(port: int, request: str) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
        client.sendall(request.encode("latin-1", "replace"))
        client.shutdown(socket.SHUT_WR)
        return client.recv(2**16).split(b" ")[1]


def test_a_browser_that_goes_at_once_has_decided_and_the_review_ends(review: Running, waiting: SessionResult,
                                                                     monkeypatch: pytest.MonkeyPatch) -> None:
    cookie = review.admitted()
    body = urllib.parse.urlencode(review.form(cookie, decision="approve A", comment=""))
    host = f"127.0.0.1:{review.server.port}"
    client = socket.create_connection(("127.0.0.1", review.server.port), timeout=60)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    decided = review.server.decide

    def gone(form: dict[str, str]) -> Page:
        page = decided(form)
        client.close()  # with a reset, before the answer is written
        return page

    monkeypatch.setattr(review.server, "decide", gone)
    client.sendall(f"POST / HTTP/1.0\r\nHost: {host}\r\nOrigin: http://{host}\r\nCookie: {cookie}\r\n"
                   f"Content-Length: {len(body)}\r\n\r\n{body}".encode())
    review.thread.join(timeout=60)
    assert not review.thread.is_alive()
    assert isinstance(review.ended[0], Reviewed)
    assert read_result(waiting.folder).status == "answered"


def test_a_session_that_is_gone_is_told_on_the_page(review: Running, waiting: SessionResult) -> None:
    cookie = review.admitted()
    given = review.form(cookie, decision="approve A", comment="")
    shutil.rmtree(waiting.folder)
    for code, _, page in (review.ask(Cookie=cookie), review.ask(form=given, Cookie=cookie)):
        assert code in (409, 410)
        assert "no session" in page
    assert not Path(waiting.folder).exists()


@pytest.mark.parametrize("path", ["/?token=", "/?token=x", "/?token=%ff", "/x", "/../etc/passwd", "/favicon.ico"])
def test_without_the_token_there_is_no_page(review: Running, path: str) -> None:
    assert review.ask(path)[0] in (403, 404)
    assert review.ask("/")[0] == 403
    assert review.ask("/", Cookie="a=b; ;;=\"")[0] == 403
    assert review.ask("/", Cookie=f"{review.server.cookie_name}=x")[0] == 403


def test_what_another_page_or_program_sends_decides_nothing(review: Running, waiting: SessionResult) -> None:
    cookie = review.admitted()
    given = review.form(cookie, decision="approve A", comment="")
    port = review.server.port
    assert review.ask(form=given)[0] == 403  # without the cookie
    for origin in ("null", "http://evil.example", f"http://evil.example:{port}", f"https://127.0.0.1:{port}",
                   f"http://127.0.0.1:{port + 1}", ""):
        assert review.ask(form=given, Cookie=cookie, Origin=origin)[0] == 403, origin
    for host in ("evil.example", f"evil.example:{port}", "127.0.0.1.evil.example", "", "[::1", "10.0.0.1"):
        assert review.ask(form=given, Cookie=cookie, Host=host, Origin=f"http://{host}")[0] in (403, 404), host
    assert review.ask(form={**given, "secret": "x"}, Cookie=cookie)[0] == 403
    assert review.ask(form={**given, "digest": "0" * 64}, Cookie=cookie)[0] == 409  # of another diagnosis
    assert review.ask(form={**given, "comment": "x" * 70_000}, Cookie=cookie)[0] == 413
    assert review.ask("/x", form=given, Cookie=cookie)[0] == 404
    assert read_result(waiting.folder).status == "awaiting_approval"
    assert review.ended == []


def test_behind_a_tunnel_the_port_is_another_one(review: Running) -> None:
    cookie = review.admitted()
    given = review.form(cookie, decision="approve A", comment="")
    assert review.ask(form=given, Cookie=cookie, Host="localhost:9000", Origin="http://localhost:9000")[0] == 200


def test_what_was_decided_elsewhere_meanwhile_is_said(review: Running, waiting: SessionResult) -> None:
    cookie = review.admitted()
    given = review.form(cookie, decision="approve A", comment="")
    assert waiting.diagnosis is not None
    decide(waiting.folder, Decision.reject(waiting.diagnosis, "no"))
    code, _, page = review.ask(form=given, Cookie=cookie)
    assert code == 409
    assert "was decided already" in page
    assert "waits for no decision" in review.ask(Cookie=cookie)[2]


def test_text_of_a_log_is_data_on_the_page(tmp_path: Path) -> None:
    work = Path(shutil.copytree(EXAMPLE, tmp_path / "work"))
    result = run_debug_session_sync("<script>alert(1)</script> loss is NaN", work, report=False)
    page = review_page(result, Form("s", error="<script>x</script>", comment="</textarea><script>"))
    assert "<script" not in page


def test_a_session_that_does_not_wait_and_a_port_that_is_taken_are_told(
        waiting: SessionResult, capsys: pytest.CaptureFixture[str]) -> None:
    taken = Server(lambda: waiting, lambda _: waiting, review_page)
    arguments = ("--workspace", waiting.workspace)
    assert cli.run(["review", waiting.session, *arguments, "--port", str(taken.port)]) == 2
    assert "cannot be used" in capsys.readouterr().err
    taken._http.server_close()
    assert waiting.diagnosis is not None
    decide(waiting.folder, Decision.reject(waiting.diagnosis, "no"))
    assert cli.run(["review", waiting.session, *arguments]) == 2
    assert "waits for no decision" in capsys.readouterr().err
    assert cli.run(["review", "nothing", *arguments]) == 2


def test_a_review_that_is_closed_leaves_the_session_waiting(review: Running, waiting: SessionResult) -> None:
    review.server.close()
    review.thread.join(timeout=60)
    assert isinstance(review.ended[0], TraindxError)
    assert read_result(waiting.folder).status == "awaiting_approval"


@needs_chromium
@pytest.mark.slow
def test_a_printed_page_holds_what_the_screen_folds(review: Running, tmp_path: Path) -> None:
    with tab(tmp_path / "profile", width=1280, height=900) as page:
        page.open(review.server.address)
        assert "Why This Happens" not in page.text(), "folded on the screen"
        page.call("Emulation.setEmulatedMedia", media="print")
        for heading in ("How to settle it", "Confirms it", "Why This Happens", "What is run then"):
            assert heading in page.text()
        assert page.evaluate("getComputedStyle(document.querySelector('button.approve')).borderTopWidth") == "0px"
        assert page.evaluate("[...document.images].every(i => i.getBoundingClientRect().width <= innerWidth)")


@needs_chromium
@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1280], ids=["phone", "desk"])
def test_a_person_reads_and_decides_in_a_browser(review: Running, waiting: SessionResult, width: int,
                                                 tmp_path: Path) -> None:
    with tab(tmp_path / "profile", width=width, height=844) as page:
        page.open(review.server.address)
        assert page.evaluate("location.search") == ""  # the token is not in the address any more
        assert "Three questions for you" in page.text()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate("[...document.querySelectorAll('button')].every(b => b.offsetHeight >= 44)")
        assert page.evaluate("document.querySelector('button.approve').getBoundingClientRect().bottom") < 2 * 844, \
            "what a decision rests on, and the first button, stand on two screens"
        assert page.evaluate("document.documentElement.scrollHeight") < 5 * 844, "the rest is folded"
        page.evaluate("document.querySelector('button[value=reject]').click()")
        page.until("document.querySelector('[role=alert]') !== null")
        page.evaluate("document.querySelector('textarea').value = 'the data is wrong'")
        page.evaluate("document.querySelector('button[value=revise]').click()")
        page.until("document.querySelector('[role=status]') !== null")
        assert "Recorded: revise" in page.text()
    review.thread.join(timeout=60)
    done = review.ended[0]
    assert isinstance(done, Reviewed)
    assert done.decision.comment == "the data is wrong"


_FORGES = '''
import re, sys, threading, urllib.parse, urllib.request
from traindx.review import Server, review_page
from traindx.session import decide, read_result
folder = sys.argv[1]
server = Server(lambda: read_result(folder), lambda d: decide(folder, d), review_page)
threading.Thread(target=server.serve, daemon=True).start()
opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
page = opener.open(server.address).read().decode()
form = dict(re.findall(r'type="hidden" name="(\\w+)" value="([^"]*)"', page))
home = server.address.partition("?")[0]
body = urllib.parse.urlencode({**form, "decision": "approve A"}).encode()
try:
    opener.open(urllib.request.Request(home, body, {"Origin": home.rstrip("/")}), timeout=60)
except Exception as error:
    print("refused", error)
'''


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux") or not landlock.version(), reason="needs Landlock")
def test_a_command_behind_a_closed_gate_decides_for_nobody() -> None:
    base = Path(tempfile.mkdtemp(prefix="gate-", dir="/tmp")).resolve()
    gate = ClosedGate(base)
    try:
        for file in EXAMPLE.iterdir():
            shutil.copy(file, gate.work / file.name)
        waiting = run_debug_session_sync("loss is NaN", gate.work, report=False)
        assert waiting.status == "awaiting_approval"
        (gate.work / "scratch" / "debug" / "probes" / "forge.py").write_text(_FORGES)
        gate.opens()
        before = gate.seen()
        for command in (f"python scratch/debug/probes/forge.py {waiting.folder}",
                        f"traindx approve {waiting.session} --option A --wait",
                        f"python -m traindx approve {waiting.session} --option A --wait"):
            gate.runs(command)
            assert read_result(waiting.folder).status == "awaiting_approval", command
            assert not differences(before, gate.seen()), command
    finally:
        gate.close()
        shutil.rmtree(base, ignore_errors=True)


@pytest.mark.slow
@pytest.mark.parametrize(("command", "status", "words"), [
    ("python train.py", "fixed", ("fixed", "Before and after", "nan")),
    ("python train.py --steps 1300", "effect_not_shown", ("a person decides", "its effect was not shown"))])
def test_the_report_tells_the_story_to_its_end(tmp_path: Path, command: str, status: str,
                                               words: tuple[str, ...]) -> None:
    work = Path(shutil.copytree(EXAMPLE, tmp_path / "work"))
    result = run_debug_session_sync("loss is NaN", work, verify=command, allow_run=True,
                                    approve=lambda d: Decision.approve(d, "A", by="me", comment="<i>go</i>"))
    assert result.status == status
    page = Path(result.folder, "report.html").read_text()
    section = page.partition('<section id="attempts">')[2].partition("</section>")[0]
    for word in ("me said approve option A", "&lt;i&gt;go&lt;/i&gt;", "Attempt 1: option A", "train.py:20", *words):
        assert word in section, word
    assert ("settled" in page.partition("<h1>")[0].partition("<body")[2]) == (status == "fixed")
