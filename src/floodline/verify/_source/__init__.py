"""What the source says about a claim: its containers, and what bounds them."""
