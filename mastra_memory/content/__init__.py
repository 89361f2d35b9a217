"""What is inside a message: parts, tool calls, text and tokens."""
