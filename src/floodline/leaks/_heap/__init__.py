"""Named places on the heap: walking to them, naming them, finding them again."""
