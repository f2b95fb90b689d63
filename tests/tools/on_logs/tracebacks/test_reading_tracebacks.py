"""Tracebacks in the notations in which logs hold them: every one must give type, message and the user's line."""

from __future__ import annotations

from pathlib import Path

import pytest

from traindx_tools.on_logs.run import ErrorEvent
from traindx_tools.on_logs.tracebacks import read_errors

ERRORS = Path(__file__).parents[3] / "fixtures" / "errors"


def read(name: str) -> tuple[ErrorEvent, ...]:
    return read_text((ERRORS / name).read_text())


def read_text(text: str) -> tuple[ErrorEvent, ...]:
    return read_errors(enumerate(text.splitlines(), 1), "log.txt")


@pytest.mark.parametrize(
    ("name", "type_", "message", "file", "line"),
    [
        ("tqdm_glued", "RuntimeError", "mat1 and mat2 shapes cannot be multiplied (16x300 and 256x128)",
         "/srv/app/engine.py", 19),
        ("logging_prefix", "KeyError", "'labels'", "/srv/app/train.py", 31),
        ("jupyter_new", "RuntimeError", "mat1 and mat2 shapes cannot be multiplied (3x7 and 8x2)", "~/speech/nets.py",
         12),
        ("jupyter_old", "IndexError", "index out of range in self", "<ipython-input-12-3c1f0a2b9d11>", 4),
        ("rich_box", "RuntimeError",
         "Sizes of tensors must match except in dimension 0. Expected size 8 but got size 4 for "
         "tensor number 1 in the list.", "/srv/app/train.py", 41),
        ("ansi_colours", "ZeroDivisionError", "division by zero", "/srv/app/train.py", 7),
    ],
)
def test_one_exception_in_each_notation(name: str, type_: str, message: str, file: str, line: int) -> None:
    (event,) = read(f"formats/{name}.log")
    assert (event.type, event.message) == (type_, message)
    assert event.user_frame is not None
    assert (event.user_frame.file, event.user_frame.line) == (file, line)


def test_interleaved_ranks_are_one_event_with_both_ranks() -> None:
    (event,) = read("formats/interleaved_ranks.log")
    assert (event.count, event.ranks) == (2, (0, 1))
    assert event.user_frame is not None
    assert event.user_frame.code == "model(x)"


@pytest.mark.parametrize(
    ("name", "root_type", "root_message", "root_line"),
    [
        ("formats/ray_task.log", "ValueError", "fold 3 holds no positives", 14),
        ("formats/remote_traceback.log", "KeyError", "'ghost'", 8),
        ("chained.log", "IndexError", "list index out of range", 12),
        ("worker_keyerror.log", "KeyError", "32", 20),
        ("gloo_timeout.log", "RuntimeError", None, 14),
        ("exception_group.log", "ValueError", "shard 3 is empty", None),
    ],
)
def test_the_root_of_a_chain_is_found(name: str, root_type: str, root_message: str | None,
                                      root_line: int | None) -> None:
    root = read(name)[0].root
    assert root.type == root_type
    assert root_message is None or root.message == root_message
    assert (root.user_frame.line if root.user_frame else None) == root_line


def test_a_chain_of_three() -> None:
    block = 'Traceback (most recent call last):\n  File "a.py", line {0}, in f\n    x()\nValueError: {0}\n\n{1}\n'
    text = "\n".join(block.format(n, link)
                     for n, link in ((1, "During handling of the above exception, another exception occurred:"),
                                     (2, "The above exception was the direct cause of the following exception:"),
                                     (3, "")))
    (event,) = read_text(text)
    assert event.cause is not None
    assert (event.message, event.cause.message, event.root.message) == ("3", "2", "1")


def test_other_exceptions_of_a_group_are_events_of_their_own() -> None:
    assert [e.type for e in read("exception_group.log")] == ["ExceptionGroup", "OSError"]


def test_paragraphs_of_a_jax_message_belong_to_it_and_its_trailer_does_not() -> None:
    (event,) = read("jax_carry_dtype.log")
    assert "s['hits'] has type int32[]" in event.message
    assert event.message.endswith("output types match the corresponding input types.")
    assert "JAX has removed" not in event.message


def test_a_syntax_error_has_no_header() -> None:
    (event,) = read("syntax_error.log")
    assert event.type == "SyntaxError"
    assert event.user_frame is not None
    assert event.user_frame.line == 2


def test_a_logged_exception_ends_where_training_goes_on() -> None:
    (event,) = read("caught_and_logged.log")
    assert event.message == "Target 6 is out of bounds."
    assert event.lines_after > 200


def test_the_same_error_a_hundred_times_is_one_event() -> None:
    block = 'Traceback (most recent call last):\n  File "a.py", line 3, in f\n    g()\nValueError: x\nstep {} loss 1\n'
    (event,) = read_text("".join(block.format(i) for i in range(100)))
    assert (event.count, event.line, event.last_line) == (100, 1, 499)


def test_device_asserts_are_counted_even_inside_a_traceback() -> None:
    kinds = {e.type: e for e in read("gpu/assert_label_interleaved.log")}
    assert kinds["CudaAssert"].count == 3
    assert "Loss.cu:250" in kinds["CudaAssert"].message
    assert kinds["RuntimeError"].message.startswith("CUDA error: device-side assert triggered")


