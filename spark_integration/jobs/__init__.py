"""Runs Spark: finds Java, manages sessions, and builds the package for other Spark installations.

Nothing here is imported before Spark is used: a home runs without Spark and without Java.
"""
