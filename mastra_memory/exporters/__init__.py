"""Write conversations to files. Each format is a module with an `export` function that streams."""
