"""Adapters for agent libraries. Importing one requires the library it is named after.

The content of a library's messages is converted to Mastra's parts, which every client can read and
edit. Fields that only the library understands are kept as metadata under the library's name.
"""
