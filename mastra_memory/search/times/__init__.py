"""Times in a query, such as `last week`. Start reading at `expressions`."""
