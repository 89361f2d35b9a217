"""Measures the service against Mastra's own server: `python -m benchmarks`."""
