"""What every reader of Python source shares: names, mutations, limits and the numbers in them.

The scan, verify and the leak engine ask the same question: does the source bound this container?
Standard library only: the leak engine imports it inside the programs that it watches.
"""
