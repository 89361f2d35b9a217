"""Select the messages of the next prompt: history, matches, and their neighbours."""
