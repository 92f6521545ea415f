"""The collector: reads every broker's feed, keeps a snapshot and series, and serves both.

Pages import only `selectors` of this package.
"""
