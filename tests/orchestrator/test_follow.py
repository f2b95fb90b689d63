"""`--follow`: findings of a log that grows, each once, none that flickers; what becomes of the file is told."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from traindx import cli
from traindx.diagnose import Report, diagnose
from traindx.follow.alarms import Alarm, alarm_of, run_bounded
from traindx.follow.following import Follower
from traindx.follow.hysteresis import MISSED, SEEN, Hysteresis, News
from traindx.follow.watched import Watched
from traindx_tools.errors import BadUsage
from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.scope import Asked


def finding(rule: str = "L106", statement: str = "loss rises from 1 to 9", line: int = 5,
            severity: Severity = Severity.HIGH) -> Finding:
    return Finding(rule, "Diverges", severity, Bearing.SIGN, statement, Location(file="a.log", line=line, step=line),
                   "a.log")


def kinds(news: Sequence[News]) -> list[tuple[str, str]]:
    return [(n.kind, n.finding.rule) for n in news]


# what is worth a word


def test_what_two_looks_have_is_told_once_however_its_numbers_move() -> None:
    state = Hysteresis()
    looks = [[finding(statement=f"loss rises from 1 to {i} at step {i}", line=i)] for i in range(1, 9)]
    told = [kinds(state.take(look, ["loss"])) for look in looks]
    assert told == [[], [("came", "L106")], *[[]] * 6]


def test_what_flickers_is_never_told() -> None:
    state = Hysteresis()
    assert [n for i in range(40) for n in state.take([finding()] if i % SEEN == 0 else [], ["loss"])] == []


def test_what_is_gone_for_good_is_told_and_never_again() -> None:
    state = Hysteresis()
    looks = [[finding()]] * SEEN + [[]] * (MISSED - 1) + [[finding()]] + [[]] * MISSED + [[finding()]] * 9
    told = [t for look in looks for t in kinds(state.take(look, ["loss"]))]
    assert told == [("came", "L106"), ("gone", "L106")]
    assert state.told == ()


def test_another_metric_rank_or_run_is_another_finding() -> None:
    state = Hysteresis()
    of_loss, of_norm = finding(), finding(statement="grad_norm rises from 1 to 9")
    told = [kinds(state.take([of_loss, of_norm], ["loss", "grad_norm"])) for _ in range(SEEN)]
    assert told[-1] == [("came", "L106")] * 2
    assert [kinds(state.take([of_loss], ["loss"], run=2)) for _ in range(SEEN)][-1][0] == ("came", "L106")


def test_remarks_call_nobody_and_the_worst_comes_first() -> None:
    state = Hysteresis()
    look = [finding("L204", severity=Severity.LOW), finding("L201", severity=Severity.MEDIUM),
            finding("L101", severity=Severity.CRITICAL)]
    assert [kinds(state.take(look)) for _ in range(SEEN)][-1] == [("came", "L101"), ("came", "L201")]


# what becomes of the files


def test_what_happens_to_a_file_is_noticed(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("step 1 loss 2\n")
    watched = Watched([str(log)])
    assert watched.changes() == [(str(log), "written")]
    assert watched.changes() == []
    log.write_text("step 1 loss 2\nstep 2 loss 1\n")
    assert watched.changes() == [(str(log), "written")]
    log.write_text("x")
    assert watched.changes() == [(str(log), "shorter")]
    log.rename(tmp_path / "old")
    log.write_text("another file, longer than the first\n")
    assert watched.changes() == [(str(log), "another")]
    log.unlink()
    assert watched.changes() == [(str(log), "gone")]
    assert not watched.there
    assert watched.changes() == []
    log.write_text("back\n")
    assert watched.changes() == [(str(log), "back")]


def test_new_files_of_a_folder_join(tmp_path: Path) -> None:
    (tmp_path / "rank_0.log").write_text("step 1 loss 2\n")
    watched = Watched([str(tmp_path)])
    watched.changes()
    (tmp_path / "rank_1.log").write_text("step 1 loss 2\n")
    assert watched.changes() == [(str(tmp_path / "rank_1.log"), "written")]


# following


@dataclass
class Said:
    lines: list[str] = field(default_factory=list)

    def remark(self, text: str) -> None:
        self.lines.append(text)

    def news(self, news: News, place: str) -> None:
        self.lines.append(f"{news.kind} {news.finding.rule} {place}")

    def cause(self, claim: str, mode: str, confidence: float) -> None:
        self.lines.append(f"cause {mode}")


@dataclass
class Bench:
    """A follower of one file with a clock of its own: nobody waits."""

    log: Path
    said: Said = field(default_factory=Said)
    called: list[str] = field(default_factory=list)
    now: float = 0.0
    looks: int = 0

    def __post_init__(self) -> None:
        alarm = Alarm(command=("call",), run=self._call)
        self.follower = Follower([str(self.log)], self.look, self.said, alarm, clock=lambda: self.now,
                                 spent=lambda: 0.0)

    def _call(self, command: Sequence[str], data: bytes, told: dict[str, str]) -> str:
        self.called.append(told["TRAINDX_RULE"])
        return ""

    def look(self) -> Report:
        self.looks += 1
        return diagnose([str(self.log)], asked=Asked(code=()))

    def after(self, text: str | None = None, seconds: float = 5.0) -> list[str]:
        """What is said at a look after something was added to the file."""
        if text is not None:
            with self.log.open("a") as file:
                file.write(text)
        self.now += seconds
        before = len(self.said.lines)
        self.follower.once()
        return self.said.lines[before:]


def healthy(start: int, end: int) -> str:
    return "".join(f"step {i} loss {2.5 * 0.99 ** i + 0.3:.4f} grad_norm {1 + i % 3 * 0.1:.3f} lr 1e-3\n"
                   for i in range(start, end))


def broken(start: int, end: int) -> str:
    return "".join(f"step {i} loss nan grad_norm nan lr 1e-3\n" for i in range(start, end))


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    log = tmp_path / "train.log"
    log.write_text(healthy(0, 200))
    return Bench(log)


def test_a_loss_that_becomes_nan_is_told_when_it_is_there_and_once(bench: Bench) -> None:
    assert bench.after() == bench.after(healthy(200, 300)) == []
    assert bench.after(broken(300, 310)) == []
    told = bench.after(broken(310, 320))
    assert told[0].startswith("came L101")
    assert [line for i in range(5) for line in bench.after(broken(320 + i, 321 + i)) if "L101" in line] == []
    assert bench.called == ["L101"]


def test_what_the_last_lines_of_a_run_show_is_told_although_no_more_are_written(bench: Bench) -> None:
    bench.after()
    assert bench.after(broken(200, 230)) == []
    assert bench.after()[0].startswith("came L101")
    looks = bench.looks
    assert [bench.after() for _ in range(5)] == [[]] * 5
    assert bench.looks == looks, "what does not change is not read again"


def test_a_healthy_run_is_silent(bench: Bench) -> None:
    assert [line for i in range(200, 800, 100) for line in bench.after(healthy(i, i + 100))] == []


def test_a_file_that_begins_anew_is_told_anew(bench: Bench) -> None:
    bench.after(broken(200, 230))
    assert bench.after()[0].startswith("came L101")
    bench.log.write_text(healthy(0, 50))
    assert "was cut or written anew" in bench.after()[0]
    bench.after(broken(50, 80))
    assert bench.after()[0].startswith("came L101")


def test_a_log_that_was_rotated_tells_nothing_twice(bench: Bench) -> None:
    """The steps go on behind those of the old file: it is the same run, and a person was called for it already."""
    bench.after(broken(200, 230))
    assert bench.after()[0].startswith("came L101")
    os.rename(bench.log, f"{bench.log}.1")
    bench.log.write_text(broken(230, 260))
    assert "rotated" in bench.after()[0]
    assert [line for i in range(260, 380, 30) for line in bench.after(broken(i, i + 30))] == []
    assert bench.follower._summary() == ("1 finding still there", 1)


def test_a_file_that_vanishes_is_told_once_and_waited_for(bench: Bench) -> None:
    bench.after()
    bench.log.unlink()
    assert "is not there any more" in bench.after()[0]
    assert [bench.after(seconds=1000) for _ in range(3)] == [[]] * 3
    assert "is there again" in bench.after(healthy(0, 50))[0]


def test_a_file_without_anything_to_judge_is_told_once(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("")
    bench = Bench(log)
    assert bench.after()[0].startswith("nothing to judge yet: ")
    assert bench.after("\n") == []
    assert bench.after(healthy(0, 50)) == []


def test_a_long_silence_is_told_once(bench: Bench) -> None:
    for i in range(200, 260, 10):
        bench.after(healthy(i, i + 10))
    assert bench.after(seconds=50) == []
    assert "nothing was written for" in bench.after(seconds=50)[0]
    assert bench.after(seconds=500) == []
    assert "written to again" in bench.after(healthy(260, 270))[0]


def test_a_look_at_a_large_log_is_followed_by_a_rest(bench: Bench) -> None:
    spent = iter(range(0, 1000, 10))
    bench.follower.spent = lambda: float(next(spent))
    bench.after()
    bench.after(healthy(200, 210))
    looks = bench.looks
    bench.after(healthy(210, 220))
    assert bench.looks == looks
    bench.after(healthy(220, 230), seconds=60)
    assert bench.looks == looks + 1


def test_an_interrupt_ends_it_and_the_exit_code_tells(bench: Bench) -> None:
    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    bench.follower.sleep = interrupt
    assert bench.follower.follow() == 0
    assert "nothing was found" in bench.said.lines[-1]
    bench.after(broken(200, 230))
    bench.after()
    assert bench.follower.follow() == 1
    assert "1 finding still there" in bench.said.lines[-1]


def test_a_finding_from_before_a_file_began_anew_is_not_forgotten_at_the_end(bench: Bench) -> None:
    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    bench.follower.sleep = interrupt
    bench.after(broken(200, 230))
    assert bench.after()[0].startswith("came L101")
    bench.log.write_text(healthy(0, 50))
    bench.after()
    assert bench.follower.follow() == 0
    assert "nothing was found since a file began anew; what was told before" in bench.said.lines[-1]


def test_an_interrupt_before_the_first_look_or_before_a_second_says_so(bench: Bench) -> None:
    def interrupt(_: float = 0) -> None:
        raise KeyboardInterrupt

    watched = bench.follower.once
    bench.follower.once = interrupt  # type: ignore[method-assign]
    assert bench.follower.follow() == 3
    assert "nothing was judged yet" in bench.said.lines[-1]
    bench.follower.once = watched  # type: ignore[method-assign]
    bench.follower.sleep = interrupt
    bench.after(broken(0, 30))
    assert bench.follower._findings.waiting
    bench.follower._pending = False
    bench.follower._final = True
    assert bench.follower.follow() == 3
    assert "not yet confirmed" in bench.said.lines[-1]


# calling a person


def test_a_command_gets_the_finding_and_no_shell_reads_it(tmp_path: Path) -> None:
    out = tmp_path / "out"
    script = ("import json, os, sys\n"
              "open(sys.argv[1], 'w').write(json.load(sys.stdin)['rule'] + os.environ['TRAINDX_STATEMENT'])")
    alarm = Alarm(command=(sys.executable, "-c", script, str(out)))
    nasty = finding(statement="loss `touch x` $(touch y); \x1b[31m rises")
    assert alarm.raise_for(nasty, "a.log:5") == []
    assert out.read_text() == "L106loss `touch x` $(touch y);  rises (a.log:5)"


def test_what_fails_is_said_once() -> None:
    alarm = Alarm(command=(sys.executable, "-c", "import sys; sys.exit('broken\\x1b[31m')"))
    assert alarm.raise_for(finding(), "a.log:5") == [f"{sys.executable} ended with 1: broken"]
    assert alarm.raise_for(finding(), "a.log:5") == []


def test_a_command_that_is_none_and_one_that_never_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    for command in ("", "'", "no-such-program-anywhere -x"):
        with pytest.raises(BadUsage, match="--on-finding"):
            alarm_of(False, command)
    monkeypatch.setattr("traindx.follow.alarms.PATIENCE", 0.01)
    assert "took longer" in run_bounded([sys.executable, "-c", "input()" if os.name == "nt" else
                                         "import signal; signal.pause()"], b"", {})


def test_a_notice_gets_title_and_text_as_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    alarm = alarm_of(True, None)
    called: list[Sequence[str]] = []

    def call(command: Sequence[str], data: bytes, told: dict[str, str]) -> str:
        called.append(command)
        return ""

    alarm.run = call
    alarm.raise_for(finding(), "a.log:5")
    assert called == [("notify-send", "--app-name=traindx", "--", "traindx: high, L106",
                       "loss rises from 1 to 9 (a.log:5)")]
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(BadUsage, match="notify-send"):
        alarm_of(True, None)


# as a user


@pytest.mark.parametrize(("arguments", "why"), [
    (["nowhere.log", "--follow"], "there is no file"), (["-", "--follow"], "cannot be followed"),
    (["s3://b/a.log", "--follow"], "cannot be followed"), (["--follow"], "give a log file"),
    ([__file__, "--follow", "--run", "x"], "--run does not go with"), ([__file__, "--notify"], "go with --follow"),
    ([__file__, "--follow", "--out", "x"], "--out does not go with"),
    ([__file__, "--follow", "--every", "0"], "not in the range")])
def test_what_does_not_go_together_is_refused(arguments: list[str], why: str,
                                              capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(("diagnose", *arguments)) == 2
    assert why in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("extra", [(), ("--json",)])
def test_ctrl_c_once_ends_it_cleanly(tmp_path: Path, extra: tuple[str, ...]) -> None:
    log = tmp_path / "train.log"
    log.write_text(healthy(0, 100) + broken(100, 150))
    program = [sys.executable, "-c", "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
               "from traindx.cli import main; main()", "diagnose", str(log), "--follow", "--every", "0.1", *extra]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        first = running.stdout.readline()
        running.send_signal(signal.SIGINT)
        rest, errors = running.communicate(timeout=100)
    assert running.returncode == 1
    assert "Traceback" not in errors + rest
    assert "no longer following: " in errors
    assert (json.loads(first)["finding"]["rule"] == "L101") if extra else ("critical: loss is nan from" in first)
