"""A broker, and a program that asks Kafka Connect's REST."""

import pytest

from tests.connectors.conftest import database
from tests.gateway.rest.asking import Api, api, connection, rights

__all__ = ["api", "connect", "connection", "database", "rights"]


@pytest.fixture
def connect(api: Api, database: None) -> Api:
    del database
    api.prefix = "/connect"
    return api
