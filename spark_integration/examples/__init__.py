"""Jobs to try and to copy; each has a page in `docs/howto/` and a test.

`./samsa spark example NAME` runs one. The three jobs (`clickstream`, `enrichment`, `metrics`) know
Spark, `format("samsa")` and the streams of this house, and nothing else of Samsa, so that a copy
runs anywhere; `catalog` says what each needs, and `made_up` writes what the first two read.
"""
