"""The HNSW index of one model: its name, its expression, building and dropping it."""

import hashlib
from dataclasses import dataclass

from mastra_memory import conf
from mastra_memory.db import routing, sql
from mastra_memory.exceptions import InvalidInput

TABLE = "mastra_memory_messageembedding"
MAX_VECTOR_DIMENSIONS = 2_000
MAX_HALFVEC_DIMENSIONS = 4_000
"""The most dimensions that pgvector indexes as `vector` and as `halfvec`."""
DEFAULT_BUILD_MEMORY = "512MB"
"""For building: while the graph fits into it the building is quick."""

_METRICS = {
    "cosine": ("<=>", "cosine_ops", "greatest(0, least(1, 1 - ({0})))"),
    "inner_product": ("<#>", "ip_ops", "-({0})"),
    "euclidean": ("<->", "l2_ops", "1 / (1 + ({0}))"),
}


@dataclass(frozen=True, slots=True)
class VectorIndex:
    """The index over the vectors of one model and length, whether it exists or not."""

    model: str
    dimensions: int
    metric: str = "cosine"

    @classmethod
    def for_model(cls, model: str, dimensions: int) -> "VectorIndex":
        """The index by the metric of the settings. Raises `InvalidInput` for an unknown one."""
        metric = conf.app_settings().EMBEDDING_METRIC
        if metric not in _METRICS:
            raise InvalidInput(f"EMBEDDING_METRIC must be one of {', '.join(_METRICS)}")
        return cls(model, dimensions, metric)

    @property
    def name(self) -> str:
        """The name in the database."""
        key = f"{self.model}\n{self.dimensions}\n{self.metric}".encode()
        return f"mastra_embedding_hnsw_{hashlib.sha256(key).hexdigest()[:16]}"

    @property
    def kind(self) -> str | None:
        """The type that is indexed; None where vectors are too long for any."""
        if self.dimensions <= MAX_VECTOR_DIMENSIONS:
            return f"vector({self.dimensions})"
        return f"halfvec({self.dimensions})" if self.dimensions <= MAX_HALFVEC_DIMENSIONS else None

    @property
    def operator_class(self) -> str:
        """The operator class that its type and metric need."""
        return f"{(self.kind or '').partition('(')[0]}_{_METRICS[self.metric][1]}"

    @property
    def condition(self) -> str:
        """What rows it holds. Literals: the planner uses a partial index for nothing else."""
        model = self.model.replace("'", "''").replace("%", "%%")
        return f"model = '{model}' AND dimensions = {self.dimensions}"

    def distance(self, row: str, *, exact: bool) -> str:
        """The distance of a row's vector to the parameter, as the index knows it or exactly."""
        operator = _METRICS[self.metric][0]
        if exact or self.kind is None:
            return f"{row}.embedding {operator} %s::vector"
        return f"({row}.embedding::{self.kind}) {operator} %s::{self.kind}"

    def similarity(self, distance: str) -> str:
        """The score that belongs to a distance; higher is nearer."""
        return _METRICS[self.metric][2].format(distance)

    def is_ready(self) -> bool:
        """Whether it is in the database and complete."""
        found = sql.fetch_one(
            "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)", [self.name]
        )
        return bool(found and found[0])

    def build(self) -> None:
        """Build it while others read and write; one that was left half built is built anew.

        Must not be called inside a transaction. Raises `InvalidInput` for vectors too long.
        """
        if self.kind is None:
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
            f"USING hnsw ((embedding::{self.kind}) {self.operator_class}) "
            f"WITH (m = {m}, ef_construction = {ef}) WHERE {condition}"
        )
        self._run("RESET maintenance_work_mem")

    def drop(self) -> None:
        """Drop it if it is there, while others read and write."""
        self._run(f"DROP INDEX CONCURRENTLY IF EXISTS {self.name}")

    @staticmethod
    def _run(statement: str, *params: str) -> None:
        with routing.get_connection().cursor() as cursor:
            cursor.execute(statement, params or None)
