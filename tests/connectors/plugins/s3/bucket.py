"""A bucket of a test's own in the S3 that all tests of a run share, seen through AWS's client."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import boto3

from connectors.plugins.s3.connector import S3Sink
from connectors.sdk.checks import parse
from connectors.sdk.configs import Required, Secret
from tests.suite.services import shared_s3

KEY_ID, SECRET = "AKIDTEST", "geheim/und+lang"


class Bucket:
    def __init__(self, name: str) -> None:
        self.name = name
        self.url = shared_s3()
        self.client = boto3.client(
            "s3",
            endpoint_url=self.url,
            region_name="us-east-1",
            aws_access_key_id=KEY_ID,
            aws_secret_access_key=SECRET,
        )

    def config(self, **more: str) -> dict[str, str]:
        """Return a config of the sink, with dots for the underscores of these keys."""
        return {
            "s3.bucket.name": self.name,
            "s3.region": "us-east-1",
            "store.url": self.url,
            "aws.access.key.id": KEY_ID,
            "aws.secret.access.key": SECRET,
            "format.class": "json",
            "flush.size": "10",
            **{name.replace("_", "."): value for name, value in more.items()},
        }

    def names(self) -> list[str]:
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.name)
        return [str(one["Key"]) for page in pages for one in page.get("Contents", [])]

    def read(self, name: str) -> bytes:
        body: bytes = self.client.get_object(Bucket=self.name, Key=name)["Body"].read()
        return body

    def uploads(self) -> list[str]:
        told = self.client.list_multipart_uploads(Bucket=self.name)
        return [str(one["Key"]) for one in told.get("Uploads", [])]


@contextmanager
def a_bucket(name: str) -> Iterator[Bucket]:
    bucket = Bucket(name)
    bucket.client.create_bucket(Bucket=name)
    try:
        yield bucket
    finally:
        bucket.client.close()


def parsed(config: Mapping[str, str]) -> dict[str, Any]:
    """Return what the task is given: every key of the definition, as the framework parses it."""
    found: dict[str, Any] = {}
    for key in S3Sink.definition():
        if key.name in config:
            found[key.name] = parse(key, config[key.name])
        else:
            assert not isinstance(key.default, Required), key.name
            found[key.name] = key.default
    assert isinstance(found["aws.access.key.id"], Secret)
    return found
