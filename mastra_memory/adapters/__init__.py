"""Doors for agent libraries, one module each; importing one needs the library it is named after.

What a library's messages say goes into Mastra's parts, where everybody can read and edit it. What
only the library understands is noted beside the part, under the library's name.
"""
