"""Writes names that clients choose freely so that each of their characters shows. Pure."""


def shown(name: str) -> str:
    """Return a name with control characters and changes of text direction escaped."""
    if not name:
        return "(the empty name)"
    return "".join(each if each.isprintable() else f"\\u{ord(each):04x}" for each in name)
