"""What only a root does: it settles what the schema leaves open and the rank, and makes models.

It does not hold rows (`ledger`), and sends nothing.
"""
