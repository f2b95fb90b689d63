"""The scripted lead for each test of this folder."""

from scripted_lead import healthy, replies, work

__all__ = ["healthy", "replies", "work"]
