#!/usr/bin/env python3
"""Tries an installed commentd: `.ci/smoke.py commentd`, or any other command that starts it.

In an empty folder the service starts, somebody comments, the comment is listed, and the service
ends without an error when it is told to. Only Python's own library is needed."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

SETTINGS = {"COMMENTD_SERVER_LISTEN": "127.0.0.1:0", "COMMENTD_CAPTCHA_PROVIDER": "none"}
COMMENT = {"page_url": "/hello/", "nickname": "Ann", "content": "Hello.", "captcha_token": "x"}


def ask(url: str, body: object = None) -> object:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.load(response)


def try_service(command: list[str], folder: str) -> None:
    process = subprocess.Popen(
        command, cwd=folder, env=os.environ | SETTINGS, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout
        found = None
        for line in process.stdout:
            print(line, end="")
            if found := re.search(r" serves .* on (\S+)$", line):
                break
        assert found, "the service did not start"
        ask(f"{found[1]}/comments", COMMENT)
        listed = ask(f"{found[1]}/comments?url=/hello/")
        assert isinstance(listed, dict)
        assert [comment["content"] for comment in listed["comments"]] == ["Hello."], listed
        process.send_signal(signal.SIGTERM)
        process.stdout.read()
        assert process.wait() == 0, f"it ended with exit code {process.returncode}"
    finally:
        process.kill()
        process.wait()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        try_service(sys.argv[1:] or [str(Path(".venv/bin/commentd").absolute())], name)
    print("It works.")
