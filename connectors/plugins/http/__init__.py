"""Records to a web server, as requests."""

from connectors.plugins.http.connector import HttpSink

CONNECTORS = (HttpSink,)
