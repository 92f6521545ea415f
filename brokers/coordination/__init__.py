"""Coordinators: shards that are pure and hold what is committed, and the runtime that feeds them.

State changes by replay of records alone, so that a broker that takes a shard over has the same one.
"""
