"""Record batches, the unit that Kafka sends, stores and replicates.

Every batch here is message format v2. A batch passes through a broker as the bytes that its
producer sent: what this package offers works on those bytes in place, and only who must see single
records pays for unpacking them.
"""
