"""Management commands of the console, at the place where Django expects them."""
