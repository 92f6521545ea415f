"""Handles Connect's values as Java's classes do: numbers, dates, texts and structs.

Independent of converters and transforms, which both use it.
"""
