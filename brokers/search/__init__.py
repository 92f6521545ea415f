"""Searches the records of one partition: the question, and the process that runs it."""
