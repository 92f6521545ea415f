"""Implements the agent, the process of a host between its brokers and the database.

Runs as `manage.py agent`. Brokers connect to its socket; nothing here is on the path of a record.
"""
