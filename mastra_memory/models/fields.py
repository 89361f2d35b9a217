"""Fields and constraints that several models share."""

import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import models

from mastra_memory.db import times, users
from mastra_memory.db.identifiers import MAX_ID_BYTES

if TYPE_CHECKING:
    _Field = models.Field[Any, Any]
    _TextField = models.TextField[Any, Any]
    _DateTimeField = models.DateTimeField[Any, Any]
else:  # Django's fields take no type arguments when they run.
    _Field, _TextField = models.Field, models.TextField
    _DateTimeField = models.DateTimeField


def new_id() -> str:
    """Return a random UUID as text."""
    return str(uuid.uuid4())


class OctetLength(models.Func):
    """The SQL function `octet_length`: the length of a text in bytes."""

    function = "octet_length"
    output_field = models.IntegerField()


class IdField(_TextField):
    """A text id in any script, compared by bytes (collation "C").

    PostgreSQL and Python then sort ids alike, which the lock order relies on.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        options["db_collation"] = "C"
        super().__init__(*args, **options)

    def db_type(self, connection: Any) -> str:
        """Return the column type."""
        # The qualified name keeps Django from adding a LIKE index, which "C" makes superfluous.
        return "pg_catalog.text"

    def deconstruct(self) -> Any:
        """Leave the collation out of migrations: every field of this class has it."""
        name, path, args, options = super().deconstruct()
        del options["db_collation"]
        return name, path, args, options


class UserIdField(IdField):
    """The primary key of a user as text, whatever type it has in the user model.

    Not a foreign key: users may be stored in another database than our models. `db.users` reads
    their names.
    """

    def get_prep_value(self, value: Any) -> str | None:
        """Return the key as text; a user is accepted as well."""
        return None if value is None else users.get_user_id(value)


class AwareDateTimeField(_DateTimeField):
    """A point in time, which is read with a time zone whatever `USE_TZ` is.

    With `USE_TZ`, the zone is UTC, also if the connection has another one. Without `USE_TZ`,
    Django's field would give the clock time in `TIME_ZONE`, which is ambiguous on the night when
    clocks are put back. This field gives that clock time with its offset from UTC: templates and
    the admin show it unchanged, and the code compares it with other times.
    """

    def get_db_converters(self, connection: Any) -> list[Any]:
        """Return no converter if the driver returns times in UTC already."""
        is_utc = settings.USE_TZ and connection.timezone_name == "UTC"
        return [] if is_utc else [self._convert]

    def _convert(self, value: datetime | None, expression: Any, connection: Any) -> Any:
        if value is None:
            return None
        if settings.USE_TZ:
            return value.astimezone(UTC)
        return times.fix_offset(times.add_timezone(value))

    def get_prep_value(self, value: Any) -> Any:
        """Return a time with a time zone, which no setting of the connection can change."""
        prepared = super().get_prep_value(value)
        return times.add_timezone(prepared) if isinstance(prepared, datetime) else prepared


class InstantField(AwareDateTimeField):
    """A point in time with milliseconds, the precision of times in the API."""

    def db_type(self, connection: Any) -> str:
        """Return the column type, with milliseconds."""
        return "timestamp(3) with time zone"


class TsVectorField(_Field):
    """The searchable words of a text.

    Django's `SearchVectorField` would require `django.contrib.postgres` in INSTALLED_APPS from
    Django 6.1 on. The same is true of its `GinIndex`.
    """

    def db_type(self, connection: Any) -> str:
        """Return the column type."""
        return "tsvector"


class GinIndex(models.Index):
    """A GIN index."""

    def create_sql(self, model: Any, schema_editor: Any, using: str = "", **kwargs: Any) -> Any:
        """Return the statement that creates the index."""
        return super().create_sql(model, schema_editor, using=" USING gin", **kwargs)


def id_length_is_valid(name: str, *fields: str) -> models.CheckConstraint:
    """Return a constraint that ids are neither empty nor too long for an index."""
    condition = models.Q()
    for field in fields:
        condition &= models.Q(models.lookups.GreaterThan(OctetLength(field), 0))
        condition &= models.Q(models.lookups.LessThanOrEqual(OctetLength(field), MAX_ID_BYTES))
    return models.CheckConstraint(condition=condition, name=name)


class JsonTypeIs(models.Func):
    """A condition: the value of a `jsonb` column has the type `kind`, for example `object`."""

    template = "(jsonb_typeof(%(expressions)s) = '%(kind)s')"
    output_field = models.BooleanField()
    conditional = True

    def __init__(self, field: str, kind: str) -> None:
        super().__init__(models.F(field), kind=kind)
