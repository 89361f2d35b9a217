"""Measure the quality and the speed of recall: `python -m benchmarks.recall`."""
