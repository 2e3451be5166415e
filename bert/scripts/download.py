"""Downloads a released model or public task data into the cache."""
