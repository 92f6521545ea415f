"""Requests are signed as AWS's own client signs them."""

from datetime import UTC, datetime
from random import Random
from urllib.parse import urlencode

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as TheirCredentials

from connectors.plugins.s3.signing import Credentials, path_of, query_of, signed

LETTERS = "abcXYZ019-._~ +&=/%?#äß漢"


def a_text(random: Random, *, most: int = 20) -> str:
    return "".join(random.choices(LETTERS, k=random.randint(1, most)))


def credentials(key_id: str, secret: str, session_token: str) -> Credentials:
    return Credentials(key_id=key_id, secret=secret, session_token=session_token)


def test_every_request_is_signed_as_botocore_signs_it() -> None:
    random = Random(19)
    for _ in range(100):
        token = random.choice(["", "token/with+signs=="])
        method = random.choice(["GET", "PUT", "POST", "DELETE", "HEAD"])
        path = path_of("bucket", a_text(random).replace("//", "/"))
        query = sorted(
            {a_text(random): a_text(random) for _ in range(random.randint(0, 3))}.items()
        )
        headers = {"host": "s3.example.com:9000", "if-none-match": "*", "x-amz-acl": "private"}
        body = random.randbytes(random.choice([0, 10]))
        asked = AWSRequest(method, f"https://s3.example.com:9000{path}", headers, body, dict(query))
        theirs = S3SigV4Auth(TheirCredentials("AKID", "geheim", token or None), "s3", "eu-west-1")
        theirs.add_auth(asked)
        now = datetime.strptime(asked.headers["X-Amz-Date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)

        ours = signed(
            *(method, path, query, headers, body),
            region="eu-west-1",
            credentials=credentials("AKID", "geheim", token),
            now=now,
        )

        assert ours["authorization"] == asked.headers["Authorization"], (path, query)


def test_the_query_that_is_sent_is_the_one_that_is_signed() -> None:
    query = [("uploadId", "a+b/c d"), ("partNumber", "1")]

    assert query_of(query) == "partNumber=1&" + urlencode([query[0]]).replace("+d", "%20d")


def test_credentials_do_not_show_themselves() -> None:
    assert repr(credentials("AKID", "geheim", "zeichen")) == "Credentials()"
