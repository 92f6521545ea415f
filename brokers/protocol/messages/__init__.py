"""One module per API: its request, its response and the structures inside them, in all versions."""
