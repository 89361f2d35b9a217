"""Choosing what goes into the next prompt: history, hits and the windows around them."""
