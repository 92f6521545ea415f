"""The collector: reads every broker's feed, keeps a snapshot and series, and serves both.

Pages read `selectors` and nothing else of this room.
"""
