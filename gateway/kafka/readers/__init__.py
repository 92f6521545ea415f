"""Reads records without a group, for all interfaces: shared streams, pages, and searches.

Every read begins with `admission`. A page of a range (`pages`) and a search on brokers (`hits`)
run in a thread of their caller. New records go to many readers at once: `engine.Readers` is the
entry point, and belongs to one event loop; a reader holds a `reading.Reading`. Two clients of
librdkafka fetch for the whole process, each in a thread (`lane`): one at the head of every
partition, for readers that keep up; one for readers that have fallen behind, in turns. `feed`
distributes the records of one partition. Records wait in windows and buffers with named limits,
and only while a reader may still want them.
"""
