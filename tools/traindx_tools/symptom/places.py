"""Where in the run a person saw it, and with what they compare it: two small tables over the words of a clause."""

from __future__ import annotations

import re

from traindx_tools.symptom.stated import Against, Place

_N = r"(?P<low>\d[\d,]*(?:\.\d+)?k?)"
_TO = r"(?:\s*(?:-|to|and|until|\u2013)\s*(?P<high>\d[\d,]*(?:\.\d+)?k?))?"
_UNIT = (
    r"(?P<unit>(?:global |optimi[sz]er |training )?"
    r"(?:steps?|iterations?|iters?|updates?|batch(?:es)?|epochs?|episodes?))"
)
_MANY = (
    r"(?P<many>(?:a |the |some )?(?:very )?(?:few|couple of|several|dozens? of|handful of|hundreds? of|hundred|"
    r"dozen|some dozen|few dozen|few hundred|thousand))"
)

_TABLE: tuple[tuple[str, str], ...] = (
    ("range", rf"\b(?:between|from) {_UNIT} {_N}\s*(?:and|to|until)\s*(?P<high>\d[\d,]*k?)"),
    ("first", rf"\b(?:for|in|during|within|over|through) (?:the |its |their )?(?:very )?first {_N} {_UNIT}"),
    (
        "after",
        rf"\b(?:after|since|from|past|beyond) (?:about |around |epochs? |steps? |iterations? )?{_UNIT}? ?{_N}\+?"
        rf"{_TO}(?: on)?(?: {_UNIT.replace('<unit>', '<unit2>')})?",
    ),
    ("at", rf"\b(?:at|around|near|in|by|on|until|before) (?:about |around |the )?{_UNIT} {_N}{_TO}"),
    ("at", rf"\b(?P<unit>steps?|iterations?|iters?|updates?|epochs?) {_N}{_TO}"),
    ("at", rf"\b(?:at|around|near|by) (?:about |around )?{_N} {_UNIT}"),
    (
        "start",
        r"\bfrom the (?:very )?(?:start|beginning|first \w+|outset)|\bfrom (?:the )?(?:first|step 0|step one|"
        r"step 1|epoch 0|epoch 1)\b|\bfrom scratch on|\bat (?:the )?(?:very )?(?:start|beginning)|\bat once\b|"
        r"\bimmediately\b|\bright away|\bin the (?:very )?first (?:few )?\w+|\bfirst (?:step|iteration|batch|line|"
        r"epoch)|\bin the beginning|\binitially|\ball along|\bon step 1\b|\bwithin an epoch\b",
    ),
    (
        "soon",
        rf"\b(?:after|within|in) (?:the first |first )?{_MANY}(?: of)? {_UNIT}|\bafter a (?:while|moment)|"
        r"\bsoon after",
    ),
    (
        "resume",
        r"\b(?:after|since|from|when|on|at|upon) (?:the |a |it is |every |each |being )?(?:job is )?(?:resum\w*|"
        r"restart\w*|pre ?empt\w*|requeue\w*|restor\w*|reload\w*|warm start\w*|continu\w*|second allocation|"
        r"checkpoint|loading)|\bcontinues? from|\bresuming\b|\bresumed\b|\bresume[sd]?\b|\bpicks up the checkpoint",
    ),
    (
        "validation",
        r"\b(?:after|during|in|at|when|on|from) (?:the |a |each |every )?(?:first |next )?(?:validation|"
        r"evaluation|eval)\b|\bwhen validat\w+",
    ),
    (
        "each",
        r"\b(?:every|each|at each|at every) (?:new )?(?:epoch|step|iteration|evaluation|validation|batch|update|"
        r"\d+ (?:steps|epochs|iterations))|\bby epoch\b|\bfrom epoch to epoch",
    ),
    (
        "end",
        r"\b(?:at|towards|near|to|until|till) the (?:very )?(?:end|last \w+)|\bin the last \w+|\bin the end\b|"
        r"\bfinal(?:ly)?\b|\bends? (?:at|with|up)",
    ),
    (
        "sometimes",
        r"\bsometimes\b|\bnow and (?:then|again)|\boccasional\w*|\brandomly|\bfrom time to time|\bat (?:a |an)?"
        r"(?:different|another|random) (?:\w+)|\bintermittent\w*|\bonce in a while",
    ),
    (
        "always",
        r"\balways\b|\ball the time|\b(?:the|during the) (?:whole|entire) (?:run|training)|\bthroughout|"
        r"\bfor the rest of the run|\bfor ever\b|\bforever\b|\bno matter how long|\bstays? so\b",
    ),
)
_PATTERNS = tuple((kind, re.compile(pattern, re.IGNORECASE)) for kind, pattern in _TABLE)

