"""`traindx jaxpr`: a traced function in few lines, with what deserves a look; bad input is said in a line."""

from __future__ import annotations

import json
import subprocess
import sys
from textwrap import dedent

import pytest

jax = pytest.importorskip("jax")
jnp = jax.numpy

from traindx import cli  # noqa: E402
from traindx.commands import jaxpr  # noqa: E402
from traindx_tools.errors import BadUsage  # noqa: E402
from traindx_tools.on_jax.summary import arguments, summarise  # noqa: E402
from traindx_tools.on_jax.summary import program as child  # noqa: E402

FAULTY = """
import jax, jax.numpy as jnp
print("the module prints")

def loss(params, x, y, key):
    h = jnp.tanh(x @ params["w1"])
    noise = jax.random.normal(key, h.shape)
    drop = jax.random.bernoulli(key, 0.9, h.shape)
    z = jnp.round(x @ params["enc"]) * drop
    def body(carry, row):
        return jnp.tanh(carry @ params["w2"] + row), None
    last, _ = jax.lax.scan(body, h[0], h + noise)
    p = jax.nn.sigmoid(last.sum() + z.sum())
    return -(y * jnp.log(p)).mean()

if __name__ == "__main__":
    raise SystemExit("the training ran")
"""
TYPES = "{'w1': f32[4,8], 'w2': f32[8,8], 'enc': f32[4,8]}, f32[16,4], f32[16], key"


@pytest.fixture
def in_this_process(monkeypatch):
    """What the process of its own would say: each of them takes three seconds to import JAX before it says anything."""

    def run(words, folder, **_):
        said = []
        monkeypatch.setattr(sys, "path", [*sys.path])
        child.answer(words[words.index("-m") + 2:], said.append)
        return subprocess.CompletedProcess(words, 0, "\n".join(map(json.dumps, said)), "")

    started = subprocess.run
    monkeypatch.setattr(jaxpr.subprocess, "run", lambda words, **given: (
        run(words, None) if sys.executable in words else started(words, **given)))
    before = set(sys.modules)
    yield
    for name in {"model", "losses"} - before:
        sys.modules.pop(name, None)


@pytest.fixture
def program(tmp_path):
    file = tmp_path / "model.py"
    file.write_text(dedent(FAULTY))
    return file


@pytest.mark.slow
def test_a_faulty_loss_is_summarised_with_its_lines_keys_and_gradients(program, capsys):
    assert cli.run(["jaxpr", f"{program}:loss", "--args", TYPES, "--gradient", "--run"]) == 1
    said = capsys.readouterr().out
    assert "params['w1'] float32[4,8]" in said
    assert "model.py:12  scan x16, carry float32[8]:" in said
    assert "model.py:11  dot_general, add, tanh" in said
    assert "(no line)" not in said
    assert "J201 high" in said
    assert "J301 high: loss: params['enc'] cannot receive a gradient" in said
    assert "model.py:14 log: a value that is 0 gives -inf" in said
    assert "the module prints" not in said


