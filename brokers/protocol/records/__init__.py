"""Record batches, the unit that Kafka sends, stores and replicates.

Every batch here is message format v2. A batch passes through a broker as the bytes that its
producer sent: this package works on those bytes in place, and unpacks records only for callers that
need them.
"""
