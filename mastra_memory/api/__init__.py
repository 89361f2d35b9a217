"""The HTTP API, compatible with Mastra's memory API."""
