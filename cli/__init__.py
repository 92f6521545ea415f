"""The command line: thin verbs over the packages that do the work."""
