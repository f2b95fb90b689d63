"""Files, rows, checkpoints, variables, patches and launchers: changed before the start, in the copy alone."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path

import numpy as np
import pytest

from traindx_tools.errors import BadUsage
from traindx_tools.experiments.change import parse_change
from traindx_tools.experiments.interventions import prepare
from traindx_tools.experiments.place import Prepared


def made(change: str, folder: Path, command: str = "python train.py") -> Prepared:
    return prepare(parse_change(change), command, folder)


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    for i in range(4):
        (tmp_path / "data" / f"shard-{i}.csv").write_text(f"x,y\n{i},0\n{i},1\n")
    (tmp_path / "data" / "names.json").write_text("[]")
    (tmp_path / "train.py").write_text("")
    return tmp_path


def test_shards_are_left_out_or_alone(shards: Path) -> None:
    assert made("files-left-out:files=data/shard-[12].csv", shards).files == {"data/shard-1.csv": None,
                                                                               "data/shard-2.csv": None}
    assert sorted(made("files-alone:files=data/shard-1.csv", shards).files) == [f"data/shard-{i}.csv"
                                                                                for i in (0, 2, 3)]
    assert sorted(made("files-alone:files=data/shard-1.csv,among=data/shard-[01].csv", shards).files) == [
        "data/shard-0.csv"]


@pytest.mark.parametrize(("change", "said"), [
    ("files-left-out:files=nothing*", "no file below"),
    ("files-alone:files=data/names.json", "alone already"),
    ("rows-alone:file=data/shard-0.csv,from=5,to=9", "has 2 rows"),
    ("rows-left-out:file=data/shard-0.csv,from=0,to=9", "none would be left"),
    ("rows-left-out:file=data/shard-0.csv,from=2,to=1", "lies behind"),
    ("rows-left-out:file=train.py,from=0,to=1", "expected one of"),
    ("data-from:folder=elsewhere,files=*", "is no folder"),
    ("checkpoint-from:file=none.pt,place=a.pt", "is no file"),
    ("checkpoint-from:file=train.py,place=../a.pt", "outside of the workspace"),
    ("patch:file=none.diff", "cannot be read"),
    ("patch:file=train.py", "changes no file"),
    ("env:A B=1", "no name of an environment variable"),
    ("env:PYTHONPATH=1", "how the instruments"),
    ("single-process", "one process by itself"),
])
def test_what_cannot_be_done_says_why(shards: Path, change: str, said: str) -> None:
    with pytest.raises(BadUsage) as error:
        made(change, shards)
    assert said in str(error.value)


def _npy(array: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


@pytest.mark.parametrize(("name", "before", "after"), [
    ("a.csv", b'x,y\n1,a\n2,"b\nc"\n3,d\n', b"x,y\n1,a\n3,d\n"),
    ("a.csv", b"1,a\r\n2,b\r\n3,c\r\n", b"1,a\r\n3,c\r\n"),
    ("a.tsv", b"x\ty\n1\t2\n3\t4\n5\t6\n", b"x\ty\n1\t2\n5\t6\n"),
    ("a.jsonl", b'{"a": 1}\n{"a": 2}\n{"a": 3}', b'{"a": 1}\n{"a": 3}'),
    ("a.txt", b"one\ntwo\nthree\n", b"one\nthree\n"),
    ("a.json", b"[1, 2, 3]", b"[1, 3]"),
    ("a.json", b'{"version": 2, "data": [1, 2, 3]}', b'{"version": 2, "data": [1, 3]}'),
    ("a.npy", _npy(np.arange(6).reshape(3, 2)), _npy(np.array([[0, 1], [4, 5]]))),
])
def test_rows_are_left_out_in_the_form_of_the_file(tmp_path: Path, name: str, before: bytes, after: bytes) -> None:
    (tmp_path / name).write_bytes(before)
    assert made(f"rows-left-out:file={name},from=1,to=1", tmp_path).files == {name: after}
    assert (tmp_path / name).read_bytes() == before


def test_rows_of_arrays_that_go_together_and_of_packed_files(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.arange(8).reshape(4, 2), y=np.arange(4), classes=np.array(["a", "b"]))
    found = np.load(io.BytesIO(made("rows-alone:file=a.npz,from=2,to=99", tmp_path).files["a.npz"] or b""))
    assert found["x"].tolist() == [[4, 5], [6, 7]]
    assert found["y"].tolist() == [2, 3]
    assert found["classes"].tolist() == ["a", "b"]
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(b"1\n2\n"))
    packed = made("rows-alone:file=b.jsonl.gz,from=1,to=1", tmp_path).files["b.jsonl.gz"]
    assert gzip.decompress(packed or b"") == b"2\n"


@pytest.mark.parametrize(("name", "content"), [("a.npz", b"PK\3\4 no zip"), ("a.json", b"{"), ("a.npy", b"x"),
                                               ("a.csv", b"\xff\xfe\x00"), ("b.csv.gz", b"no gzip")])
def test_damaged_files_are_named(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(BadUsage, match=f"{name} cannot be read"):
        made(f"rows-left-out:file={name},from=0,to=0", tmp_path)


def test_nothing_is_unpickled(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([{"a": 1}, 2], dtype=object), allow_pickle=True)
    with pytest.raises(BadUsage, match="cannot be read"):
        made("rows-left-out:file=a.npy,from=0,to=0", tmp_path)


def test_data_and_checkpoints_of_another_run(shards: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other")
    (other / "data").mkdir()
    (other / "data" / "shard-0.csv").write_text("x,y\n9,9\n")
    (other / "data" / "shard-1.csv").write_bytes((shards / "data" / "shard-1.csv").read_bytes())
    (other / "last.pt").write_bytes(b"weights")
    assert made(f"data-from:folder={other},files=data/*", shards).files == {"data/shard-0.csv": b"x,y\n9,9\n"}
    with pytest.raises(BadUsage, match="byte for byte"):
        made(f"data-from:folder={other},files=data/shard-1.csv", shards)
    assert made(f"checkpoint-from:file={other / 'last.pt'},place=out/last.pt", shards).files == {
        "out/last.pt": b"weights"}
    (shards / "same.pt").write_bytes(b"weights")
    with pytest.raises(BadUsage, match="byte for byte"):
        made(f"checkpoint-from:file={other / 'last.pt'},place=same.pt", shards)


def test_variables_are_texts(tmp_path: Path) -> None:
    assert made("env:A=1,B=true,C=x y", tmp_path).environment == {"A": "1", "B": "1", "C": "x y"}
    assert made("synchronous", tmp_path).environment["CUDA_LAUNCH_BLOCKING"] == "1"
    prepared = made("deterministic", tmp_path)
    assert prepared.environment["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8"
    assert [c.name for c in prepared.inside] == ["deterministic"]


DIFF = """--- a/train.py
+++ b/train.py
@@ -1,3 +1,3 @@
 one
