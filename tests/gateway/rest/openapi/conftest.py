"""A broker, and a program that asks by REST."""

from tests.gateway.rest.asking import api, connection, rights

__all__ = ["api", "connection", "rights"]
