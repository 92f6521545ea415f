"""Migrations of the tables of connectors, in order."""
