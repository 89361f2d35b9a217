"""The table of attacks: what a stranger sends, what it may cost, and what must be answered.

Seconds and megabytes are measured on a machine with two cores, with room for noise; `make faults`
holds the service to them, `make test` to several times as much.
"""

from tests.hostile.requests import BODIES, DATABASE, PAGES, REQUEST_SCHEMAS
from tests.hostile.server import SERVER
from tests.hostile.stored import CODE, RENDERING, STORED

ATTACKS = [*RENDERING, *CODE, *STORED, *BODIES, *REQUEST_SCHEMAS, *DATABASE, *PAGES, *SERVER]