def test_json_holds_the_same(program, capsys):
    assert cli.run(["jaxpr", f"{program}:loss", "--args", TYPES, "--run", "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert said["function"] == "loss"
    assert [f["rule"] for f in said["findings"]] == ["J201"]
    assert len(said["inputs"]) == 6


def test_a_guarded_function_has_nothing_to_look_at():
    def fine(x):
        return -jnp.log(jnp.maximum(x, 1e-6)).mean() + (x / (1.0 + x * x)).sum()

    seen = summarise(fine, arguments("f32[8]"), gradient=True)
    assert seen.findings == ()
    assert seen.look == ()
    assert seen.equations > 3


def test_the_logarithm_of_a_sum_of_exponentials_is_guarded_and_its_unused_sign_cuts_nothing():
    def fine(x):
        return jax.nn.logsumexp(x, axis=-1).mean()

    def magnitude(x):
        return jnp.log(jnp.abs(x)).mean() + jnp.sign(x).sum()

    assert summarise(fine, arguments("f32[8,3]")).look == ()
    log, sign = summarise(magnitude, arguments("f32[8]")).look
    assert " log: a value that is 0 gives -inf" in log
    assert sign.endswith("sign has no gradient")


@pytest.mark.parametrize(("words", "message"), [
    (["model.py:loss"], "executes it: say so with --run"),
    (["model.py:nothing", "--run"], "has no nothing; it defines loss"),
    (["model.py", "--run"], "expected FILE:FUNCTION"),
    (["model.py:loss", "--run"], "could not be traced: TypeError"),
    (["model.py:loss", "--run", "--args", "f32[a]"], "cannot read the shape of f32"),
    (["model.py:loss", "--run", "--args", "f9[3]"], "is no dtype"),
    (["model.py:loss", "--run", "--args", "(("], "cannot read the arguments"),
    (["model.py:loss", "--run", "--args", "__import__('os')"], "cannot read"),
    (["model.py:loss", "--run", "--python", "/does/not/exist"], "cannot start"),
])
def test_bad_input_is_said_with_what_to_do(program, in_this_process, capsys, monkeypatch, words, message):
    monkeypatch.chdir(program.parent)
    assert cli.run(["jaxpr", *words]) == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert "Traceback" not in shown.err + shown.out


def test_a_module_that_fails_or_never_ends_is_told(tmp_path, capsys):
    broken, endless = tmp_path / "broken.py", tmp_path / "endless.py"
    broken.write_text("import does_not_exist_anywhere\n")
    endless.write_text("while True:\n    pass\n")
    assert cli.run(["jaxpr", f"{broken}:f", "--run"]) == 2
    assert "ModuleNotFoundError" in capsys.readouterr().err
    assert cli.run(["jaxpr", f"{endless}:f", "--run", "--timeout", "1"]) == 2
    assert "did not end within 1 s" in capsys.readouterr().err


def test_arguments_are_types_values_and_keys():
    made = arguments("f32[2,3], bf16, (i32[4], 0.5), 'text', True")
    assert made[0].shape == (2, 3)
    assert made[1].shape == ()
    assert made[2][1] == 0.5
    assert made[3:] == ("text", True)
    assert arguments("") == ()
    assert [a.shape for a in arguments("f32[], (i32[ ], f32[2])")[1]] == [(), (2,)]
    with pytest.raises(BadUsage, match="neither a dtype nor"):
        arguments("weights")


LOSSES = """
import os, sys
import jax, jax.numpy as jnp

def cut(params, x):
    h = jax.lax.stop_gradient(jnp.tanh(x @ params["enc"]))
    return ((h @ params["dec"] - x) ** 2).mean(), h

def whole(params, x):
    return ((x @ params["enc"] @ params["dec"] - x) ** 2).mean()

def rest(params, x):
    return (x @ params["enc"]).sum()

def tokens(ids, table):
    return (table[ids] ** 2).mean()

def step(params, x):
    return params, x.sum()

def leaves_at_once(x):
    os._exit(5)

def gives_up(x):
    sys.exit("no data")

def crashes(x):
    os.abort()

os.write(1, b"a line of the module's own\\n")
"""
WEIGHTS = "{'enc': f32[4,3], 'dec': f32[3,4]}, f32[8,4]"


@pytest.fixture
def losses(tmp_path):
    file = tmp_path / "losses.py"
    file.write_text(dedent(LOSSES))
    return file


@pytest.mark.parametrize(("function", "types", "line"), [
    ("cut", WEIGHTS, "gradient 1 of 2 float inputs of params get one; none reaches params['enc']: ends at "
                     "stop_gradient at losses.py:6"),
    ("whole", WEIGHTS, "gradient 2 of 2 float inputs of params get one"),
    ("rest", WEIGHTS, "gradient 1 of 2 float inputs of params get one; not used params['dec']"),
    ("tokens", "i32[4], f32[9,2]", "gradient a single float comes out: --wrt ARG names what of an argument gets no "
                                   "gradient"),
    ("step", WEIGHTS, None),
])
@pytest.mark.usefixtures("in_this_process")
def test_a_loss_is_recognised_and_one_line_says_what_gets_a_gradient(losses, capsys, function, types, line):
    assert cli.run(["jaxpr", f"{losses}:{function}", "--args", types, "--run"]) == 0
    said = [text for text in capsys.readouterr().out.splitlines() if text.startswith("gradient")]
    assert said == ([line] if line else [])


@pytest.mark.parametrize(("function", "types", "words", "rc"), [
    ("cut", WEIGHTS, ["--gradient"], 1), ("cut", WEIGHTS, ["--wrt", "x"], 0), ("whole", WEIGHTS, ["--gradient"], 0),
    ("whole", WEIGHTS, ["--wrt", "1"], 0), ("tokens", "i32[4], f32[9,2]", ["--wrt", "table"], 0),
    ("tokens", "i32[4], f32[9,2]", ["--wrt", "nothing"], 2), ("tokens", "i32[4], f32[9,2]", ["--wrt", "7"], 2),
])
def test_who_calls_it_a_loss_gets_a_fault(losses, in_this_process, capsys, function, types, words, rc):
    assert cli.run(["jaxpr", f"{losses}:{function}", "--args", types, "--run", *words]) == rc
    shown = capsys.readouterr()
    assert ("J301 high" in shown.out) == (rc == 1)
    assert ("the function has ids, table" in shown.err) == (rc == 2)


@pytest.mark.parametrize(("function", "message"), [
    ("leaves_at_once", "leaves_at_once ended the process with exit code 5 (os._exit?) while it was traced; the last "
                       "line that it printed: a line of the module's own"),
    ("gives_up", "gives_up ended the program while it was traced: SystemExit(no data)"),
    ("crashes", "crashes ended the process with signal 6 (Aborted) while it was traced"),
])
def test_a_function_that_ends_the_process_is_told(losses, capsys, function, message):
    assert cli.run(["jaxpr", f"{losses}:{function}", "--args", "f32[3]", "--run"]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(("text", "message"), [
    ("raise SystemExit(3)", "SystemExit(3): put what starts a program below if __name__"),
    ("import os\nprint('bye', flush=True)\nos._exit(0)", "exit code 0 (os._exit?) while it was imported; the last line "
                                                          "that it printed: bye"),
    ("import os\nos.kill(os.getpid(), 9)", "signal 9 (Killed) while it was imported; the last line that it printed: "
                                           "nothing was printed"),
    ("raise KeyboardInterrupt", "KeyboardInterrupt()"),
])
def test_a_module_that_ends_the_process_is_told(tmp_path, capsys, text, message):
    file = tmp_path / "leaving.py"
    file.write_text(text)
    assert cli.run(["jaxpr", f"{file}:f", "--run"]) == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert "leaving.py" in shown.err
    assert "Traceback" not in shown.err + shown.out


def test_what_a_module_leaves_running_does_not_keep_the_answer(tmp_path, capsys):
    file = tmp_path / "threads.py"
    file.write_text("import atexit, threading\n"
                    "threading.Thread(target=threading.Event().wait).start()\n"
                    "atexit.register(lambda: print('{\"error\": 1}'))\n"
                    "def f(x):\n    return x * 2\n")
    assert cli.run(["jaxpr", f"{file}:f", "--args", "f32[3]", "--run"]) == 0
    assert "mul" in capsys.readouterr().out
