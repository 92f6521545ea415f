"""Reads records for many at once without a group: one fetch for each partition, shared by all.

`engine.Readers` is the door, and belongs to one event loop; `reading.Reading` is what a reader
holds. Two clients of librdkafka fetch for all of a process, each in a thread (`lane`): one at the
head of every partition, for those that keep up; one that serves those that have fallen behind, a
turn at a time. `feed` decides for one partition which reader has what. Records wait in windows and
buffers with named limits, and only as long as somebody may still want them.
"""
