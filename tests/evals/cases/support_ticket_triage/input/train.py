import sys

import numpy as np
from torch import nn
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed

from tickets import LABELS, MAX_LEN, VOCAB, TicketDataset


class CostSensitiveTrainer(Trainer):
    """Cross entropy with one cost per ticket."""

    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        weight = inputs.pop("weight", None)
        labels = inputs.pop("labels")
        outputs = model(**inputs)
        per_ticket = nn.functional.cross_entropy(outputs.logits, labels, reduction="none")
        if weight is not None:
            per_ticket = per_ticket * weight / weight.mean()
        loss = per_ticket.mean()
        return (loss, outputs) if return_outputs else loss


def tiny_bert():
    cfg = BertConfig(vocab_size=len(VOCAB) + 2, hidden_size=48, num_hidden_layers=2, num_attention_heads=4,
                     intermediate_size=96, max_position_embeddings=MAX_LEN, num_labels=len(LABELS),
                     hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.0)
    return BertForSequenceClassification(cfg)


def metrics(pred):
    guess = pred.predictions.argmax(-1)
    out = {"accuracy": float((guess == pred.label_ids).mean())}
    for k, name in enumerate(LABELS):
        of_class = pred.label_ids == k
        out[f"recall_{name}"] = float((guess[of_class] == k).mean())
    out["outage_alarms"] = int((guess == LABELS.index("outage")).sum())
    return out


def run(outage_weight):
    set_seed(3)
    args = TrainingArguments(
        output_dir=f"out_w{outage_weight}", num_train_epochs=4, per_device_train_batch_size=64,
        per_device_eval_batch_size=256, learning_rate=1e-3, warmup_steps=20, weight_decay=0.01,
        eval_strategy="epoch", save_strategy="no", logging_steps=50, report_to="none",
        disable_tqdm=True, use_cpu=True, dataloader_pin_memory=False)
    trainer = CostSensitiveTrainer(model=tiny_bert(), args=args,
                                   train_dataset=TicketDataset(3200, 10, outage_weight),
                                   eval_dataset=TicketDataset(1600, 11, outage_weight),
                                   compute_metrics=metrics)
    trainer.train()
    return trainer.evaluate()


if __name__ == "__main__":
    weights = [float(w) for w in sys.argv[1:]] or [1.0, 15.0]
    table = {}
    for w in weights:
        print(f"##### outage_weight = {w}", flush=True)
        table[w] = run(w)
    print("##### summary")
    for w, m in table.items():
        print(f"weight {w:5.1f}  accuracy {m['eval_accuracy']:.4f}  recall_outage {m['eval_recall_outage']:.4f}  "
              f"alarms {m['eval_outage_alarms']}")
