"""A rate that falls over all batches by a function of the step, and is stepped once an epoch."""
import torch
from accelerate import Accelerator
from torch.optim.lr_scheduler import LambdaLR

accelerator = Accelerator(gradient_accumulation_steps=4)


def lr_lambda(total):
    return lambda step: max(0.0, 1.0 - step / total)


def main(model, loader, epochs=3):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    scheduler = LambdaLR(optimizer, lr_lambda(epochs * len(loader)))
    model, optimizer, loader, scheduler = accelerator.prepare(model, optimizer, loader, scheduler)
    for epoch in range(epochs):
        for batch in loader:
            with accelerator.accumulate(model):
                loss = model(**batch).loss
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
        scheduler.step()  # FAULT C110
