"""Agents with a memory, one example for each library. None needs a key or a network.

python -m examples.support_agent
"""
