"""Build, drop and query the HNSW index of the vectors of one model.

Vectors of all models are stored in one column, but a pgvector index needs vectors of one length. So
each model and length has a partial index on an expression that casts to this length.
"""

import hashlib
from dataclasses import dataclass

from mastra_memory import conf
from mastra_memory.db import routing, sql
from mastra_memory.exceptions import InvalidInput

TABLE = "mastra_memory_messageembedding"
MAX_VECTOR_DIMENSIONS = 2_000
MAX_HALFVEC_DIMENSIONS = 4_000
"""The most dimensions that pgvector can index, as `vector` and as `halfvec`."""
DEFAULT_BUILD_MEMORY = "512MB"
"""`maintenance_work_mem` for the build, which is fast if the graph fits into this memory."""

_METRICS = {
    "cosine": ("<=>", "cosine_ops", "greatest(0, least(1, 1 - ({0})))"),
    "inner_product": ("<#>", "ip_ops", "-({0})"),
    "euclidean": ("<->", "l2_ops", "1 / (1 + ({0}))"),
}


@dataclass(frozen=True, slots=True)
class VectorIndex:
    """The index over the vectors of one model and length. It need not exist."""

    model: str
    dimensions: int
    metric: str = "cosine"

    @classmethod
    def for_model(cls, model: str, dimensions: int) -> "VectorIndex":
        """Return the index for the metric `EMBEDDING_METRIC`. Raises `InvalidInput` if unknown."""
        metric = conf.app_settings().EMBEDDING_METRIC
        if metric not in _METRICS:
            raise InvalidInput(f"EMBEDDING_METRIC must be one of {', '.join(_METRICS)}")
        return cls(model, dimensions, metric)

    @property
    def name(self) -> str:
        """The name in the database. It is a hash because model names may have any characters."""
        key = f"{self.model}\n{self.dimensions}\n{self.metric}".encode()
        return f"mastra_embedding_hnsw_{hashlib.sha256(key).hexdigest()[:16]}"

    @property
    def column_type(self) -> str | None:
        """The type that is indexed; None if the vectors are too long for an index."""
        if self.dimensions <= MAX_VECTOR_DIMENSIONS:
            return f"vector({self.dimensions})"
        return f"halfvec({self.dimensions})" if self.dimensions <= MAX_HALFVEC_DIMENSIONS else None

    @property
    def operator_class(self) -> str:
        """The operator class for the type and the metric."""
        return f"{(self.column_type or '').partition('(')[0]}_{_METRICS[self.metric][1]}"

    @property
    def condition(self) -> str:
        """The condition of the partial index, without parameters, which PostgreSQL cannot match."""
        model = self.model.replace("'", "''").replace("%", "%%")
        return f"model = '{model}' AND dimensions = {self.dimensions}"

    def distance(self, row: str, *, exact: bool) -> str:
        """Return SQL for the distance to a parameter: the index's expression, or the exact one."""
        operator = _METRICS[self.metric][0]
        if exact or self.column_type is None:
            return f"{row}.embedding {operator} %s::vector"
        return f"({row}.embedding::{self.column_type}) {operator} %s::{self.column_type}"

    def similarity(self, distance: str) -> str:
        """Return SQL for the score of a distance; higher is nearer."""
        return _METRICS[self.metric][2].format(distance)

    def is_ready(self) -> bool:
        """Return whether the index exists and is complete."""
        found = sql.fetch_one(
            "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)", [self.name]
        )
        return bool(found and found[0])

    def build(self) -> None:
        """Build the index without blocking reads and writes. An incomplete index is replaced.

        Do not call this inside a transaction.

        Raises:
            InvalidInput: The vectors have more dimensions than pgvector can index.
        """
        if self.column_type is None:
            raise InvalidInput(
                f"{self.model}: {self.dimensions} dimensions are more than the "
                f"{MAX_HALFVEC_DIMENSIONS} that "
                "pgvector can index; searches compare all vectors of the scope"
            )
        if self.is_ready():
            return
        self.drop()
        options = conf.app_settings().EMBEDDING_INDEX
        m, ef = int(options.get("m", 16)), int(options.get("ef_construction", 64))
        condition = self.condition.replace("%%", "%")
        memory = str(options.get("maintenance_work_mem", DEFAULT_BUILD_MEMORY))
        self._run("SELECT set_config('maintenance_work_mem', %s, FALSE)", memory)
        self._run(
            f"CREATE INDEX CONCURRENTLY {self.name} ON {TABLE} "
            f"USING hnsw ((embedding::{self.column_type}) {self.operator_class}) "
            f"WITH (m = {m}, ef_construction = {ef}) WHERE {condition}"
        )
        self._run("RESET maintenance_work_mem")

    def drop(self) -> None:
        """Drop the index if it exists, without blocking reads and writes."""
        self._run(f"DROP INDEX CONCURRENTLY IF EXISTS {self.name}")

    @staticmethod
    def _run(statement: str, *params: str) -> None:
        with routing.get_connection().cursor() as cursor:
            cursor.execute(statement, params or None)
