"""Parameters that a platform signed: who comes with them was sent by it, and typed nothing by hand.

A token is a JSON Web Token (RFC 7519) with an RSA signature over SHA-256 (RS256, RFC 7518, section 3.3; RFC
8017, section 8.2.2). Prolific sends one as `prolific_token` where a study has secured parameters, and
publishes its keys as a key set (RFC 7517): the file `KEYS` in a campaign's folder.
"""

import hashlib
import hmac
import json
from base64 import urlsafe_b64decode
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from counterfoil.errors import DataError, InputError
from counterfoil.inputs.files import read_json

#: The file of a platform's public keys in a campaign's folder.
KEYS = "platform_keys.json"
#: What stands before a digest of SHA-256 that is signed (RFC 8017, section 9.2, note 1).
_SHA256 = bytes.fromhex("3031300d060960864801650304020105000420")
#: Bits of a key, at least.
_LEAST_BITS = 2_048


def read_keys(folder: Path) -> Mapping[str, tuple[int, int]]:
    """Modulus and exponent of each RSA key in a campaign's folder, by its id; none without the file.

    Raises `DataError` for a file that is no key set, and for one without a key of 2,048 bits or more.
    """
    path = folder / KEYS
    if not path.is_file():
        return {}
    stored = read_json(path)
    keys = stored.get("keys") if isinstance(stored, dict) else None
    try:
        read = {
            str(key["kid"]): (_number(key["n"]), _number(key["e"]))
            for key in keys or ()
            if key["kty"] == "RSA"
        }
    except (KeyError, TypeError, ValueError):
        read = {}
    if not read or any(n.bit_length() < _LEAST_BITS for n, _ in read.values()):
        raise DataError(
            "no set of public keys",
            where=path,
            allowed=f'{{"keys": [{{"kty": "RSA", "kid", "n", "e"}}, ...]}}, of {_LEAST_BITS:,} bits',
            hint="fetch it from the platform again",
        )
    return read


def signed_claims(
    token: str, keys: Mapping[str, tuple[int, int]], *, audience: str, now: float
) -> Mapping[str, Any]:
    """What a token says, once its signature, its end and whom it is for are checked.

    `audience` is the host under which people reach the server. Raises `InputError` for every other token.
    """
    refused = InputError("the platform did not sign this address", hint="open the study from the platform")
    try:
        head, body, mark = token.split(".")
        header, claims = json.loads(_bytes(head)), json.loads(_bytes(body))
        n, e = keys[header["kid"]]
        size = (n.bit_length() + 7) // 8
        signature = _bytes(mark)
        digest = hashlib.sha256(f"{head}.{body}".encode()).digest()
        padded = b"\x00\x01" + b"\xff" * (size - len(_SHA256) - len(digest) - 3) + b"\x00" + _SHA256 + digest
        decrypted = pow(int.from_bytes(signature), e, n).to_bytes(size)
        if header["alg"] != "RS256" or len(signature) != size or not hmac.compare_digest(decrypted, padded):
            raise refused
        given = claims["aud"]
        # An audience is a host, with or without a scheme, a port and a path.
        names = {
            audience_name.rpartition("://")[2].partition("/")[0].partition(":")[0].lower()
            for audience_name in (given if isinstance(given, list) else [given])
        }
        begins, ends = float(claims.get("nbf", 0)), float(claims["exp"])
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
        raise refused from None
    if audience not in names:
        raise refused
    if not begins <= now < ends:
        raise InputError("the platform's address is too old", hint="open the study from the platform again")
    return claims


def _bytes(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _number(text: str) -> int:
    return int.from_bytes(_bytes(text))
