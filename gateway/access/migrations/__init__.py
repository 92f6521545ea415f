"""Migrations of the tables of access rights, in order."""
