"""Every message in every version: what each test of this folder goes through."""

from brokers.protocol.apis import API_TABLE
from tests.oracles.strategies import Pair

PAIRS: list[Pair] = [
    (message, version)
    for api in API_TABLE
    for message in (api.request, api.response)
    for version in range(api.versions[0], api.versions[1] + 1)
]
