"""The tests; their folders mirror the code."""
