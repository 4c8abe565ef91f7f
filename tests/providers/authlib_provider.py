"""A provider made with Authlib (the package oidc-provider-mock), which asks who somebody is, and
knows Ann. It prints its URL and serves until it is killed."""

import threading

from oidc_provider_mock import User, run_server_in_thread

ANN = {"email": "ann@example.com", "email_verified": True, "name": "Ann of Python"}

with run_server_in_thread(user_claims=[User(sub="Ann-1", claims=ANN)]) as server:
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    threading.Event().wait()