def test_library_frames_are_told_from_the_users() -> None:
    (event,) = read("matmul_shapes.log")
    assert [f.library for f in event.frames] == [False, False, True, True, True]


@pytest.mark.parametrize(
    ("file", "library"),
    [
        ("/home/u/jax/train.py", False), ("/home/u/torch_project/nn/model.py", False), ("train.py", False),
        ("/tmp/ipykernel_41/7.py", False), ("<stdin>", False), ("C:\\proj\\lib\\train.py", False),
        ("/opt/conda/lib/python3.10/site-packages/torch/nn/modules/module.py", True), ("<frozen runpy>", True),
        ("/usr/lib/python3.10/threading.py", True), ("C:\\Python310\\lib\\runpy.py", True),
        ("/usr/local/lib/python3.10/dist-packages/x.py", True), ("/opt/pytorch/torch/nn/modules/linear.py", True),
        ("/opt/conda/bin/torchrun", True),
    ],
)
def test_whose_file(file: str, library: bool) -> None:
    (event,) = read_text(f'Traceback (most recent call last):\n  File "{file}", line 3, in f\n    g()\nValueError: x')
    assert event.frames[0].library is library


def test_the_interpreters_crash_gives_the_current_threads_frames_innermost_last() -> None:
    (event,) = read("segfault.log")
    assert event.type == "SegmentationFault"
    assert [f.line for f in event.frames] == [6, 5]


def test_a_native_exception_has_its_own_message() -> None:
    event = next(e for e in read("gpu/nccl_timeout.log") if e.type == "c10::DistBackendError")
    assert event.message.startswith("[PG ID 0 PG GUID 0(default_pg) Rank 0] Process group watchdog")


def test_an_ignored_exception_is_no_fault() -> None:
    text = ("Exception ignored in: <function _MultiProcessingDataLoaderIter.__del__ at 0x7f>\nTraceback (most recent "
            "call last):\n"
            '  File "/usr/lib/python3.10/site-packages/torch/utils/data/dataloader.py", line 3, in __del__\n    '
            'self.x()\n'
            "AttributeError: x\nException ignored in: <_io.TextIOWrapper name='<stdout>' mode='w' encoding='utf-8'>\n"
            "BrokenPipeError: [Errno 32] Broken pipe\n")
    assert [(e.kind, e.type) for e in read_text(text)] == [("warning", "AttributeError")]


def test_two_processes_that_write_into_each_other_give_one_error() -> None:
    lines = ["Traceback (most recent call last):", '  File "a.py", line 3, in f', "    g()", "ValueError: bad row"]
    (event,) = read_text("\n".join(line for line in lines for _ in range(2)))
    assert (event.type, event.message) == ("ValueError", "bad row")


def test_a_cut_traceback_is_said_to_be_cut() -> None:
    (event,) = read_text('Traceback (most recent call last):\n  File "a.py", line 3, in f\n    g(')
    assert event.type == "TracebackCut"
    assert event.user_frame is not None


@pytest.mark.parametrize(
    "line",
    [
        "error: 0.12", "val_error: 0.31", "train error 0.3", "ValidationError: 0.12", "ReconstructionError: mean 0.3",
        "killed 3 stale workers", "timeout: 30 s", "exit code 0", "assertion checks: on", "nan_steps: 0",
        "RuntimeErrorRate: 0.3", "process exited with exit code 0", "loss_error=nan", "   ValueError handling is on",
        "WARNING: learning rate is small", "E external/local_xla/xla/cuda_fft.cc:477] Unable to register cuFFT factory",
        "Aborted 0 runs", "ERROR: 0 files skipped", "Killed processes: 0", "exit status 1374 lines",
        "eval step 137 exit 9", "max error 137", "Fatal errors so far: 0", "SIGTERM handler installed",
    ],
)
def test_ordinary_words_are_no_errors(line: str) -> None:
    assert read_text(line) == ()


@pytest.mark.parametrize(
    ("line", "type_"),
    [
        ("Killed", "Killed"),
        ("/job/run.sh: line 9:  4711 Killed                  python train.py", "Killed"),
        ("Command exited with exit code 137", "Killed"),
        ("[812345.1] Out of memory: Killed process 4711 (python) total-vm:9kB", "OomKiller"),
        ("slurmstepd: error: Detected 1 oom-kill event(s) in StepId=7.0 cgroup.", "OomKiller"),
        ("      reason: OOMKilled", "OomKiller"),
        ("Segmentation fault (core dumped)", "SegmentationFault"),
        ("slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-01-01T00:00:00 DUE TO TIME LIMIT ***", "TimeLimit"),
        ("RuntimeError: CUDA error: device-side assert triggered", "RuntimeError"),
        ("2026-01-01 00:00:00 ERROR batch 7 failed: ValueError: bad row", "ValueError"),
        ("KeyboardInterrupt", "KeyboardInterrupt"),
    ],
)
def test_single_lines_that_are_errors(line: str, type_: str) -> None:
    assert [e.type for e in read_text(line)] == [type_]
