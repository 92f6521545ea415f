"""Migrations of the control plane's tables, in order."""
