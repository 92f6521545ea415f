"""Implements consumer groups: their members, assignments and committed offsets.

Pure: takes requests and the time, returns records and answers. Knows no log and no connection.
"""
