"""The command line: thin verbs over the rooms that do the work."""
