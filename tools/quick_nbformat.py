"""Import this before nbformat, which starts two seconds sooner then; for pytest, -p tools.quick_nbformat.

nbformat loads jsonschema, which would load this if it could: a grammar that takes two seconds to compile, for
a format of addresses that no notebook has.
"""

import sys

sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]
