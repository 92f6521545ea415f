"""Sends the requests of a sink to S3, over connections of the guard.

An existing object is never replaced: a second write returns False. Failures are errors of the sdk,
by who can fix them.
"""

import base64
import hashlib
import html
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from connectors.plugins.s3.signing import Credentials, Query, path_of, query_of, signed
from connectors.sdk.errors import ConnectorError, RetriableError
from connectors.sdk.exchanges import Answer, Connection, Origin

# Enough for a part of 25 MiB at ten megabits a second; a slice must not take longer.
UPLOAD_S: Final = 25.0
ASK_S: Final = 5.0
# S3's limit of the name of an object, in bytes.
MAX_KEY_BYTES: Final = 1024
# One page of unfinished uploads; the next start handles further ones.
MAX_LISTED: Final = 1000
# A retry may help: the service is busy, or another client is writing at this moment.
RETRIABLE: Final = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
METADATA: Final = "x-amz-meta-"
# Limits the texts repeated in errors; other parts of an answer may contain signed data.
MAX_SAID_CHARS: Final = 300


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """The bucket of the objects, and how to access it."""

    origin: Origin
    name: str
    region: str
    is_path_style: bool
    credentials: Credentials
    # Headers of new objects: encryption, access.
    headers: Mapping[str, str] = field(default_factory=dict)


