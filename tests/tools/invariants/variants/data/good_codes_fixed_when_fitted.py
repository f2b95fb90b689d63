"""Codes of categories that the fit has fixed, or that are made once for all rows."""

import pandas as pd
import torch
from torch import nn


class Prepared:
    def fit(self, rows):
        self.levels = sorted(set(rows["shop"]))
        codes, self.kinds = pd.factorize(rows["kind"])
        return self

    def transform(self, rows):
        shop = rows["shop"].astype(pd.CategoricalDtype(self.levels)).cat.codes.to_numpy()
        kind = pd.Categorical(rows["kind"], categories=self.kinds).codes
        return torch.tensor(shop), torch.tensor(kind), torch.tensor(rows["sales"].to_numpy())


def main():
    everything = pd.concat([pd.read_parquet("spring.parquet"), pd.read_parquet("autumn.parquet")])
    everything["place"] = everything["place"].astype("category").cat.codes
    spring, autumn = everything[everything.season == 0], everything[everything.season == 1]
    prepared = Prepared().fit(spring)
    shop, kind, sales = prepared.transform(spring)
    test = prepared.transform(autumn)
    shops, head = nn.Embedding(51, 8), nn.Linear(8, 1)
    optimizer = torch.optim.Adam([*shops.parameters(), *head.parameters()])
    for _ in range(100):
        loss = nn.functional.mse_loss(head(shops(shop + 1))[:, 0], sales)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        print((head(shops(test[0] + 1))[:, 0] - test[2]).abs().mean(), len(kind))


main()
