"""What connectors add to the project's command line."""
