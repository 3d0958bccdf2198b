"""The rules of each race, as coroutines; no sampling."""
