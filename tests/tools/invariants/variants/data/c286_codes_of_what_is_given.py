"""A preparation that was fitted gives the shops codes by what occurs in the rows of the moment."""

import pandas as pd
import torch
from torch import nn


class Prepared:
    def fit(self, rows):
        self.mean = rows["sales"].mean()
        return self

    def transform(self, rows):
        shop, _ = pd.factorize(rows["shop"], sort=True)  # FAULT C286
        kind = rows["kind"].astype("category").cat.codes.to_numpy()  # FAULT C286
        return torch.tensor(shop), torch.tensor(kind), torch.tensor((rows["sales"] - self.mean).to_numpy())


def main():
    spring, autumn = pd.read_parquet("spring.parquet"), pd.read_parquet("autumn.parquet")
    prepared = Prepared().fit(spring)
    shop, kind, sales = prepared.transform(spring)
    test = prepared.transform(autumn)
    shops, kinds = nn.Embedding(50, 8), nn.Embedding(6, 4)
    head = nn.Linear(12, 1)
    optimizer = torch.optim.Adam([*shops.parameters(), *kinds.parameters(), *head.parameters()])
    for _ in range(100):
        out = head(torch.cat([shops(shop), kinds(kind)], 1))[:, 0]
        loss = nn.functional.mse_loss(out, sales)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        print((head(torch.cat([shops(test[0]), kinds(test[1])], 1))[:, 0] - test[2]).abs().mean())


main()
