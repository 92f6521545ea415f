"""Generates the OpenAPI description of the REST interfaces from their views and routes."""
