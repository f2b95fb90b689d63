"""Old rule based router (kept for the monthly comparison, not used by finetune.py)."""
import json
import re
import sys

RULES = [(r"\bvpn\b|tunnel", "vpn_setup"), (r"refund|money back", "refund_status"), (r"password|locked", "password_reset"),
         (r"invoice|receipt", "invoice_copy"), (r"outage|offline", "outage_report"), (r"laptop|screen", "hardware_fault")]


def route(text):
    for pattern, name in RULES:
        if re.search(pattern, text):
            return name
    return "access_request"


if __name__ == "__main__":
    for line in open(sys.argv[1]):
        r = json.loads(line)
        print(r["id"], route(r["text"]))
