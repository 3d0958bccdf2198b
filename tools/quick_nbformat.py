"""Import this before nbformat to save two seconds; for pytest, -p tools.quick_nbformat.

nbformat loads jsonschema, which loads rfc3987_syntax if it can. That module compiles a grammar of web
addresses, which notebooks do not need, for two seconds.
"""

import sys

sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]
