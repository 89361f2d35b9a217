"""The viewsets of the memory API, one module for each kind of data."""
