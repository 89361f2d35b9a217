"""Read conversations from other systems: one module a source, `loading` stores what they yield."""
