"""Reads and writes lines of files below `files` of the home."""

from connectors.plugins.file.sink import FileSink
from connectors.plugins.file.source import FileSource

CONNECTORS = (FileSource, FileSink)
