"""A provider made with Authlib (the package oidc-provider-mock), which knows one client and Ann,
and asks who somebody is. `authlib_provider.py REDIRECT_URL` prints its URL and serves until it is
killed. With `at once` behind that, Ann is signed in, and it asks nobody."""

import io
import sys

from oidc_provider_mock import User, app
from oidc_provider_mock._storage import Client, storage
from werkzeug.serving import make_server

REDIRECT_URL, *AT_ONCE = sys.argv[1:]
ANN = {"email": "ann@example.com", "email_verified": True, "name": "Ann of Python"}


def as_if_pressed(environ, start_response):
    """Whoever comes has pressed the button of Ann."""
    is_form = environ["PATH_INFO"] == "/oauth2/authorize"
    if AT_ONCE and is_form and environ["REQUEST_METHOD"] == "GET":
        body = b"sub=Ann-1"
        environ["REQUEST_METHOD"] = "POST"
        environ["CONTENT_TYPE"] = "application/x-www-form-urlencoded"
        environ["CONTENT_LENGTH"] = str(len(body))
        environ["wsgi.input"] = io.BytesIO(body)
    return provider(environ, start_response)


provider = app(require_client_registration=True, user_claims=[User(sub="Ann-1", claims=ANN)])
with provider.test_request_context():
    provider.preprocess_request()
    storage.store_client(
        Client(
            id="commentd-at-blog",
            secret="secret+of/this blog%",
            redirect_uris=[REDIRECT_URL],
            allowed_scopes=Client.SCOPES_SUPPORTED,
            token_endpoint_auth_method="client_secret_basic",
        )
    )
server = make_server("localhost", 0, as_if_pressed, threaded=True)
print(f"http://localhost:{server.server_port}", flush=True)
server.serve_forever()
