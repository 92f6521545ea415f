"""What templates may call, where Django looks for it."""
