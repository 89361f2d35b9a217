"""Search messages by words, by vectors, or by both."""
