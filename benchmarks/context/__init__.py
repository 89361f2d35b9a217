"""Measure how much of the evidence for a question a context of limited size contains."""
