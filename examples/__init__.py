"""Agents with a memory, one file for each library. None needs a key or a network.

python -m examples.support_agent
"""