-two
+zwei
 three
--- /dev/null
+++ b/new.py
@@ -0,0 +1,1 @@
+x = 1
--- a/old.py
+++ /dev/null
@@ -1,1 +0,0 @@
-gone
"""


def test_a_patch_is_applied_where_its_context_stands(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("zero\none\ntwo\nthree\n")
    (tmp_path / "old.py").write_text("gone\n")
    (tmp_path / "fix.diff").write_text(DIFF)
    assert made("patch:file=fix.diff", tmp_path).files == {"train.py": b"zero\none\nzwei\nthree\n",
                                                           "new.py": b"x = 1\n", "old.py": None}
    (tmp_path / "train.py").write_text("one\nother\nthree\n")
    with pytest.raises(BadUsage, match="does not fit"):
        made("patch:file=fix.diff", tmp_path)
    (tmp_path / "out.diff").write_text(DIFF.replace("a/train.py", "a/../x.py"))
    with pytest.raises(BadUsage, match="outside"):
        made("patch:file=out.diff", tmp_path)


def test_a_file_without_a_last_line_break_is_patched_as_git_does(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("one\ntwo")
    (tmp_path / "d").write_text("--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n one\n-two\n\\ No newline at end of file\n"
                                "+2\n"
                                "\\ No newline at end of file\n")
    assert made("patch:file=d", tmp_path).files == {"a.py": b"one\n2"}


@pytest.mark.parametrize(("command", "expected"), [
    ("torchrun --nproc_per_node=4 train.py --lr 1", "python train.py --lr 1"),
    ("A=1 torchrun --standalone --nproc_per_node 2 -m train --lr 1 > log", "A=1 python -m train --lr 1 > log"),
    ("/opt/env/bin/torchrun --nnodes=2 train.py", "/opt/env/bin/python train.py"),
    ("python3 -m torch.distributed.run --nproc_per_node=2 train.py", "python3 train.py"),
    ("accelerate launch --num_processes 2 train.py", "python train.py"),
    ("mpirun -np 4 python3.11 train.py", "python3.11 train.py"),
    ("cd . && srun -n 8 python train.py", "cd . && python train.py"),
])
def test_the_launcher_is_taken_out_of_the_command(tmp_path: Path, command: str, expected: str) -> None:
    (tmp_path / "train.py").write_text("import argparse\n")
    prepared = made("single-process", tmp_path, command)
    assert prepared.command == expected
    assert prepared.environment["WORLD_SIZE"] == "1"
    assert int(prepared.environment["MASTER_PORT"]) > 0


def test_a_launcher_in_a_script_of_a_shell(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("")
    (tmp_path / "run.sh").write_text("export A=1\ntorchrun --nproc_per_node=4 \\\n  train.py --lr 1\n")
    prepared = made("single-process", tmp_path, "bash run.sh")
    assert prepared.files == {"run.sh": b"export A=1\npython train.py --lr 1\n"}
    assert prepared.command == "bash run.sh"


def test_a_json_file_without_rows(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps({"a": [1], "b": [2]}))
    with pytest.raises(BadUsage, match="2 lists"):
        made("rows-left-out:file=a.json,from=0,to=0", tmp_path)


PLATE = "name,dose,ok\nB-2,7,1\nB-10,30,0\nB-1,100,1\n"


@pytest.mark.parametrize(("by", "how", "after"), [
    ("name", "text", "name,dose,ok\nB-1,100,1\nB-10,30,0\nB-2,7,1\n"),
    ("name", "numbers", "name,dose,ok\nB-1,100,1\nB-2,7,1\nB-10,30,0\n"),
    ("dose", "rising", PLATE), ("dose", "falling", "name,dose,ok\nB-1,100,1\nB-10,30,0\nB-2,7,1\n"),
    ("dose", "text", "name,dose,ok\nB-1,100,1\nB-10,30,0\nB-2,7,1\n"),
])
def test_rows_are_put_in_the_order_of_a_column(tmp_path: Path, by: str, how: str, after: str) -> None:
    (tmp_path / "plate.csv").write_text(PLATE)
    assert made(f"rows-sorted:file=plate.csv,by={by},how={how}", tmp_path).files == {"plate.csv": after.encode()}
    assert (tmp_path / "plate.csv").read_text() == PLATE


def test_rows_of_arrays_and_of_json_lines_are_sorted(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", t=np.array([3, 1, 2]), x=np.array([30.0, 10.0, 20.0]))
    found = np.load(io.BytesIO(made("rows-sorted:file=a.npz,by=t,how=rising", tmp_path).files["a.npz"] or b""))
    assert found["x"].tolist() == [10.0, 20.0, 30.0]
    (tmp_path / "b.jsonl").write_text('{"k": "b", "v": 1}\n{"k": "a", "v": 2}\n')
    assert made("rows-sorted:file=b.jsonl,by=k,how=text", tmp_path).files == {
        "b.jsonl": b'{"k": "a", "v": 2}\n{"k": "b", "v": 1}\n'}


@pytest.mark.parametrize(("change", "said"), [
    ("by=size,how=rising", "has no column 'size': it has name"), ("by=name,how=rising", "possible is text, numbers"),
    ("by=ok,how=falling", "too few rows apart"), ("by=dose,how=sideways", "sideways"), ("by=dose", "how"),
])
def test_an_order_that_there_is_none_of_says_why(tmp_path: Path, change: str, said: str) -> None:
    (tmp_path / "plate.csv").write_text(PLATE + "B-3,8,1\nB-4,9,1\nB-5,11,1\nB-6,12,1\n")
    with pytest.raises(BadUsage) as error:
        made(f"rows-sorted:file=plate.csv,{change}", tmp_path)
    assert said in str(error.value)


def test_a_file_that_is_no_table_is_not_sorted(shards: Path) -> None:
    with pytest.raises(BadUsage, match="no table that is read"):
        made("rows-sorted:file=train.py,by=x,how=text", shards)