_AGAINST: tuple[tuple[str, str], ...] = (
    ("belief", r"too good|can ?not be|suspicious\w*|implausib\w*|unrealistic\w*|impossible"),
    (
        "chance",
        r"\bchance\b|\bcoin flip|\brandom(?:ly)?\b(?! seed| crop| augment| split| shuff| sampl)|\bguess\w*|\bmajority|"
        r"predicting the (?:mean|average)|variance of |uniform|\bln ?\(?\d+\)?|\blog ?\(\d+\)|base rate|"
        r"(?:mean|constant|naive|trivial) (?:predict|forecast|model|baseline)|no better than the (?:mean|average)|"
        r"predicting a constant|\b(?:var|std) ?\(|untrained|standard deviation of |ln\(?vocab\)?|"
        r"always showing the same",
    ),
    (
        "others",
        r"\bthat of (?:a|the)\b|\bothers?\b (?:\w+ )?(?:get|methods?|people|report)|\bthe paper|\breported\b|"
        r"\bpublished (?:number|result|score|value)s?|"
        r"\breference\b|\btutorial\b|\bthe sweep\b|\bis usual\b|\bother methods\b|\bbaseline|linear model|"
        r"logistic regression|gradient boosting|\bleaderboard\b|\bthe repo(?:sitory)?\b|\boriginal (?:code|impl)",
    ),
    (
        "before",
        r"\blast (?:month|week|year|time|version)|\bbefore (?:the )?(?:up(?:date|grade)|change)|\bused to\b|"
        r"\bin the old\b|\bearlier version|\bbefore we\b",
    ),
    (
        "run",
        r"\bwith(?:out)? (?:one|a single|1) (?:process|gpu|worker)|\bsingle[ -](?:process|gpu)|\bin fp32|in float32|"
        r"\bsame (?:script|run|net|network|settings?) (?:without|in|with)|\bcolleague|\bin keras|\bwithout "
        r"(?:accumulation|mixed|amp|clipping)|\bplain loop|\bfrom scratch\b|\bother run|\bfresh run\b|"
        r"\b(?:compared (?:to|with)|than) (?:the |my |our )?\w+ (?:version|implementation|port)\b|"
        r"uninterrupted run|\bwith 1 \w+",
    ),
    (
        "inputs",
        r"(?:for|on|regardless of|whatever|independent of) (?:all|every|each|any|the) (?:the )?(?:input|image|"
        r"sample|prompt|document|example|question|text|sequence)s?|whatever the input|for everything",
    ),
    (
        "split",
        r"\b(?:than|as|below|above|match\w*) (?:the |in |on )?(?:train\w*|val\w*|eval\w*|test)\b|very same training|"
        r"train(?:ing)? (?:and|vs|versus|against) (?:val|test|eval)\w*",
    ),
)
_COMPARED = tuple((kind, re.compile(pattern, re.IGNORECASE)) for kind, pattern in _AGAINST)


_LEVEL = re.compile(
    r"[\s=]*(?:(?:at|near|around|to|about|the|that|a|of|level|exactly|roughly|just|close)\s+)*"
    r"(?:(?:variance|standard deviation|std) of|(?:var|std) ?\(|base rate|majority|mean (?:predict|baseline)|"
    r"(?:constant|naive|trivial) (?:predict|forecast|model|baseline)|predicting (?:the|a) |ln ?\(?\d|log ?\(\d)",
    re.IGNORECASE)


def named_level(text: str) -> bool:
    """Whether words behind "stays" or "equals" name what one gets who has learned nothing, without its number."""
    return _LEVEL.match(text) is not None


def place_in(text: str) -> Place:
    """The first place that a clause names, the most definite kind first; an empty one where it names none."""
    for kind, pattern in _PATTERNS:
        found = pattern.search(text)
        if found is not None:
            named = {k: v for k, v in found.groupdict().items() if v is not None}
            low, high = _count(named.get("low")), _count(named.get("high"))
            if kind == "after" and "unit" not in named and "unit2" not in named:
                continue  # "after 3 more tries" is no place in a run
            if low is not None and high is not None:
                low, high = min(low, high), max(low, high)
            unit = named.get("unit2") or named.get("unit") or "step"
            return Place(kind, low, high, "epoch" if "epoch" in unit.lower() else "step", found.group().strip())
    return Place()


def _count(text: str | None) -> float | None:
    if text is None:
        return None
    thousands = text.lower().endswith("k")
    return float(text.lower().rstrip("k").replace(",", "")) * (1000 if thousands else 1)


def against_in(text: str) -> Against:
    """What the words of a clause compare with; an empty one where they compare with nothing."""
    for kind, pattern in _COMPARED:
        found = pattern.search(text)
        if found is not None:
            return Against(kind, found.group())
    return Against()
