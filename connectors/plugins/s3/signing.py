"""Signs requests to S3 with AWS Signature Version 4; pure.

We do not use AWS's client: it takes 30 MB, opens connections past our guard of outgoing
connections, and uses credentials of the host that a config did not name.
"""

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final
from urllib.parse import quote

ALGORITHM: Final = "AWS4-HMAC-SHA256"
# Characters that S3 does not escape, in paths and in queries.
UNRESERVED: Final = "-_.~"

Query = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    key_id: str = field(repr=False)
    secret: str = field(repr=False)
    session_token: str = field(default="", repr=False)


def path_of(*parts: str) -> str:
    """Return the path of a request; slashes within a part are kept."""
    return "/" + "/".join(quote(part, safe=f"{UNRESERVED}/") for part in parts)


def query_of(pairs: Query) -> str:
    """Return the query of a request, in the order of the signature."""
    quoted = sorted(
        (quote(name, safe=UNRESERVED), quote(to, safe=UNRESERVED)) for name, to in pairs
    )
    return "&".join(f"{name}={value}" for name, value in quoted)


def signed(
    method: str,
    path: str,
    query: Query,
    headers: Mapping[str, str],
    body: bytes,
    *,
    region: str,
    credentials: Credentials,
    now: datetime,
) -> dict[str, str]:
    """Return the headers with the signature; `host` must be among the given ones."""
    stamp = now.strftime("%Y%m%dT%H%M%SZ")
    digest = hashlib.sha256(body).hexdigest()
    told = {name.lower(): " ".join(value.split()) for name, value in headers.items()}
    told |= {"x-amz-date": stamp, "x-amz-content-sha256": digest}
    if credentials.session_token:
        told["x-amz-security-token"] = credentials.session_token
    names = ";".join(sorted(told))
    lines = "".join(f"{name}:{told[name]}\n" for name in sorted(told))
    request = "\n".join((method, path, query_of(query), lines, names, digest))
    scope = f"{stamp[:8]}/{region}/s3/aws4_request"
    to_sign = "\n".join((ALGORITHM, stamp, scope, hashlib.sha256(request.encode()).hexdigest()))
    signature = _mac(_key(credentials.secret, scope), to_sign).hex()
    credential = f"{credentials.key_id}/{scope}"
    told["authorization"] = (
        f"{ALGORITHM} Credential={credential}, SignedHeaders={names}, Signature={signature}"
    )
    return told


def _key(secret: str, scope: str) -> bytes:
    key = f"AWS4{secret}".encode()
    for part in scope.split("/"):
        key = _mac(key, part)
    return key


def _mac(key: bytes, text: str) -> bytes:
    return hmac.digest(key, text.encode(), "sha256")
