"""Sends records to a web server."""

from connectors.plugins.http.connector import HttpSink

CONNECTORS = (HttpSink,)
