"""What all readers of Python source share: names, mutations, limits and their numbers.

The scan, verify and the leak engine ask the same question: does the source bound this container?
Standard library only: the leak engine imports it in the programs it watches.
"""
