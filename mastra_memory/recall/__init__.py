"""Choosing what goes into the next prompt: history, matches, and the messages around them."""
