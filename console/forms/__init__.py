"""Validates what users fill in, as Django forms, without changing anything."""
