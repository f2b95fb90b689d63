"""The review page says what a decision does, follows the session to its result, and lets the same person in again."""

from __future__ import annotations

import contextlib
import http.client
import re
import threading
import urllib.parse
from pathlib import Path

import pytest
from chromium_here import needs_chromium, tab
from scripted import Scripted, approve, diagnosis, examined, fix, replace_line

from traindx.model import Decision, Instruction, Verify
from traindx.place_words import one_and_also
from traindx.review import Form, Server, Undecided, review_page
from traindx.review import server as serving
from traindx.review.plan import plan_of
from traindx.session import decide, read_result, resume_session_sync, run_debug_session_sync
from traindx.session_result import SessionResult

GOOD = "echo step 1 loss 0.5; grep -q 'learning_rate = 0.1' train.py"
BY_HAND = fix(option="B", summary="Scale it", instructions=[
    Instruction(path="train.py", line=7, end_line=7, text="divide by ten"),
    Instruction(path="other.py", line=1, end_line=1, text="and here")])


def waiting(workspace: Path, **options: object) -> SessionResult:
    both = diagnosis(fix(replace_line("learning_rate = 0.1")), BY_HAND)
    return run_debug_session_sync("x", workspace, investigator=Scripted([both]), examine=examined, report=False,
                                  **{"verify": GOOD, "allow_run": True, **options})


class Browser:
    """What a browser sends to a review."""

    def __init__(self, server: Server) -> None:
        self.server, self.cookie = server, ""

    def ask(self, path: str = "/", form: dict[str, str] | None = None) -> tuple[int, str]:
        host = f"127.0.0.1:{self.server.port}"
        made = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)
        sent = {"Host": host, "Origin": f"http://{host}", "Cookie": self.cookie}
        made.request("GET" if form is None else "POST", path, urllib.parse.urlencode(form) if form else None, sent)
        answer = made.getresponse()
        text = answer.read().decode()
        self.cookie = (answer.headers["Set-Cookie"] or self.cookie).partition(";")[0]
        made.close()
        return answer.status, text

    def open(self) -> int:
        return self.ask(self.server.address.partition(str(self.server.port))[2])[0]


def served(result: SessionResult, **options: object) -> tuple[Server, threading.Thread]:
    server = Server(lambda: read_result(result.folder), lambda d: decide(result.folder, d), review_page, **options)

    def serve() -> None:
        with contextlib.suppress(Undecided):
            server.serve()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    return server, thread


def test_the_page_says_what_each_decision_does(workspace: Path) -> None:
    result = waiting(workspace, verify={"command": GOOD, "timeout": 600})
    plan = plan_of(result)
    assert plan is not None
    first, second = plan.options["A"], plan.options["B"]
    assert first[0] == f"Changes 1 line at train.py:4 in {workspace}, as the diff above shows."
    assert first[1].startswith(f"Then runs `{GOOD}` in {workspace}: first on the unfixed code in a copy ")
    assert "then once with the change. Each run may take 10 min at most" in first[1]
    assert first[2] == "Where it fails or shows no effect, the change is taken back and counts as one strike."
    assert "Changes nothing by itself" in second[0]
    assert "at train.py:7, also other.py:1. Then" in second[0]
    page = review_page(result, Form("s"))
    assert "Changes 1 line at train.py:4" in page
    assert "The cause above (" in page
    assert "is not proposed again in this session, and another one is looked for" in page


@pytest.mark.parametrize(("terms", "said"), [
    ({"verify": None}, "Nothing is run: there is no command that verifies it"),
    ({"allow_run": False}, "is not run without your consent"),
    ({"verify": Verify(command=GOOD, baseline=False)}, "once with the change. Each run may take 30 min"),
    ({"verify": Verify(command=GOOD, runs=3, timeout=90)}, "then 3 times with the change. Each run may take 90 s")])
def test_what_is_run_is_said_as_it_was_agreed(workspace: Path, terms: dict[str, object], said: str) -> None:
    plan = plan_of(waiting(workspace, **terms))
    assert plan is not None
    assert any(said in sentence for sentence in plan.options["A"]), plan.options["A"]


def test_a_session_that_cannot_be_read_has_no_plan_and_its_page_stands(workspace: Path) -> None:
    result = waiting(workspace)
    (Path(result.folder) / "journal.jsonl").write_text("no journal\n")
    assert plan_of(result) is None
    assert "Approve A" in review_page(result, Form("s"))


@needs_chromium
@pytest.mark.slow
def test_a_browser_asks_again_by_itself_until_the_result_is_there(workspace: Path, tmp_path: Path) -> None:
    result = waiting(workspace)
    server, thread = served(result, follows=True)
    with tab(tmp_path / "profile", width=390) as page:
        page.open(server.address)
        page.evaluate("document.querySelector('button[value=\"approve A\"]').click()")
        page.until("document.querySelector('meta[http-equiv=refresh]') !== null")
        thread.join(60)
        with server.following():
            done = resume_session_sync(result.folder, investigator=Scripted([]), report=False, examine=examined)
            page.until("document.body !== null && document.body.innerText.includes('Fixed:')")
    assert done.status == "fixed", done.reason


def test_each_look_has_an_address_of_its_own(workspace: Path) -> None:
    result = waiting(workspace)
    server, thread = served(result, follows=True)
    browser = Browser(server)
    browser.open()
    hidden = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', browser.ask()[1]))
    pages = [browser.ask(form={**hidden, "decision": "approve A", "comment": ""})[1]]
    thread.join(60)
    with server.following():
        pages += [browser.ask()[1] for _ in range(2)]
    assert len({p.partition("url=")[2][:20] for p in pages}) == 3


