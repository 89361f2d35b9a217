"""How well and how fast messages are found: `python -m benchmarks.recall`."""
