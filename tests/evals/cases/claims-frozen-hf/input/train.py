"""Fraud flag on insurance claims. The encoder comes from the big claims model and stays frozen (we only have few labels).

Run twice on the cluster (1 h limit per job), the second job continues from the last checkpoint.
"""
import argparse
import numpy as np
import torch
from torch.utils.data import TensorDataset
from transformers import Trainer, TrainingArguments, set_seed
from model import LEN, VOCAB, ClaimModel

FRAUD_WORDS = list(range(20, 32))


def claims(n, seed, rate=0.05):
    r = np.random.default_rng(seed)
    y = (r.random(n) < rate).astype(np.int64)
    x = r.integers(32, VOCAB, (n, LEN))
    for i in range(n):
        k = r.integers(2, 6) if y[i] else r.integers(0, 3) if r.random() < 0.1 else 0
        x[i, r.choice(LEN, k, replace=False)] = r.choice(FRAUD_WORDS, k)
    return [{"input_ids": torch.tensor(a), "labels": int(b)} for a, b in zip(x, y)]


def average_precision(score, y):
    order = np.argsort(-score)
    hit = y[order]
    prec = hit.cumsum() / np.arange(1, len(y) + 1)
    return float((prec * hit).sum() / hit.sum())


def metrics(p):
    score = p.predictions[:, 1] - p.predictions[:, 0]
    flag = score > 0
    return {"accuracy": float((flag == p.label_ids).mean()), "avg_precision": average_precision(score, p.label_ids),
            "recall_at_0": float(flag[p.label_ids == 1].mean())}


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--until", type=int, default=None, help="stop after this many steps (job limit)")
    ap.add_argument("--resume", action="store_true")
    a = ap.parse_args()
    set_seed(9)
    model = ClaimModel(freeze=True)
    n_all, n_tr = sum(p.numel() for p in model.parameters()), sum(p.numel() for p in model.parameters() if p.requires_grad)
    train, dev = claims(1600, 1), claims(1200, 2)
    print(f"parameters {n_all}, trainable {n_tr} ({100 * n_tr / n_all:.2f} %) - encoder frozen; fraud rate train {np.mean([t['labels'] for t in train]):.3f}")
    args = TrainingArguments(output_dir="out", num_train_epochs=12, per_device_train_batch_size=32, learning_rate=0.02, weight_decay=0.0,
                             lr_scheduler_type="linear", warmup_steps=10, logging_steps=50, eval_strategy="steps", eval_steps=100, save_steps=100,
                             save_total_limit=1, report_to=[], disable_tqdm=True, use_cpu=True, seed=9)
    trainer = Trainer(model=model, args=args, train_dataset=train, eval_dataset=dev, compute_metrics=metrics)
    if a.until:
        from transformers import TrainerCallback

        class JobLimit(TrainerCallback):
            def on_step_end(self, args, state, control, **kw):
                if state.global_step >= a.until:
                    print("job limit reached, stopping at step", state.global_step)
                    control.should_training_stop = True

        trainer.add_callback(JobLimit())
    trainer.train(resume_from_checkpoint=True if a.resume else None)
    if not a.until:
        print("final", trainer.evaluate())


if __name__ == "__main__":
    main()
