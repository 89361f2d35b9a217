"""Vectors of messages: the port to embedders, passages, and the work of indexing."""
