"""Lines of files below `files` of the home, read and written."""

from connectors.plugins.file.sink import FileSink
from connectors.plugins.file.source import FileSource

CONNECTORS = (FileSource, FileSink)