def test_after_the_decision_the_page_follows_to_the_result(workspace: Path) -> None:
    result = waiting(workspace)
    server, thread = served(result, follows=True)
    browser = Browser(server)
    browser.open()
    hidden = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', browser.ask()[1]))
    code, page = browser.ask(form={**hidden, "decision": "approve A", "comment": ""})
    thread.join(60)
    assert code == 200
    assert "Recorded: approve option A." in page
    assert '<meta http-equiv="refresh" content="2; url=/?look=1#decide">' in page
    seen: list[str] = []

    def hear(notice: object) -> None:
        if notice.kind == "said" and "unfixed code" in notice.text:
            seen.append(browser.ask()[1])

    with server.following():
        done = resume_session_sync(result.folder, investigator=Scripted([]), hear=hear, report=False,
                                   examine=examined)
        last: list[str] = []
        looks = threading.Timer(0.1, lambda: last.append(browser.ask()[1]))
        looks.start()
    looks.join()
    assert done.status == "fixed", done.reason
    assert "runs on the unfixed code, in a copy, since 0 s." in seen[0].replace("</code>", "`").replace("<code>", "`")
    assert 'http-equiv="refresh"' in seen[0]
    assert 'http-equiv="refresh"' not in last[0]
    assert "<strong>Fixed:</strong>" in last[0]
    assert "The change stands in <code>train.py:4</code> in " in last[0]
    with pytest.raises(ConnectionError):
        browser.ask()


def hidden_in(page: str) -> dict[str, str]:
    return dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', page))


def test_after_a_revision_the_page_goes_on_to_the_next_diagnosis_and_its_form(workspace: Path) -> None:
    result = waiting(workspace)
    server, thread = served(result, follows=True)
    browser = Browser(server)
    browser.open()
    first = hidden_in(browser.ask()[1])
    another = diagnosis(fix(replace_line("learning_rate = 0.2")), BY_HAND)
    code, page = browser.ask(form={**first, "decision": "revise", "comment": "it began with the new data"})
    thread.join(60)
    assert code == 200
    assert "Recorded: revise." in page
    assert "no process drives" not in page
    with server.following():
        between = browser.ask()[1]
        assert "no process drives" not in between
        assert "nothing is called a cause" not in between, "it is looked again: that is no verdict"
        assert "Best hypothesis so far" not in between
        again = resume_session_sync(result.folder, investigator=Scripted([another]), report=False,
                                    examine=examined)
        arrived = browser.ask()[1]
        assert browser.ask(form={**first, "decision": "approve A"})[0] == 200, "a second click decides nothing"
    assert again.status == "awaiting_approval"
    assert 'http-equiv="refresh"' in arrived, "the form comes with the next look"
    taker = threading.Thread(target=server.serve, daemon=True)
    taker.start()
    page = browser.ask()[1]
    second = hidden_in(page)
    assert "Approve B" in page
    assert second["digest"] != first["digest"]
    assert browser.ask(form={**first, "decision": "approve A"})[0] == 403, "the form of the old page is out"
    assert "Recorded: approve option B." in browser.ask(form={**second, "decision": "approve B", "comment": ""})[1]
    taker.join(60)
    with server.following():
        pass


def test_where_nobody_looks_nobody_is_waited_for(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "LAST_LOOK", 1000.0)
    result = waiting(workspace)
    server, thread = served(result, follows=True)
    server._decided = serving.Reviewed(approve()(result.diagnosis), result)
    server.close()
    thread.join(60)
    with server.following():
        pass


def test_the_same_browser_opens_its_address_again_and_another_is_told_what_to_type(workspace: Path) -> None:
    said: list[str] = []
    result = waiting(workspace)
    server, thread = served(result, say=said.append, anew="traindx review S --workspace /w")
    browser, other = Browser(server), Browser(server)
    assert browser.open() == 303
    assert browser.open() == 303, "a reload of the address"
    assert browser.ask()[0] == 200
    assert said == []
    assert other.ask()[0] == 403
    code, page = other.ask(server.address.partition(str(server.port))[2])
    assert code == 403
    assert "<code>traindx review S --workspace /w</code>" in page
    assert len(said) == 1
    server.close()
    thread.join(60)


def test_places_are_named_one_first() -> None:
    assert one_and_also([]) == ""
    assert one_and_also(["a.py:3", "a.py:3"]) == "a.py:3"
    assert one_and_also(["a.py:3", "b.py:1", "c.py:2"]) == "a.py:3, also b.py:1 and c.py:2"
    assert one_and_also([f"a.py:{n}" for n in range(9)]).endswith("a.py:4 and 4 more")
    assert one_and_also(["a.py:3"], "a.py:9") == "a.py:3 (for the fault at a.py:9)"
    assert one_and_also(["a.py:3"], "a.py:3") == "a.py:3"


def test_while_the_session_goes_on_nobody_is_told_to_resume_it_and_its_end_stands_first(workspace: Path) -> None:
    result = waiting(workspace)
    decided = decide(result.folder, Decision(verdict="approve", diagnosis_digest=result.digest, option="A"))
    going = review_page(decided, Form(secret="s", recorded="approve option A", follows=True))
    assert "traindx resume" not in going
    assert '<p class="outcome">' not in going
    assert "traindx resume" in review_page(decided, Form(secret="s", recorded="approve option A"))
    done = resume_session_sync(result.folder, investigator=Scripted([]), report=False, examine=examined)
    head = review_page(done, Form(secret="s", recorded="approve option A")).partition("<main>")[0]
    assert done.attempts[0].verification.reasons[0] in head
    assert "Option A:" in head
