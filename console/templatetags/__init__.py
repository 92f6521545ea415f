"""Template filters, at the place where Django expects them."""
