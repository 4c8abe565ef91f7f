"""Comments by the API: what readers get of one, and the captcha that is solved for it."""

import base64
import hashlib
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from support.client import PAGE, Visitor

SHOWN = {
    "id": 1,
    "page_url": PAGE,
    "nickname": "Ann",
    "content": "hi",
    "parent_id": None,
    "user_id": None,
    "ip": "203.0.113.0",
    "location": "",
    "likes": 0,
    "created_at": "2026-11-18 19:06:40",
    "edited": None,
    "pinned": False,
    "html": "<p>hi</p>\n",
    "role": "",
    "website": "",
    "country": "",
}

NO_LIMITS = pytest.mark.parametrize("settings", [{"limits_enabled": False}])


def at_once(calls: list[Callable[[], Any]]) -> list[Any]:
    with ThreadPoolExecutor(len(calls)) as threads:
        return [future.result() for future in [threads.submit(call) for call in calls]]


def solved(visitor: Visitor, path: str = "/captcha") -> str:
    """A token for a challenge, found as a browser finds it."""
    challenge = visitor.get(path).json
    del challenge["provider"]
    parameters = challenge["parameters"]
    start = hashlib.sha256(bytes.fromhex(parameters["salt"] + parameters["nonce"]))
    wanted = bytes.fromhex(parameters["keyPrefix"])
    for counter in range(150_001):
        (hashed := start.copy()).update(counter.to_bytes(4))
        if hashed.digest().startswith(wanted):
            break
    solution = {"counter": counter, "derivedKey": hashed.hexdigest()}
    return base64.b64encode(
        json.dumps({"challenge": challenge, "solution": solution}).encode()
    ).decode()
