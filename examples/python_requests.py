"""Asks an agent with `requests` and prints its words as they come; goes on where it was when the connection breaks."""

import json
import os
import time
import uuid

import requests

URL = os.environ.get("CONCIERGE_URL", "http://localhost:8000")
KEY = os.environ["CONCIERGE_KEY"]
ATTEMPTS = 10


def events(response):
    """Server-sent events as (id, type, data); one that was cut off before its blank line is none."""
    fields = {}
    for line in response.iter_lines(decode_unicode=True):
        if line == "" and "data" in fields:
            yield fields.get("id"), fields.get("event"), json.loads(fields["data"])
        if line == "":
            fields = {}
        elif not line.startswith(":"):
            name, _, value = line.partition(": ")
            fields[name] = value


def ask(message, sender):
    """Yields the events of one turn, each once, to its end."""
    headers = {"X-API-Key": KEY, "Idempotency-Key": uuid.uuid4().hex}
    turn, last = None, None
    for attempt in range(ATTEMPTS):
        try:
            if turn is None:
                body = {"message": message, "sender": sender}
                response = requests.post(f"{URL}/api/cs", json=body, headers=headers, stream=True, timeout=45)
            else:
                after = {} if last is None else {"Last-Event-ID": last}
                response = requests.get(
                    f"{URL}/api/turns/{turn}/events", headers=headers | after, stream=True, timeout=45
                )
            if response.status_code != 503:
                response.raise_for_status()
                response.encoding = "utf-8"
                for last, kind, data in events(response):
                    turn = data["turnId"] if kind == "session" else turn
                    yield kind, data
                    if kind in ("done", "error"):
                        return
        except (requests.ConnectionError, requests.Timeout, requests.exceptions.ChunkedEncodingError):
            pass
        time.sleep(min(2**attempt, 15))
    raise SystemExit("The service cannot be reached.")


for kind, data in ask("Hello! Who are you?", "example-python"):
    if kind == "text_delta":
        print(data["delta"], end="", flush=True)
    if kind == "text_reset":
        print("\n[taken back]")
    if kind == "error":
        raise SystemExit(f"{data['code']}: {data['message']}")
print()
