"""Write a batch of imported items to the database: one module for each kind of item."""
