"""Event streams: publish changes to every open tab of the console.

`console.events.running` has the one hub of a web process. A publisher calls `running.publish(topic,
value)` from any thread; each stream subscribed to the topic sends the newest value to its tab. A
topic is a kind and a name, as `cluster:0hUvQ2rWSx6lJ3u8T6kRrg`: the kind is the name of the event
in the browser, the value is its data (one line, usually JSON).

A stream carries state and never a log: a value replaces an unsent earlier one, so a slow tab misses
steps but never the last one, and buffers one value for each of its topics.
"""
