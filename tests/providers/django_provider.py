"""A provider made with Django OAuth Toolkit, in which Ann is signed in. `django_provider.py FOLDER
REDIRECT_URL` prints its URL and serves until it is killed."""

import sys
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIServer, make_server

import django
from django.conf import settings
from django.core.management import call_command
from django.urls import include, path
from jwcrypto.jwk import JWK

FOLDER, REDIRECT_URL = sys.argv[1:]
CLAIMS = {
    "sub": "Ann-1",
    "email": "ann@example.com",
    "email_verified": True,
    "name": "Ann of Django",
}
APPS = {
    "auth": "django.contrib.auth",
    "contenttypes": "django.contrib.contenttypes",
    "oauth2_provider": "oauth2_provider",
}


def sign_in_ann(get_response):
    """Middleware: whoever comes is Ann."""

    def respond(request):
        request.user = ann
        return get_response(request)

    return respond


settings.configure(
    ALLOWED_HOSTS=["127.0.0.1"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": f"{FOLDER}/django.db"}},
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    INSTALLED_APPS=[*APPS.values()],
    MIDDLEWARE=[f"{__name__}.sign_in_ann"],
    MIGRATION_MODULES=dict.fromkeys(APPS),  # the tables are made at once, as they are now
    OAUTH2_PROVIDER={
        "OIDC_ENABLED": True,
        "OIDC_RSA_PRIVATE_KEY": JWK.generate(kty="RSA", size=2048)
        .export_to_pem(True, None)
        .decode(),
        "SCOPES": {"openid": "", "email": "", "profile": ""},
    },
    PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],  # the quickest
    ROOT_URLCONF=__name__,
    SECRET_KEY="of this test",
    # Of the page that says what is wrong with a request.
    TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True}],
    USE_TZ=True,
)
django.setup()

from django.contrib.auth.models import User  # noqa: E402
from django.core.wsgi import get_wsgi_application  # noqa: E402
from oauth2_provider.models import Application  # noqa: E402
from oauth2_provider.oauth2_validators import OAuth2Validator  # noqa: E402
from oauth2_provider.settings import oauth2_settings  # noqa: E402


class Validator(OAuth2Validator):
    oidc_claim_scope = None

    def get_additional_claims(self, request):
        return CLAIMS


oauth2_settings.OAUTH2_VALIDATOR_CLASS = Validator
urlpatterns = [path("", include("oauth2_provider.urls", namespace="oauth2_provider"))]
call_command("migrate", run_syncdb=True, verbosity=0)
ann = User.objects.create_user("ann", password="of Ann")
Application.objects.create(
    client_id="commentd-at-blog",
    client_secret="secret+of/this blog%",
    client_type=Application.CLIENT_CONFIDENTIAL,
    authorization_grant_type=Application.GRANT_AUTHORIZATION_CODE,
    algorithm=Application.RS256_ALGORITHM,
    redirect_uris=REDIRECT_URL,
    skip_authorization=True,
)


class Server(ThreadingMixIn, WSGIServer):
    """Browsers hold connections open on which they ask nothing yet."""


with make_server("127.0.0.1", 0, get_wsgi_application(), server_class=Server) as server:
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
