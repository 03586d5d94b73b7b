"""FLD1xx: containers that grow, and what should have removed from them."""
