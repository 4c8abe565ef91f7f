"""An authenticator app."""

import base64
import hashlib
import hmac


def app_code(key: str, step: int) -> str:
    """The six digits that an app shows in that half minute (RFC 6238, RFC 4226)."""
    digest = hmac.new(base64.b32decode(key), step.to_bytes(8, "big"), hashlib.sha1).digest()
    start = digest[19] % 16
    number = int.from_bytes(digest[start : start + 4], "big") % 2**31
    return str(number)[-6:].zfill(6)
