"""Stores and decides the state of the cluster in database rows, and contains the agent.

The Django app of the cluster's metadata. No broker imports it: brokers connect to the agent of
their host. Rows are changed through `services` only, and read through `selectors`.
"""
