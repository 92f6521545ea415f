"""Implements coordinators: pure shards that hold committed state, and the runtime that drives them.

State changes by replay of records only, so a broker that takes over a shard gets the same state.
"""
