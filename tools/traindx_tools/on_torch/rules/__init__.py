"""Rules of the live torch instruments (T1xx ...): a page, a `RULE` and the judgement, one a file."""
