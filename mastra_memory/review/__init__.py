"""What reviewers do with conversations: find, read, discuss, score and export them."""
