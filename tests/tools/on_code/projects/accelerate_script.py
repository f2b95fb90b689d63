"""A language model fine-tuned with accelerate: accumulation, clipping, a schedule, checkpoints."""

import math

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader
from transformers import AutoModelForCausalLM, AutoTokenizer, get_cosine_schedule_with_warmup

EPOCHS, ACCUMULATE, RATE = 3, 4, 5e-5


def batches(tokenizer, texts, size):
    encoded = tokenizer(texts, truncation=True, max_length=256, padding="max_length", return_tensors="pt")
    labels = encoded["input_ids"].masked_fill(encoded["attention_mask"] == 0, -100)
    rows = [
        {"input_ids": i, "attention_mask": a, "labels": y}
        for i, a, y in zip(encoded["input_ids"], encoded["attention_mask"], labels, strict=True)
    ]
    return DataLoader(rows, batch_size=size, shuffle=True)


def perplexity(model, loader, accelerator):
    model.eval()
    losses = []
    with torch.no_grad():
        for batch in loader:
            loss = model(**batch).loss
            losses.append(accelerator.gather_for_metrics(loss.repeat(len(batch["input_ids"]))))
    model.train()
    return math.exp(torch.cat(losses).mean().item())


def main(train_texts, held_texts):
    set_seed(0)
    accelerator = Accelerator(gradient_accumulation_steps=ACCUMULATE)
    tokenizer = AutoTokenizer.from_pretrained("gpt2")
    tokenizer.add_special_tokens({"pad_token": "<pad>"})
    model = AutoModelForCausalLM.from_pretrained("gpt2")
    model.resize_token_embeddings(len(tokenizer))
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.01)
    train, held = batches(tokenizer, train_texts, 8), batches(tokenizer, held_texts, 8)
    model, optimizer, train, held = accelerator.prepare(model, optimizer, train, held)
    total = EPOCHS * math.ceil(len(train) / ACCUMULATE)
    schedule = get_cosine_schedule_with_warmup(optimizer, int(0.05 * total), total)
    for epoch in range(EPOCHS):
        seen = 0.0
        for batch in train:
            with accelerator.accumulate(model):
                loss = model(**batch).loss
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
            if accelerator.sync_gradients:
                schedule.step()
            seen += loss.detach()
        accelerator.print(epoch, (seen / len(train)).item(), perplexity(model, held, accelerator))
        accelerator.wait_for_everyone()
        accelerator.save_state(f"state-{epoch}")


if __name__ == "__main__":
    main(["a text"] * 64, ["another text"] * 16)
