"""The two ways to run the flows: blocking threads and asyncio."""
