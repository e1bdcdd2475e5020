"""Parameters that a platform signed: who comes with them was sent by it, and typed nothing by hand.

A token is a JSON Web Token (RFC 7519) that is signed with RSA (RS256). Prolific sends one as `prolific_token`
where a study has secured parameters, and publishes its keys as a key set (RFC 7517): the file `KEYS` in a
campaign's folder.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from counterfoil.errors import DataError, InputError
from counterfoil.inputs.files import read_json

#: The file of a platform's public keys in a campaign's folder.
KEYS = "platform_keys.json"
#: Bits of a key, at least.
_LEAST_BITS = 2_048


def read_keys(folder: Path) -> Mapping[str, Any]:
    """The public RSA keys in a campaign's folder, by their ids; none without the file.

    Raises `DataError` for a file that is no key set, and for one without a key of 2,048 bits or more.
    """
    path = folder / KEYS
    if not path.is_file():
        return {}
    import jwt

    try:
        key_set = jwt.PyJWKSet.from_dict(read_json(path)).keys
        keys = {str(key.key_id): key.key for key in key_set if key.algorithm_name == "RS256"}
    except (jwt.PyJWTError, AttributeError, TypeError, ValueError):
        keys = {}
    if not keys or any(key.key_size < _LEAST_BITS for key in keys.values()):
        raise DataError(
            "no set of public keys",
            where=path,
            allowed=f'{{"keys": [{{"kty": "RSA", "kid", "n", "e"}}, ...]}}, of {_LEAST_BITS:,} bits',
            hint="fetch it from the platform again",
        )
    return keys


def signed_claims(token: str, keys: Mapping[str, Any], *, audience: str, now: float) -> Mapping[str, Any]:
    """What a token says, once its signature, its end and whom it is for are checked.

    `audience` is the host under which people reach the server. Raises `InputError` for every other token.
    """
    import jwt

    refused = InputError("the platform did not sign this address", hint="open the study from the platform")
    try:
        key = keys[jwt.get_unverified_header(token)["kid"]]
        # Times are those of the campaign's clock, and an audience is a host, with or without a scheme, a port
        # and a path: they are checked below.
        unchecked: Any = dict.fromkeys(("verify_exp", "verify_nbf", "verify_iat", "verify_aud"), False)
        claims: Mapping[str, Any] = jwt.decode(token, key, ["RS256"], options=unchecked)
        given = claims["aud"]
        names = {
            audience_name.rpartition("://")[2].partition("/")[0].partition(":")[0].lower()
            for audience_name in (given if isinstance(given, list) else [given])
        }
        begins, ends = float(claims.get("nbf", 0)), float(claims["exp"])
    except (jwt.PyJWTError, ValueError, KeyError, TypeError, AttributeError, OverflowError):
        raise refused from None
    if audience not in names:
        raise refused
    if not begins <= now < ends:
        raise InputError("the platform's address is too old", hint="open the study from the platform again")
    return claims
