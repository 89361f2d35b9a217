"""Write batches of imported rows to the database.

`batches` stores the rows of a batch in one transaction, with the help of one module for each kind
of object. `queries` holds their SQL statements.
"""
