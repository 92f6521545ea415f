"""What the console adds to the project's command line."""