class Store:
    """A client of one bucket. Methods raise RetriableError if the same call may succeed later."""

    def __init__(self, bucket: Bucket, *, clock: Callable[[], datetime] = _now) -> None:
        self._bucket = bucket
        self._clock = clock
        origin = bucket.origin
        if not bucket.is_path_style:
            origin = Origin(
                scheme=origin.scheme, host=f"{bucket.name}.{origin.host}", port=origin.port
            )
        self._connection = Connection(origin)

    def close(self) -> None:
        self._connection.close()

    def put(self, key: str, body: bytes, metadata: Mapping[str, str]) -> bool:
        """Write an object; False if the name exists."""
        headers = {"if-none-match": "*", **_as_headers(metadata), **self._bucket.headers}
        return self._is_made(self._ask("PUT", key, headers=headers, body=body), key)

    def find(self, key: str) -> Mapping[str, str] | None:
        """Return the metadata of an object; None if it does not exist."""
        answer = self._ask("HEAD", key)
        if answer.status == 404:
            return None
        self._check(answer, key)
        return {
            name.removeprefix(METADATA): value
            for name, value in answer.headers.items()
            if name.startswith(METADATA)
        }

    def begin(self, key: str, metadata: Mapping[str, str]) -> str:
        """Begin an upload in parts; return its id."""
        headers = {**_as_headers(metadata), **self._bucket.headers}
        answer = self._ask("POST", key, [("uploads", "")], headers=headers)
        self._check(answer, key)
        found = _texts(answer, "UploadId")
        if not found:
            raise RetriableError(f"S3 began no upload of {key}: it gave no id")
        return found[0]

    def put_part(self, key: str, upload: str, number: int, part: bytes) -> str:
        """Upload a part, numbered from 1; return its tag, which completing the upload needs."""
        query = [("partNumber", str(number)), ("uploadId", upload)]
        answer = self._ask("PUT", key, query, body=part)
        self._check(answer, key)
        return answer.headers.get("etag", "")

    def complete(self, key: str, upload: str, tags: Sequence[str]) -> bool:
        """Complete an upload; False if the name exists."""
        parts = "".join(
            f"<Part><PartNumber>{number}</PartNumber><ETag>{html.escape(tag)}</ETag></Part>"
            for number, tag in enumerate(tags, start=1)
        )
        body = f"<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>".encode()
        headers = {"if-none-match": "*"}
        answer = self._ask("POST", key, [("uploadId", upload)], headers=headers, body=body)
        return self._is_made(answer, key)

    def abort(self, key: str, upload: str) -> None:
        answer = self._ask("DELETE", key, [("uploadId", upload)])
        if answer.status != 404:
            self._check(answer, key)

    def begun(self, prefix: str) -> list[tuple[str, str]]:
        """Return key and id of each unfinished upload."""
        query = [("max-uploads", str(MAX_LISTED)), ("prefix", prefix), ("uploads", "")]
        answer = self._ask("GET", "", query)
        self._check(answer, prefix)
        found = _inside(_text(answer), "Upload")
        pairs = [(_inside(one, "Key"), _inside(one, "UploadId")) for one in found]
        return [
            (html.unescape(keys[0]), html.unescape(ids[0])) for keys, ids in pairs if keys and ids
        ]

    def _ask(
        self,
        method: str,
        key: str,
        query: Query = (),
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
    ) -> Answer:
        bucket = self._bucket
        path = path_of(bucket.name, key) if bucket.is_path_style else path_of(key)
        told = signed(
            method,
            path,
            query,
            {"host": self._connection.origin.name, **(headers or {})},
            body,
            region=bucket.region,
            credentials=bucket.credentials,
            now=self._clock(),
        )
        # Not signed: it proves the body to stores that ignore its SHA-256.
        if body:
            digest = hashlib.md5(body, usedforsecurity=False).digest()
            told["content-md5"] = base64.b64encode(digest).decode("ascii")
        target = f"{path}?{query_of(query)}" if query else path
        within_s = UPLOAD_S if body else ASK_S
        del told["host"]
        return self._connection.exchange(method, target, headers=told, body=body, within_s=within_s)

    def _is_made(self, answer: Answer, key: str) -> bool:
        if answer.status == 412:
            return False
        self._check(answer, key)
        # Completing an upload may fail after the server has sent 200.
        if b"<Error>" in answer.body:
            raise RetriableError(self._said(answer), about_record=self._place(key))
        return True

    def _check(self, answer: Answer, key: str) -> None:
        if 200 <= answer.status < 300:
            return
        if answer.status in RETRIABLE or "RequestTimeout" in _texts(answer, "Code"):
            raise RetriableError(self._said(answer), about_record=self._place(key))
        if "NoSuchUpload" in _texts(answer, "Code"):
            # Another client, or a request whose answer was lost, has ended it.
            raise RetriableError("the upload is gone: it starts again", about_record=f" ({key})")
        said = self._said(answer) + _advice(answer, self._bucket)
        raise ConnectorError(said, about_record=self._place(key))

    def _place(self, key: str) -> str:
        """Return where a file was to be; fields of records may be in its name."""
        return f" (s3://{self._bucket.name}/{key})"

    def _said(self, answer: Answer) -> str:
        code = "".join(_texts(answer, "Code")[:1])
        message = "".join(_texts(answer, "Message")[:1])
        said = f"{code} {message}".strip() or "no reason given"
        return f"S3 answered {answer.status}: {said[:MAX_SAID_CHARS]}"


def _advice(answer: Answer, bucket: Bucket) -> str:
    match answer.status:
        case 301 | 302 | 307:
            return f"; the bucket is not in region {bucket.region}: correct s3.region or store.url"
        case 403:
            return "; check aws.access.key.id, aws.secret.access.key, and the rights of the key"
        case 404:
            return "; check s3.bucket.name and store.url"
    return ""


def _as_headers(metadata: Mapping[str, str]) -> dict[str, str]:
    return {f"{METADATA}{name}": value for name, value in metadata.items()}


def _texts(answer: Answer, tag: str) -> list[str]:
    return [html.unescape(text) for text in _inside(_text(answer), tag) if "<" not in text]


def _text(answer: Answer) -> str:
    return answer.body.decode("utf-8", "replace")


def _inside(text: str, tag: str) -> list[str]:
    """Return the texts in the tags with a name; S3's answers need no further XML."""
    # Linear time: a single pass, whatever the text contains.
    parts = [part.partition(f"</{tag}>") for part in text.split(f"<{tag}>")[1:]]
    return [inner for inner, end, _ in parts if end]
