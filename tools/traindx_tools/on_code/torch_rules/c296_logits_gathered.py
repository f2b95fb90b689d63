"""The Trainer keeps the scores over the whole vocabulary for every token of the evaluation set.

With `compute_metrics`, `transformers.Trainer` gathers the model's outputs of all evaluation batches and hands them over
at once. For a language model that is samples x tokens x vocabulary numbers: a thousand sequences of 512 tokens over
50,000 words are 100 GB in float32. A metric that only wants the most likely token needs
`preprocess_logits_for_metrics=lambda logits, labels: logits.argmax(-1)`; `eval_accumulation_steps` only moves the same
arrays from the device to the host.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import Syntax, argument, syntax
from traindx_tools.rules import Rule

RULE = Rule(
    id="C296",
    name="logits-gathered",
    title="Evaluation gathers the scores over the whole vocabulary",
    severity=Severity.INFO,
    sees="A Trainer of a language or segmentation model with compute_metrics and no preprocess_logits_for_metrics.",
    matters="Memory grows with every evaluation batch, whatever the batch size is.",
    alike=("a classifier, whose scores are few", "predict_with_generate, which gathers tokens"),
    confirm=("evaluate a tenth of the set: the memory that is needed falls to a tenth",),
)
_WIDE = re.compile(r"For(Masked|Causal)LM|LMHeadModel|ForConditionalGeneration|ForSeq2SeqLM|ForPreTraining|"
                   r"ForSemanticSegmentation|ForMaskedLanguage")  # fmt: skip
_NARROWED = re.compile(r"preprocess_logits_for_metrics|predict_with_generate\s*=\s*True|"
                       r"prediction_loss_only\s*=\s*True|"
                       r"batch_eval_metrics\s*=\s*True|def prediction_step|def evaluation_loop")  # fmt: skip


def check(project: Project) -> Iterator[Finding]:
    """Look at every Trainer that is made."""
    files = [f for f in project.files if "compute_metrics" in f.text and "transformers" in f.text]
    if not files or not any(f.mentions(_WIDE) for f in project.files):
        return
    if any(f.mentions(_NARROWED) for f in project.files):
        return
    for code in (syntax(f) for f in files):
        for call in code.calls("Trainer", "Seq2SeqTrainer"):
            metrics = argument(call, 99, "compute_metrics")
            plain = metrics is not None and not (isinstance(metrics, ast.Constant) and metrics.value is None)
            if plain and not any(k.arg is None for k in call.keywords):
                yield _finding(code, call)


def _finding(code: Syntax, call: ast.Call) -> Finding:
    keyword = next(k for k in call.keywords if k.arg == "compute_metrics")
    return RULE.finding(
        f"The Trainer at {code.at(call)} has compute_metrics and no preprocess_logits_for_metrics: it keeps the full "
        "logits of every evaluation batch (samples x tokens x vocabulary) until the whole set is done",
        code.place(keyword.value),
        code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "logits"},
    )
