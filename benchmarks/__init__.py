"""Compare the service with Mastra's own server: `python -m benchmarks`."""
