"""What reviewers do with conversations: find them, keep a state, write notes, score, count."""
