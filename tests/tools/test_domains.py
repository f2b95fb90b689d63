"""Which special parts a run has, told by its metrics, the words of the person and the code."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from traindx_tools.domains import domains_of, switched_on
from traindx_tools.on_logs import read_run
from traindx_tools.on_logs.run import Run


def of(text: str) -> frozenset[str]:
    return domains_of(read_run(["-"], stdin=text.encode()))


@pytest.mark.parametrize(("line", "domain"), [
    ("step {i} d_loss 0.5 g_loss 1.{i}", "adversarial"),
    ("step {i} loss 0.5 reward 1.{i}", "reinforcement"),
    ("step {i} recon 0.5 commitment 0.{i}", "codebook"),
    ("step {i} recon 0.5 kl 0.{i}", "latent"),
])
def test_a_metric_tells_its_part(line: str, domain: str) -> None:
    assert domain in of("\n".join(line.format(i=i) for i in range(9)))


def test_a_classifier_has_none_of_them(tmp_path: Path) -> None:
    code = tmp_path / "train.py"
    code.write_text("import torch\nloss = torch.nn.functional.cross_entropy(net(x), y)\n")
    run = read_run(["-"], stdin=b"step 1 cross_entropy 2.3 acc 0.1\nstep 2 cross_entropy 2.2 acc 0.2\n")
    assert domains_of(run, [code]) == frozenset()


def test_a_log_alone_may_be_of_jax_or_of_tokens_until_something_says_otherwise(tmp_path: Path) -> None:
    assert domains_of(Run()) == {"jax", "tokens"}
    code = tmp_path / "train.py"
    code.write_text("import jax\n")
    assert domains_of(Run(), [code]) == {"jax"}
    assert domains_of(Run(), [tmp_path / "missing.py"], "my torch GAN") == {"adversarial"}


def test_a_long_word_is_looked_through_once(within: Callable[[float], AbstractContextManager[None]]) -> None:
    with within(5):
        assert switched_on("x" * 1_000_000 + " bf16 ..... False amp") == "x" * 1_000_000 + "   amp"
