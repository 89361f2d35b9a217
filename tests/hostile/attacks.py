"""The table of attacks: what a stranger sends, what it may cost, and what must be answered.

Seconds and megabytes are measured on a machine with two cores, with room for noise; `make faults`
holds the service to them, `make test` to several times as much.
"""

from dataclasses import replace

from tests.hostile.requests import BODIES, DATABASE, PAGES, REQUEST_SCHEMAS
from tests.hostile.server import SERVER
from tests.hostile.stored import CODE, RENDERING, STORED

# Nobody has measured these lines: their limits are generous, and only `make faults` runs them.
UNMEASURED = [
    replace(attack, seconds=60.0, megabytes=600.0, long=True)
    for attack in (*CODE, *REQUEST_SCHEMAS, *PAGES)
]
ATTACKS = [*RENDERING, *STORED, *BODIES, *DATABASE, *SERVER, *UNMEASURED]
