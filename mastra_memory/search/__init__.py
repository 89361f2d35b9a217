"""Finding messages: by words, by meaning, by both."""
