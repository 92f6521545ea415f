"""Fixtures of the gateway's tests: the project set up, and a browser of nobody."""

import pytest

from tests.database import project_home

# Before any import that reads the settings.
project_home()

from django.test import Client  # noqa: E402


@pytest.fixture
def client() -> Client:
    return Client()
