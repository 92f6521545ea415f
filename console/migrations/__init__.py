"""Migrations of the console's own tables, in order."""
