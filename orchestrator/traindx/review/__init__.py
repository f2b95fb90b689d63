"""A page on 127.0.0.1 where a person reads a waiting diagnosis and decides: approve, revise or reject."""

from traindx.review.form import Form
from traindx.review.page import review_page
from traindx.review.server import WAITS, Reviewed, Server, Undecided

__all__ = ["WAITS", "Form", "Reviewed", "Server", "Undecided", "review_page"]
