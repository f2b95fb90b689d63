"""A schedule and an optimizer that unknown code makes: the one that is given the epoch is the schedule."""
from engine.build import make_training

from torch import nn


def train_epoch(epoch, model, optimizer, schedule, loader, by_epoch):
    model.train()
    if by_epoch:
        schedule.step(epoch)
    for i, (x, y) in enumerate(loader):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        print(schedule.get_last_lr()[-1], loss.item())
        loss.backward()
        optimizer.step()
        if not by_epoch:
            schedule.step(i + epoch * len(loader))


def main(model, loader, settings):
    optimizer, schedule = make_training(settings, model)
    for epoch in range(settings["epochs"]):
        train_epoch(epoch, model, optimizer, schedule, loader, settings["by_epoch"])
