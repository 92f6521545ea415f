"""Management commands of the access rights, at the place where Django expects them."""
