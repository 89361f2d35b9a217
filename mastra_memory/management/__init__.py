"""Management commands of this app, all named `mastra_*`."""
