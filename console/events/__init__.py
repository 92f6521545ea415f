"""Event streams: what changed, told to every open tab of the console.

`console.events.running` has the one hub of a web process. A publisher says
`running.publish(topic, value)` from any thread; the streams that asked for the topic tell their tab
the newest value. A topic is a kind and a name, as `cluster:0hUvQ2rWSx6lJ3u8T6kRrg`: the kind is the
name of the event in the browser, the value is its data (one line, JSON as a rule).

A stream carries state and never a log: a value replaces the one before it that was not sent yet, so
a slow tab misses steps and never the end of them, and holds one value for each of its topics.
"""
