import os

os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"

import torch
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments, set_seed

from data_utils import Vocab, load_split, prepare

set_seed(0)
train_rows, val_rows = load_split("train"), load_split("validation")
vocab = Vocab(r["text"] for r in train_rows)
train_ds, queues = prepare(train_rows, vocab)
val_ds, _ = prepare(val_rows, vocab)
print(f"{len(train_ds)} train / {len(val_ds)} validation tickets, {len(queues)} queues, vocabulary {len(vocab)}")

def collate(features):
    return {k: torch.tensor([f[k] for f in features]) for k in features[0]}

def compute_metrics(pred):
    guess = pred.predictions.argmax(-1)
    out = {"accuracy": float((guess == pred.label_ids).mean())}
    for k, q in enumerate(queues):
        sel = pred.label_ids == k
        if sel.any():
            out[f"recall_{q}"] = float((guess[sel] == k).mean())
    return out

config = DistilBertConfig(
    vocab_size=len(vocab), dim=48, hidden_dim=96, n_layers=1, n_heads=4, max_position_embeddings=20,
    num_labels=len(queues), id2label=dict(enumerate(queues)), label2id={q: i for i, q in enumerate(queues)},
    dropout=0.0, attention_dropout=0.0, seq_classif_dropout=0.1,
)
args = TrainingArguments(
    output_dir="out", num_train_epochs=5, per_device_train_batch_size=40, per_device_eval_batch_size=120,
    learning_rate=3e-3, warmup_steps=15, weight_decay=0.01, eval_strategy="epoch", logging_steps=15,
    save_strategy="no", report_to=[], disable_tqdm=True, use_cpu=True,
)
trainer = Trainer(
    model=DistilBertForSequenceClassification(config), args=args, train_dataset=train_ds, eval_dataset=val_ds,
    data_collator=collate, compute_metrics=compute_metrics,
)
trainer.train()
on_train = trainer.predict(train_ds).metrics
final = trainer.evaluate()
print(f"train accuracy {on_train['test_accuracy']:.3f}  validation accuracy {final['eval_accuracy']:.3f}")
trainer.save_state()
