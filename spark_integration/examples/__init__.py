"""Jobs to run and to copy; each has a page in `docs/howto/` and a test.

`./samsa spark example NAME` runs one. The three jobs (`clickstream`, `enrichment`, `metrics`) use
only Spark, `format("samsa")` and Samsa's streams, so that a copy runs anywhere; `catalog` lists
the needs of each, and `made_up` generates the input of the first two.
"""
