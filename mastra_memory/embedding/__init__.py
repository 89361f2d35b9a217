"""Vectors of messages: the interface to embedders, passages, and the queue of pending work."""
