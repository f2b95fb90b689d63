import json

import torch
from torch import nn

settings = json.load(open("settings.json"))
rate, epochs = settings["rate"], settings["epochs"]
rate = 3e-4
checkpoint = torch.load("pretrained.pt")
model = nn.Linear(8, 2)
model.load_state_dict(checkpoint["model"])
epoch = checkpoint["epoch"]
print("weights of epoch", epoch)
model = torch.compile(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
for epoch in range(epochs):
    loss = model(torch.ones(4, 8)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    torch.save({"model": model.state_dict()}, "tuned.pt")
