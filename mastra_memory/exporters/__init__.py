"""Write conversations to files: one module a format, all of them streaming."""
