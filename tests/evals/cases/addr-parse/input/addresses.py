import random

STREETS = "mill lane,high street,station road,church walk,oak avenue,dock side,king drive".split(",")
TOWNS = "leeds,stoke,bath,luton,hull,oban,truro".split(",")
ABBREV = {"street": "st", "road": "rd", "lane": "ln", "avenue": "ave", "drive": "dr"}


def pair(r):
    """messy written address -> canonical one"""
    no, street, town = r.randint(1, 99), r.choice(STREETS), r.choice(TOWNS)
    messy = street
    for full, short in ABBREV.items():
        if r.random() < 0.7:
            messy = messy.replace(full, short)
    if r.random() < 0.002:
        messy = messy + r.choice([" (z)", " ~y"])
    return f"{no} {messy} {town}", f"{no}|{street}|{town}"


def corpus(n, seed):
    r = random.Random(seed)
    return [pair(r) for _ in range(n)]
