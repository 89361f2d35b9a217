"""Create and store the vectors of messages."""
