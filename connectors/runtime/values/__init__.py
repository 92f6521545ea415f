"""What Connect's values mean: numbers, dates, texts and structs, as Java's classes treat them.

Knows no converter and no transform, which both build on it.
"""
