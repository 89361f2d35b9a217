"""The same conversations through this service and through Mastra's own observational memory.

python -m benchmarks.observational_peer
"""
